"""The demo dataset, and datasets that are read again from the source in a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from apiece._base.rng import RandomState, seed_from, stream
from apiece._base.typing import IntArray
from apiece.data._dataset import Dataset
from apiece.errors import ApieceError, DataError

_FLIPPING: Final = 0x666C6970  # the stream of the flips
_VALIDATION: Final = 200


def load_demo(*, flipped: float = 0.1, random_state: RandomState = 0) -> tuple[Dataset, IntArray]:
    """Load 369 labelled tumours, of which a share has the wrong label.

    The table has 569 rows of 30 standardised measurements; 200 rows with right labels are the
    validation set. Points whose labels were flipped should come out as harmful.

    Parameters
    ----------
    flipped
        Share of the pool's labels to flip, from 0 to 1.
    random_state
        Seed of the carving and of the flips.

    Returns
    -------
    tuple of Dataset and IntArray
        The dataset, and the positions of the flipped labels in rising order, shape
        ``(n_flipped,)``.

    Examples
    --------
    >>> dataset, positions = load_demo()
    >>> dataset
    Dataset(369 points x 30 features, 2 classes, 200 validation rows, target 'diagnosis')
    >>> len(positions)
    37
    """
    from sklearn.datasets import load_breast_cancer

    if not 0 <= flipped <= 1:
        raise DataError(
            f"flipped={flipped!r} is no share of labels: expected a number from 0 to 1. Pass for "
            "example flipped=0.1."
        )
    seed = seed_from(random_state)
    bundled = load_breast_cancer()
    clean = Dataset.from_arrays(
        bundled.data,
        bundled.target_names[bundled.target],
        validation=_VALIDATION,
        standardize=True,
        feature_names=bundled.feature_names.tolist(),
        random_state=seed,
    )
    n_flipped = round(flipped * clean.n_pool)
    drawn = stream(seed, _FLIPPING).choice(clean.n_pool, size=n_flipped, replace=False)
    positions = np.sort(drawn).astype(np.int64)
    labels = clean.points_y.copy()
    labels[positions] = 1 - labels[positions]
    how = {**clean.preprocessing, "from": "demo", "flipped": n_flipped}
    dataset = replace(
        clean,
        points_y=labels,
        target_name="diagnosis",
        preprocessing=how,
        source={"demo": {"flipped": flipped, "random_state": seed}},
    )
    return dataset, positions


def read_again(source: Mapping[str, Any] | None, fingerprint: str | None) -> Dataset:
    """Read a dataset again from its source.

    Parameters
    ----------
    source
        The source in the manifest of a run, see `Dataset.source`.
    fingerprint
        The expected fingerprint; None accepts any data.

    Raises
    ------
    DataError
        If the source is not known, missing or cannot be used, or if its data have changed.

    Examples
    --------
    >>> dataset, _ = load_demo()
    >>> read_again(dataset.source, dataset.fingerprint).n_points
    369
    """
    if not source:
        raise DataError(
            "the run does not say which file its data came from: expected one, which data from "
            "memory lacks. Pass dataset=, or rows= (--data) for what people know of the points."
        )
    try:
        dataset = _read(source)
    except ApieceError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, OSError) as error:
        raise DataError(
            f"what the run says about the origin of its data cannot be used ({error}): expected a "
            "file and options of Dataset.from_file. Pass dataset= (--data FILE), or correct "
            "'source' in manifest.json."
        ) from error
    dataset.check_is(fingerprint)
    return dataset


def _read(source: Mapping[str, Any]) -> Dataset:
    if "demo" in source:
        dataset, _ = load_demo(**source["demo"])
    else:
        dataset = Dataset.from_file(source["file"], **source["options"])
    for more in source.get("candidates", []):
        dataset = dataset.with_candidates(more["file"], ids=more["ids"])
    return dataset
