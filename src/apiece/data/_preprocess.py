"""Features by scikit-learn: the default transformer of a table, and how any transformer is applied.

Everything is learned from the pool's rows alone. By default numeric columns are imputed and
standardised, categories become one feature each (an unknown category has none of them), texts
become the leading directions of their tf-idf weights, and embeddings stay as they are.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from apiece._base.rng import stream
from apiece._base.text import first_line, in_shell
from apiece._base.typing import AnyArray, FloatArray
from apiece.data._cells import check_scale, read_cells
from apiece.data._columns import Roles, decide_roles
from apiece.data._options import Steps
from apiece.data._parts import Part
from apiece.data._rows import Rows, float_type, is_frame, is_sparse
from apiece.errors import DataError

_WRITING: Final = 0x74657874  # the random stream of the texts' decomposition
_MOST_WORDS: Final = 50_000
_MOST_ENTRIES: Final = 500_000_000  # 4 GB of float64


class TextFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # no stubs
    """Latent semantic analysis of a column of texts: tf-idf weights, then a truncated SVD.

    It differs from a pipeline of scikit-learn's parts in two ways. It keeps fewer directions if
    texts are few or short. And its bits depend only on the texts and the seed: the decomposition
    runs on one thread, and sums are taken in the same order for the pool and for later rows.

    Parameters
    ----------
    n_features
        The most features to keep.
    random_state
        Seed of the randomised decomposition.
    """

    def __init__(self, n_features: int = 128, random_state: int = 0) -> None:
        self.n_features = n_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> TextFeatures:
        """Learn vocabulary, weights and directions from texts, shape ``(n_rows,)``."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Learn from texts and return their features, shape ``(n_rows, n_kept)``."""
        self.words_ = CountVectorizer(max_features=_MOST_WORDS, dtype=np.float64)
        try:
            counts = self.words_.fit_transform(X)
        except ValueError as error:  # scikit-learn's "empty vocabulary"
            name = getattr(X, "name", "text")
            raise DataError(
                f"text column {name!r} holds no word of two letters or more in the pool's "
                f"{len(X):,} rows: expected texts. Drop it (drop=[{name!r}], --drop "
                f"{in_shell(name)}) instead of naming it in text= (--text)."
            ) from error
        counts.sort_indices()
        self.weights_ = TfidfTransformer(sublinear_tf=True).fit(counts)
        weighted = self.weights_.transform(counts)
        n_rows, n_words = weighted.shape
        self.n_kept_ = max(1, min(self.n_features, n_words - 1, n_rows - 1))
        if n_words == 1:  # whose weight is the only feature
            self.directions_ = None
            return np.asarray(weighted.toarray())
        self.directions_ = TruncatedSVD(self.n_kept_, random_state=self.random_state)
        # The ratio of explained variance, which is not used, is 0/0 when all texts are equal.
        with threadpool_limits(1), np.errstate(divide="ignore", invalid="ignore"):
            self.directions_.fit(weighted)
        return np.asarray(self.directions_.transform(weighted))

    def transform(self, X: Any) -> FloatArray:
        """Return the features of texts, shape ``(n_rows, n_kept)``."""
        weighted = self.weights_.transform(self.words_.transform(X))
        if self.directions_ is None:
            return np.asarray(weighted.toarray())
        return np.asarray(self.directions_.transform(weighted))

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return ``name[0]``, ``name[1]`` and so on."""
        name = "text" if input_features is None else input_features[0]
        return np.array([f"{name}[{j}]" for j in range(self.n_kept_)], dtype=object)


def table_transformer(
    roles: Roles, *, standardize: bool, impute: bool, text_features: int, seed: int
) -> ColumnTransformer:
    """Return the default transformer of a table, not fitted yet.

    Parameters
    ----------
    roles
        The columns, and what they are.
    standardize, impute, text_features
        As in `Dataset.from_pandas`.
    seed
        Seed of the texts' decomposition.
    """
    _check_text_features(text_features)
    spread = [f"{name}[{j}]" for name, width in roles.embedding.items() for j in range(width)]
    common = SimpleImputer(strategy="most_frequent") if impute else "passthrough"
    one_hot = OneHotEncoder(
        handle_unknown="ignore", sparse_output=False, feature_name_combiner=_named_category
    )
    blocks: list[tuple[str, Any, Any]] = [
        ("numeric", numeric_transformer(standardize, impute) or "passthrough", list(roles.numeric)),
        ("boolean", common, list(roles.boolean)),
        ("categorical", make_pipeline(common, one_hot), list(roles.categorical)),
        ("embedding", numeric_transformer(False, impute) or "passthrough", spread),
    ]
    for j, name in enumerate(roles.text):
        text_seed = int(stream(seed, _WRITING, j).integers(2**31))
        blocks.append((f"text{j}", TextFeatures(text_features, text_seed), name))
    return ColumnTransformer(
        [block for block in blocks if len(block[2])],
        sparse_threshold=0.0,
        verbose_feature_names_out=False,
    )


def numeric_transformer(standardize: bool, impute: bool) -> Any:
    """Return the default transformer of numbers; None if nothing is to be done."""
    steps = [SimpleImputer(strategy="median")] * impute + [StandardScaler()] * standardize
    return make_pipeline(*steps) if steps else None


def check_pool(pool: pd.DataFrame, roles: Roles, *, standardize: bool, impute: bool) -> None:
    """Raise an error for cells of the pool that the default transformer cannot learn from."""
    names = list(roles.numeric + roles.boolean)
    check_scale(pool[names].to_numpy(), names, standardize=standardize, impute=impute)
    n_levels = {name: pool[name].nunique() for name in roles.categorical}
    for name, n in n_levels.items():
        if not n:
            raise DataError(
                f"column {name!r} has no value at all in the pool: expected at least one category. "
                f"Drop it (drop=[{name!r}], --drop {in_shell(name)})."
            )
    n_features = pool.shape[1] - len(n_levels) + sum(n_levels.values())
    if n_levels and len(pool) * n_features > _MOST_ENTRIES:
        widest = max(n_levels, key=lambda name: n_levels[name])
        raise DataError(
            f"{len(pool):,} rows become {n_features:,} features each, {n_levels[widest]:,} of them "
            f"categories of {widest!r}: expected at most {_MOST_ENTRIES:,} numbers in all. Drop "
            f"that column (drop=[{widest!r}], --drop {in_shell(widest)}), or pass fewer rows."
        )


def describe_columns(transformer: ColumnTransformer, roles: Roles) -> dict[str, Any]:
    """Return what became of the columns, ready for JSON."""
    parts = transformer.named_transformers_
    levels = parts["categorical"][-1].categories_ if roles.categorical else []
    described: dict[str, Any] = {
        "numeric": len(roles.numeric),
        "boolean": list(roles.boolean),
        "categorical": {
            name: len(level) for name, level in zip(roles.categorical, levels, strict=True)
        },
        "text": {name: parts[f"text{j}"].n_kept_ for j, name in enumerate(roles.text)},
    }
    return described | ({"embedding": dict(roles.embedding)} if roles.embedding else {})


def fit_numbers(
    preprocess: Any, steps: Steps | None, pool: Part, names: Sequence[str]
) -> tuple[Any, Rows, dict[str, Any]]:
    """Fit what turns arrays into features to the pool.

    Parameters
    ----------
    preprocess
        The transformer of a user; not used with ``steps``.
    steps
        What the default transformer does; None for that of a user.
    pool, names
        Rows of the pool, and names of their columns.

    Returns
    -------
    tuple
        The fitted transformer, the features of the pool, and a description for JSON.
    """
    if steps is None:
        return _fit_given(preprocess, pool)
    if any(steps.values()):
        check_scale(pool.rows, names, **steps)
    fitted, rows = fit_transformer(numeric_transformer(**steps), pool.rows, pool.y)
    return fitted, rows, dict(steps.items())


def fit_cells(
    preprocess: Any, steps: dict[str, Any], pool: Part, roles: Roles | None, seed: int
) -> tuple[Any, Rows, dict[str, Any]]:
    """Fit what turns the cells of a table into features to the pool.

    Parameters
    ----------
    preprocess
        The transformer of a user; not used with ``roles``.
    steps
        ``standardize``, ``impute`` and ``text_features``, as in `table_transformer`.
    pool
        Rows of the pool.
    roles
        Roles of the columns; None for the transformer of a user.
    seed
        Seed of the texts' decomposition.

    Returns
    -------
    tuple
        As of `fit_numbers`.
    """
    if roles is None:
        return _fit_given(preprocess, pool)
    how = {name: steps[name] for name in ("standardize", "impute")}
    check_pool(pool.rows, roles, **how)
    fitted, rows = fit_transformer(table_transformer(roles, **steps, seed=seed), pool.rows, pool.y)
    described = {**how, "columns": describe_columns(fitted, roles)}
    return fitted, rows, described | ({"text_seed": seed} if roles.text else {})


def _fit_given(preprocess: Any, pool: Part) -> tuple[Any, Rows, dict[str, Any]]:
    """Fit the transformer of a user, which its class describes; None leaves rows as they are."""
    name = None if preprocess is None else type(preprocess).__qualname__
    return *fit_transformer(preprocess, pool.rows, pool.y), {"preprocess": name}


def fit_transformer(transformer: Any, pool: Rows, y: AnyArray) -> tuple[Any, Rows]:
    """Fit a copy of a transformer to the pool and return it with the pool's features.

    Parameters
    ----------
    transformer
        Anything with scikit-learn's ``fit`` and ``transform``; None to leave rows as they are.
    pool, y
        Rows of the pool, and their class codes or quantities, which a transformer may use.
    """
    if transformer is None:
        return None, as_features(pool)
    if not hasattr(transformer, "transform") or not hasattr(transformer, "fit"):
        raise DataError(
            f"preprocess={transformer!r} is no transformer: expected 'auto', None, or an object "
            "with scikit-learn's fit and transform. Pass for example preprocess=StandardScaler()."
        )
    fitted = clone(transformer, safe=False)
    try:
        if hasattr(fitted, "fit_transform"):
            return fitted, as_features(_numbers_in(fitted.fit_transform(pool, y)))
        return fitted.fit(pool, y), as_features(_numbers_in(fitted.transform(pool)))
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"the transformer failed on the rows of the pool ({type(error).__name__}: "
            f"{first_line(error)}): expected one that turns them into features. Fix the "
            "transformer (preprocess=) or the rows."
        ) from error


def transform(transformer: Any, rows: Rows, where: str) -> Rows:
    """Return the features of further rows by a fitted transformer, or the rows as they are."""
    if transformer is None:
        return as_features(rows)
    try:
        return as_features(_numbers_in(transformer.transform(rows)))
    except Exception as error:
        raise DataError(
            f"the transformer failed on {where} ({type(error).__name__}: {first_line(error)}): "
            "expected rows like those of the pool. Fix those rows, or the transformer "
            "(preprocess=)."
        ) from error


def default_encoder(pool: pd.DataFrame) -> Callable[[pd.DataFrame], FloatArray]:
    """Return a function that turns rows of a table into numbers, fitted to the pool.

    It is the default preprocessing. Missing cells are imputed, and columns that the default
    preprocessing refuses are left out.
    """
    usable = []
    for name in pool.columns:
        with suppress(DataError):
            decide_roles(pool[[name]], text=(), categorical=(), skip=())
            usable.append(str(name))
    roles = decide_roles(pool[usable] if usable else pool, text=(), categorical=(), skip=())
    transformer = table_transformer(
        roles, standardize=True, impute=True, text_features=1, seed=0
    ).fit(read_cells(pool, roles, impute=True, where="the pool"))

    def encode(rows: pd.DataFrame) -> FloatArray:
        cells = read_cells(rows, roles, impute=True, where="the rows")
        return np.asarray(transformer.transform(cells), dtype=np.float64)

    return encode


def feature_names(transformer: Any, features: Rows, names: Sequence[str]) -> tuple[str, ...]:
    """Return a name for each feature: the transformer's, the columns', or ``x0``, ``x1``, ..."""
    n_features = features.shape[1]
    if is_frame(features):
        return tuple(str(name) for name in features.columns)
    made = names
    for given in ((), (names,)):
        # Not every transformer names its features, or takes other names than those it has seen.
        with suppress(Exception):
            made = transformer.get_feature_names_out(*given)
    if len(made) != n_features:
        made = [f"x{j}" for j in range(n_features)]
    return tuple(str(name) for name in made)


def as_features(rows: Any) -> Rows:
    """Return rows as they are kept: a frame, a CSR matrix, or a float32 or float64 array.

    The result shares no memory with ``rows``. -0.0 becomes 0.0, so that equal features have equal
    bytes.
    """
    if is_frame(rows):
        return rows.reset_index(drop=True)
    if is_sparse(rows):
        kept = rows.tocsr(copy=True).astype(float_type(rows.dtype))
        kept.sum_duplicates()
        return kept
    matrix = np.asarray(rows)
    return np.add(matrix, 0.0, dtype=float_type(matrix.dtype), order="C")


def _numbers_in(rows: Any) -> Any:
    """Return the matrix of a frame that holds nothing but numbers; anything else as it is."""
    if is_frame(rows) and all(is_numeric_dtype(dtype) for dtype in rows.dtypes):
        return rows.to_numpy()
    return rows


def _named_category(column: str, category: object) -> str:
    return f"{column}={category}"


def _check_text_features(text_features: object) -> None:
    is_whole = isinstance(text_features, numbers.Integral) and not isinstance(text_features, bool)
    if not isinstance(text_features, numbers.Integral) or not is_whole or int(text_features) < 1:
        raise DataError(
            f"text_features={text_features!r} is not a number of features: expected a whole number "
            "of at least 1. Pass for example text_features=128."
        )
