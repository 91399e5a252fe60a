from __future__ import annotations

import numpy as np
import pytest

from apiece.losses import resolve_loss
from apiece.uses._choices import KEEP, MOST, NONE, Scores


@pytest.mark.parametrize(("gain", "n_classes", "chosen"), [(0.5, 2, 0), (3.0, 2, 1), (0.5, 0, 1)])
def test_labels_change_for_a_gain_of_a_standard_error_however_sure_the_finder_is(
    gain, n_classes, chosen
):
    n = 400
    noise = np.tile([-1.0, 1.0], n // 2)  # a standard error of 1 / sqrt(n)
    loss = np.stack([np.ones(n), 1.0 - gain / np.sqrt(n) - noise])
    rows, none = np.ones(n, dtype=bool), np.zeros(n)
    still = np.zeros((2, n))
    scores = Scores(loss, still, still, np.ones(n), none, none > 0, n_classes, sure=20.0)
    assert scores.choose((KEEP, (MOST, MOST)), rows) == (chosen, chosen)


def scored(predictions, labels, rate, n_trusted=0):
    """Scores of keeping all labels and of a change of them, each with its predictions."""
    n = len(labels)
    is_trusted = np.arange(n) < n_trusted
    rate = np.where(is_trusted, 0.0, rate)
    zeros = (np.zeros((2, n)) for _ in range(3))
    scores = Scores(*zeros, np.ones(n), rate, is_trusted, 2, sure=20.0)
    for choice, right in enumerate(predictions):
        proba = np.column_stack([1 - right, right])
        scores.add(
            choice,
            np.arange(n),
            labels,
            resolve_loss("log_loss", kind="classification", has_proba=True),
            proba,
        )
    return scores


def test_labels_do_not_change_if_rows_that_are_hard_may_be_all_that_seems_wrong():
    # One row in ten has the rare label, whatever its features. A model from which most of these
    # rows were taken out is surer, and gains if a tenth of the labels is wrong, but not else.
    labels = (np.arange(400) % 10 == 0).astype(int)
    honest, sure = np.full(400, 0.1), np.full(400, 0.005)
    scores = scored((honest, sure), labels, rate=0.1)
    rows = np.ones(400, dtype=bool)
    assert scores.gain(1, 0, rows)[0] > 0
    assert scores.choose((KEEP, (MOST, MOST)), rows) == (0, 0)


def test_labels_change_if_the_gain_does_not_depend_on_how_many_are_wrong():
    # A tenth of the labels is wrong: the model that is sure of the others gains at any share.
    labels = np.arange(400) % 2
    is_wrong = np.arange(400) % 10 < 1
    timid, sure = (np.where(labels == 1, p, 1 - p) for p in (0.6, 0.97))
    given = np.where(is_wrong, 1 - labels, labels)
    scores = scored((timid, sure), given, rate=0.1)
    assert scores.choose((KEEP, (MOST, MOST)), np.ones(400, dtype=bool)) == (1, 1)


@pytest.mark.parametrize(("rare", "chosen"), [(0.1, 0), (0.0, 1)])
def test_trusted_rows_tell_whether_rows_are_hard_or_wrong(rare, chosen):
    # As above, but of 200 trusted rows as many have the rare label, or none has it.
    each = np.arange(800) % 10 == 0
    labels = (each & ((np.arange(800) >= 200) | (rare > 0))).astype(int)
    honest, sure = np.full(800, 0.1), np.full(800, 0.005)
    scores = scored((honest, sure), labels, rate=0.1, n_trusted=200)
    assert scores.choose((KEEP, (MOST, MOST)), np.ones(800, dtype=bool)) == (chosen, chosen)


@pytest.mark.parametrize(
    ("n_classes", "share", "is_enough"),
    [(0, 0.004, False), (0, 0.006, True), (2, 0.0008, False), (2, 0.0012, True)],
)
def test_what_rows_gain_by_the_choice_of_others_must_matter(n_classes, share, is_enough):
    n = 400
    loss = np.stack([np.ones(n), np.full(n, 0.99)])
    still = np.zeros((2, n))
    none = np.zeros(n)
    scores = Scores(loss, still, still, np.ones(n), none, none > 0, n_classes, sure=20.0)
    # By all rows the change gains 1 %; the other folds choose it for a share of the rows alone.
    choices = (KEEP, (MOST, MOST) if n_classes else (NONE, MOST))
    assert scores.choose(choices, np.ones(n, dtype=bool))[1] == 1
    assert scores.matters((np.arange(n) < 100 * share * n).astype(int)) == is_enough
