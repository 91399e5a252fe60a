"""When to stop, and which engine serves a model that has no fast one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import apiece
from apiece import until
from apiece.collection import _rounds
from apiece.collection._pilot import choose_by_pilot
from apiece.collection._rounds import targets
from apiece.collection.until import Round
from apiece.engines import RefitEngine, ReuseEngine, choose_engine
from apiece.errors import ApieceWarning, PlanError
from apiece.estimators import Bayes
from apiece.records import CHANCE, Stage

REUSE = {
    "model": DecisionTreeClassifier(max_depth=2),
    "engine": "reuse",
    "metric": "brier",
    "sizes": (10, 40),
    "random_state": 0,
    "progress": False,
}
EXACT = {"sizes": (10, 30), "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=120) > 0).astype(int)
    return apiece.Dataset.from_arrays(X, y, validation=0)


class Laws:
    """Laws with given means and standard errors."""

    def __init__(self, mean, error):
        self.params, self.error, self.k_ref = np.asarray(mean, float)[:, None], error, 10.0
        self.family = self

    def mean(self, params, k=None):
        return self.params[:, 0] if k is None else params

    def interval(self, k, level):
        return self.params[:, 0] - 1.645 * self.error, self.params[:, 0] + 1.645 * self.error

    def draws(self, n, random_state):
        rng = np.random.default_rng(random_state)
        return self.params + self.error * rng.normal(size=(n, *self.params.shape))


def state(mean, error, *, elapsed=0.0, expected=0.0, before=None):
    now = Round(None, elapsed, expected, before)
    now.__dict__["laws"] = Laws(mean, error)
    return now


MEAN = np.arange(20.0)


@pytest.mark.parametrize(
    ("criterion", "sure", "unsure"),
    [
        (until.width(0.5), state(MEAN, 0.1), state(MEAN, 10.0)),
        (until.top(5), state(MEAN, 0.1), state(MEAN, 10.0)),
        (until.seconds(60), state(MEAN, 1, elapsed=50, expected=20), state(MEAN, 1, elapsed=9)),
        (
            until.signs(),
            state(MEAN - 9.5, 0.1, before=state(MEAN - 9.5, 0.1, before=state(MEAN, 10.0))),
            state(MEAN - 9.5, 0.1, before=state(MEAN - 9.5, 10.0, before=state(MEAN, 10.0))),
        ),
        (
            until.signs(),
            state(MEAN - 9.5, 0.1, before=state(MEAN - 9.5, 0.1, before=state(MEAN, 10.0))),
            state(MEAN - 9.5, 0.1, before=state(MEAN - 9.5, 0.1)),  # too few rounds
        ),
        (
            until.stable(),
            state(MEAN, 1, before=state(MEAN, 1, before=state(MEAN, 1))),
            state(MEAN, 1, before=state(MEAN, 1, before=state(-MEAN, 1))),
        ),
    ],
)
def test_criteria_are_met_by_sure_answers_alone(criterion, sure, unsure):
    assert criterion.is_met(sure)
    assert not criterion.is_met(unsure)


def test_criteria_combine():
    yes, no = until.width(0.5), until.seconds(1000)
    now = state(MEAN, 0.1)
    assert (yes | no).is_met(now)
    assert not (yes & no).is_met(now)
    assert not (no | no).needs_laws
    assert (yes | no).needs_laws


def test_the_size_that_says_most_leaves_the_least_variance(data):
    run = apiece.collect(data, samples=30, **EXACT)
    now, laws = Round(run, 0.0), Bayes().fit(run)
    for at in (12.0, 28.0):
        sizes = np.geomspace(*laws.k_range, 15)
        slope = laws.family.gradient(laws.params, np.array([at, *sizes]), laws.k_ref)
        left = []
        for number, k in enumerate(sizes, start=1):
            seen = slope[:, number, :, None] * slope[:, number, None, :]
            seen = seen / (laws.sigma**2 * k**-laws.beta)[:, None, None]
            after = np.linalg.inv(np.linalg.inv(laws.cov) + seen)
            left.append(np.einsum("np,npq,nq->n", slope[:, 0], after, slope[:, 0]).mean())
        assert until.top(5, at=at).telling(now) == sizes[np.argmin(left)]


def test_criteria_about_other_sizes_agree_or_leave_the_design_as_it_is(data):
    now = Round(apiece.collect(data, samples=20, **EXACT), 0.0)
    one, other = until.top(5, at=11), until.signs(at=29)
    assert (one | until.seconds(9)).telling(now) == (one & one).telling(now) == one.telling(now)
    assert one.telling(now) != other.telling(now)
    assert (one | other).telling(now) is None
    trainings = Round(apiece.collect(data, trainings=64, **REUSE), 0.0)
    assert (one.telling(trainings), until.top(5).telling(trainings)) == (11, None)


def test_the_reason_names_what_is_met_alone():
    yes, no, now = until.width(0.5), until.seconds(1000), state(MEAN, 0.1)
    assert (yes | no).reason(now) == (no | yes).reason(now) == repr(yes)
    assert (yes | until.top(5)).reason(now) == f"{yes!r} and {until.top(5)!r}"
    assert (yes & until.top(5) | no).reason(now) == repr(yes & until.top(5))


def test_words_stand_for_criteria():
    assert until.parse("90s") == until.seconds(90)
    assert until.parse("10m | top 20 0.95") == until.minutes(10) | until.top(20, probability=0.95)
    assert until.parse("top 20 at 1,000") == until.top(20, at=1000)
    assert until.parse("signs at 50") == until.signs(at=50)
    assert until.parse("1h and signs or stable") == (
        until.minutes(60) & until.signs() | until.stable()
    )


@pytest.mark.parametrize(
    "words", ["", "soon", "top", "top twenty", "10", "top 5 2", "-3s", "top 5 at", "stable at 9"]
)
def test_words_that_say_nothing_are_refused(words):
    with pytest.raises(PlanError, match="expected"):
        until.parse(words)


def test_what_is_no_criterion_is_refused(data):
    with pytest.raises(PlanError, match="does not say when to stop"):
        apiece.collect(data, until=10, **EXACT)


def test_rounds_are_the_same_from_wherever_they_go_on():
    whole = list(targets("trainings", 1000))
    assert whole == sorted(set(whole))
    assert whole[-1] == 1000
    assert list(targets("trainings", 1000, stored=whole[3])) == whole[3:]


def test_a_stopped_run_holds_what_asking_for_its_round_gives(data, tmp_path):
    run = apiece.collect(data, until="width 5", trainings=300, to=tmp_path / "run", **REUSE)
    n = run.manifest.samples
    assert n < 300
    whole = apiece.collect(data, trainings=n, **REUSE)
    assert_array_equal(run.trainings().loss, whole.trainings().loss)
    grown = apiece.collect(data, trainings=n + 10, to=tmp_path / "run", **REUSE)
    assert len(grown.trainings()) == n + 10


def test_a_limit_of_time_is_the_reason_where_nothing_else_is_met(data):
    said = []
    settings = {"progress": False, "on_progress": lambda event: said.append(event)}
    apiece.collect(data, until="0.001s or top 5", sizes=(10, 30), random_state=0, **settings)
    assert "stopped at 4 samples: 0.001 seconds. The last round is unfinished" in said[-1].message
    assert {event.unit for event in said} == {"contributions"}


def test_exact_engines_stop_too(data):
    run = apiece.collect(data, until=until.width(100) | until.seconds(1e6), samples=50, **EXACT)
    assert run.manifest.samples == 4
    assert run.is_complete


def test_after_a_deadline_no_unit_of_work_begins_and_the_same_call_goes_on(data, tmp_path):
    options = {**REUSE, "to": tmp_path / "run"}
    run = apiece.collect(data, until=until.seconds(1e-9), **options)
    assert len(run.trainings()) == 32  # one unit of work
    assert not run.is_complete
    run = apiece.collect(data, until=until.seconds(1e-9), **options)
    assert len(run.trainings()) == 64
    whole = apiece.collect(data, trainings=64, **REUSE)
    assert_array_equal(run.trainings().loss, whole.trainings().loss)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("signs", EXACT),
        ("stable 0.9", EXACT),
        ("signs & width 5", EXACT),
        ("stable 0.1", REUSE),
    ],
)
def test_a_run_that_has_met_its_criterion_stays_as_it_is(data, tmp_path, words, options):
    most = {"trainings": 300} if options is REUSE else {"samples": 60}
    request = {**options, **most, "until": words, "to": tmp_path / "run"}
    first = apiece.collect(data, **request)
    n, digest = first.manifest.samples, first.progress().digest
    assert n < next(iter(most.values()))
    shards = sorted((tmp_path / "run" / "shards").iterdir())
    shards[-1].unlink()  # as if it had been killed in its last round
    again = apiece.collect(data, **request)
    assert (again.manifest.samples, again.progress().digest) == (n, digest)


@pytest.mark.parametrize("options", [EXACT, REUSE], ids=["pairs", "reuse"])
def test_a_run_knows_the_laws_of_its_earlier_rounds(data, options):
    amounts = [64, 96] if options is REUSE else [4, 6]
    unit = "trainings" if options is REUSE else "samples"
    before, run = (apiece.collect(data, **options, **{unit: n}) for n in amounts)
    earlier = Round(run, 0.0, n_tasks=before.manifest.layout.n_tasks)
    assert_array_equal(earlier.laws.params, Round(before, 0.0).laws.params)


class Clock:
    """A clock that stands still but for the work: a second for each training or check."""

    def __init__(self):
        self.now, self.check = 0.0, 0.0

    def monotonic(self):
        return self.now


@pytest.mark.parametrize("check", [0.0, 50.0])
@pytest.mark.parametrize("limit", [150, 300])
def test_a_time_limit_is_kept_and_used(data, monkeypatch, limit, check):
    clock, real = Clock(), ReuseEngine.run

    def slow(self, task):
        clock.now += 1.0
        return real(self, task)

    def look(self):
        clock.now += check

    for module in ("_collect", "_growth", "_rounds"):
        monkeypatch.setattr(f"apiece.collection.{module}.time", clock)
    monkeypatch.setattr(ReuseEngine, "run", slow)
    monkeypatch.setattr(Round, "look", look)
    criterion = until.seconds(limit)
    if check:
        criterion = criterion | Never()
    apiece.collect(data, until=criterion, anchor=False, **REUSE)
    assert clock.now <= limit
    # A last round is planned for 0.9 of the time left, in units of 32 trainings.
    assert clock.now >= 0.9 * limit - 2 * check - 32


class Never(until.Criterion):
    def is_met(self, now):
        return False


def is_sure(stages, task, point):
    """Whether a task values a point for sure."""
    now = [stage for stage in stages if stage.start <= task][-1:]
    return not now or now[0].is_focus[point]


FOCUSED = {**EXACT, "until": until.top(5, probability=0.95), "samples": 60}


@pytest.mark.parametrize(("words", "is_known"), [("60s or top 5", True), ("top 5", False)])
def test_the_time_left_is_that_of_the_criterion_and_not_of_a_round(data, words, is_known):
    events = []
    settings = REUSE | {"trainings": 96, "on_progress": events.append}
    apiece.collect(data, until=words, **settings)
    counted = [event for event in events if event.done == event.total > 0]
    assert len(counted) >= 2
    assert {event.unit for event in counted} == {"trainings"}
    for event in counted:
        if is_known:
            assert_allclose(event.elapsed + event.remaining, 60, atol=1)
        else:
            assert np.isnan(event.remaining)


def test_points_whose_place_is_settled_are_valued_rarely_and_the_others_as_before(
    data, monkeypatch
):
    monkeypatch.setitem(_rounds._FIRST_AT, "samples", 1_000)  # sizes stay those of the design
    run = apiece.collect(data, **FOCUSED)
    n = run.manifest.samples
    whole = apiece.collect(data, **EXACT, samples=n).contributions()
    part = run.contributions()
    stages = [Stage.from_json(stage) for stage in run.manifest.stages]
    assert len(part.delta) < len(whole.delta)
    first = apiece.collect(data, **EXACT, samples=4)
    assert stages[0].start == first.manifest.layout.n_tasks  # from the second round on
    known = {(t, p): d for t, p, d in zip(whole.task, whole.point, whole.delta, strict=True)}
    ours = {(t, p): d for t, p, d in zip(part.task, part.point, part.delta, strict=True)}
    # Solved next to fewer other points, they agree to the tolerance of the solver.
    assert_allclose(list(ours.values()), [known[key] for key in ours], rtol=1e-5, atol=1e-8)
    rest = []
    for task, point in known:
        if is_sure(stages, task, point):
            assert (task, point) in ours
        else:
            rest.append((task, point) in ours)
    chance = np.array([1.0 if is_sure(stages, t, p) else CHANCE for t, p in ours])
    assert_array_equal(part.chance, chance)
    with run.streamed("1MB") as streamed:
        rows = np.concatenate([each.chance for each in streamed.parts()])
        assert_array_equal(np.sort(rows), np.sort(part.chance))
        assert_allclose(Bayes().fit(streamed).params, Bayes().fit(part).params)
    assert whole.chance is None
    # Each has a chance of 1/8; from 400 draws on the standard error is below 0.02.
    assert len(rest) > 400
    assert abs(np.mean(rest) - CHANCE) < 0.06


def test_a_focused_run_is_the_same_by_workers_and_after_damage_and_can_be_extended(
    data, tmp_path, monkeypatch
):
    monkeypatch.setitem(_rounds._FIRST_AT, "samples", 1_000)  # sizes stay those of the design
    one = apiece.collect(data, to=tmp_path / "one", **FOCUSED)
    two = apiece.collect(data, to=tmp_path / "two", n_jobs=2, **FOCUSED)
    assert one.manifest.stages == two.manifest.stages
    assert one.progress().digest == two.progress().digest
    shards = sorted((tmp_path / "two" / "shards").iterdir())
    for shard in (shards[0], shards[-1]):
        shard.unlink()
    again = apiece.collect(data, to=tmp_path / "two", **FOCUSED)
    assert again.progress().digest == one.progress().digest
    n = one.manifest.samples
    more = apiece.collect(data, to=tmp_path / "two", **EXACT, samples=n + 20)
    assert more.is_complete
    table = more.contributions()
    start = more.manifest.stages[-1]["start"]
    whole = apiece.collect(data, **EXACT, samples=n + 20).contributions()
    # A plain request values all points again, in the tasks that are new.
    assert (table.task >= start).sum() == (whole.task >= start).sum() > 0


@pytest.mark.parametrize("options", [EXACT, REUSE], ids=["pairs", "reuse"])
def test_most_later_training_sets_have_the_size_that_says_most(
    data, tmp_path, options, monkeypatch
):
    is_reuse = options is REUSE
    amount = {"trainings": 240} if is_reuse else {"samples": 60}
    monkeypatch.setitem(_rounds._FIRST_AT, "trainings", 64)
    criterion = until.width(1e-9, at=28.4)
    one = apiece.collect(data, to=tmp_path / "one", until=criterion, **options, **amount)
    two = apiece.collect(data, to=tmp_path / "two", until=criterion, n_jobs=2, **options, **amount)
    assert one.progress().digest == two.progress().digest
    stages = [stage for each in one.manifest.stages if (stage := Stage.from_json(each)).size]
    assert not is_reuse or {stage.size for stage in stages} == {28}
    table = one.trainings() if is_reuse else one.contributions()
    task, first = np.unique(table.task, return_index=True)
    k, is_later = table.k[first], task >= stages[0].start
    number = np.searchsorted([stage.start for stage in stages], task[is_later], side="right") - 1
    has_size = k[is_later] == np.array([stage.size for stage in stages])[number]
    assert abs(has_size.mean() - 0.75) < 0.15
    assert len(np.unique(k[is_later])) > 5
    # Values by Monte Carlo know how often each size was drawn.
    extra = dict(one.provenance()["extra_sizes"])
    assert set(extra) == {stage.size for stage in stages}
    assert_allclose(sum(extra.values()), 0.75 * is_later.mean(), atol=0.02)
    more = apiece.collect(
        data, to=tmp_path / "one", **options, **{word: n + 30 for word, n in amount.items()}
    )
    assert more.manifest.stages[-1].get("size", 0) == 0


def test_a_grid_keeps_its_sizes_whatever_size_the_question_is_about(data):
    run = apiece.collect(
        data, until=until.width(1e-9, at=28), samples=40, **{**EXACT, "sizes": [10, 20, 30]}
    )
    assert not run.manifest.stages
    assert set(run.contributions().k) == {10, 20, 30}


def test_a_run_that_never_reaches_its_goal_ends_at_the_most(data):
    said = []
    run = apiece.collect(
        data,
        until=until.width(1e-9),
        trainings=90,
        on_progress=lambda event: said.append(event.message),
        **REUSE,
    )
    assert run.manifest.samples == 90
    assert any("without reaching" in line for line in said)


def test_a_pilot_chooses_reuse_for_trees_and_says_why(data):
    said = []
    run = apiece.collect(
        data,
        trainings=60,
        on_progress=lambda event: said.append(event.message),
        **{**REUSE, "engine": "auto"},
    )
    assert run.manifest.engine.name == "reuse"
    assert any("by a pilot of 50 trainings" in line for line in said)


def test_a_resumed_run_keeps_its_engine_without_a_pilot(data, tmp_path):
    said = []
    options = {**REUSE, "engine": "auto", "to": tmp_path / "run"}
    apiece.collect(data, trainings=32, **options)
    options["on_progress"] = lambda event: said.append(event.message)
    apiece.collect(data, trainings=64, **options)
    assert "engine: reuse (as this run began)" in said


def test_a_pilot_prefers_pairs_where_single_trainings_vary_much(data):
    engine, _ = choose_engine(data, model=KNeighborsClassifier(25), metric="brier", engine="refit")
    assert isinstance(engine, RefitEngine)
    chosen, reason = choose_by_pilot(engine, np.arange(3), (30, 60), rotates=True)
    assert isinstance(chosen, RefitEngine)
    assert "a refit of one point says" in reason
    chosen, _ = choose_by_pilot(engine, np.arange(10**6), (30, 60), rotates=True)
    assert isinstance(chosen, ReuseEngine)


def test_trainings_become_samples_where_a_pilot_prefers_pairs(data, monkeypatch):
    monkeypatch.setattr(
        "apiece.collection._question.choose_by_pilot", lambda engine, *_, **__: (engine, "pairs")
    )
    options = {**REUSE, "engine": "auto", "points": [0, 1], "trainings": 30}
    run = apiece.collect(data, until="1h", **options)
    assert run.manifest.engine.name == "refit"
    assert run.manifest.samples == 30 // 3


def test_samples_ask_for_contributions(data):
    options = {**REUSE, "engine": "auto"}
    run = apiece.collect(data, samples=1, points=[0, 1], **options)
    assert run.manifest.engine.name == "refit"


class Restless(ClassifierMixin, BaseEstimator):
    """Predicts at random, from NumPy's global generator or from the clock."""

    def __init__(self, source="numpy"):
        self.source = source

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        rng = np.random if self.source == "numpy" else np.random.default_rng()
        self.p_ = float(rng.uniform(0.2, 0.8))
        return self

    def predict_proba(self, X):
        return np.tile([1 - self.p_, self.p_], (len(X), 1))

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_models_that_draw_from_global_generators_are_seeded(data):
    options = {**REUSE, "model": Restless()}
    state = np.random.get_state()[1].copy()  # noqa: NPY002  # the state of users
    one, two = (apiece.collect(data, trainings=30, **options).trainings().loss for _ in range(2))
    assert_array_equal(one, two)
    assert np.ptp(one) > 0
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002  # as above


def test_a_model_that_no_seed_reaches_is_warned_of(data):
    with pytest.warns(ApieceWarning, match="computes other numbers each time"):
        apiece.collect(data, trainings=30, **{**REUSE, "model": Restless("clock")})
