"""What the tests of this room share: how an error is read, and a small table of every type."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from apiece.errors import DataError


@pytest.fixture
def complaint():
    """Return the message of the DataError that a call raises, which must have three beats."""

    def read(call, *args, **options):
        with pytest.raises(DataError) as caught:
            call(*args, **options)
        message = str(caught.value)
        wrong, expected, remedy = message.partition("xpected ")
        assert wrong, message
        assert expected, message
        assert ". " in remedy, f"no remedy in {message!r}"
        assert remedy.endswith((".", "?")), message
        return message

    return read


@pytest.fixture
def table():
    """60 rows with a number, a boolean, a category, a text, an id and a binary label."""
    rng = np.random.default_rng(0)
    n = 60
    words = np.array(["good film", "bad plot", "fine cast", "dull and long", "great fun"])
    return pd.DataFrame(
        {
            "age": rng.normal(40, 12, n),
            "count": rng.integers(0, 9, n),
            "is_new": rng.random(n) < 0.5,
            "city": rng.choice(["Oslo", "Paris", "Rome"], n),
            "review": [" ".join(rng.choice(words, 2)) for _ in range(n)],
            "code": [f"p{i:03d}" for i in range(n)],
            "label": np.where(rng.random(n) < 0.4, "yes", "no"),
        }
    )
