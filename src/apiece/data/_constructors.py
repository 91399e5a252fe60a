"""The ways to make a dataset, as the class methods that `Dataset` inherits.

The work is done in the modules that these import when called, so that ``import apiece`` loads
neither pandas nor scikit-learn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from apiece._base.rng import RandomState
from apiece.data._options import FilePath, Kind, Names, TableOptions

if TYPE_CHECKING:
    import pandas as pd

    from apiece.data._dataset import Dataset


class Constructors:
    """``Dataset.from_arrays``, ``from_pandas``, ``from_csv`` and their like."""

    @classmethod
    def from_arrays(
        cls,
        X: object,
        y: object,
        *,
        X_val: object = None,
        y_val: object = None,
        ids: object = None,
        candidates: tuple[object, object] | FilePath | None = None,
        candidate_ids: object = None,
        groups: object = None,
        validation: float | None = None,
        kind: Kind | None = None,
        standardize: bool = False,
        impute: bool = False,
        feature_names: Sequence[str] | None = None,
        random_state: RandomState = 0,
    ) -> Dataset:
        """Make a dataset from features and targets in memory.

        Parameters
        ----------
        X
            Features, shape ``(n_rows, n_features)``: an array, nested lists, a frame of numbers,
            or a sparse matrix of moderate size.
        y
            Labels or quantities, shape ``(n_rows,)``.
        X_val, y_val
            A validation set of your own, shapes ``(n_validation, n_features)`` and
            ``(n_validation,)``; left out, it is carved from the rows.
        ids
            Names for the rows, shape ``(n_rows,)``; left out, the row numbers from 0.
        candidates, candidate_ids
            Points to value that are not in the pool, as in `with_candidates`.
        groups
            Names of the groups that rows enter with (a source, a batch, a user), shape
            ``(n_rows,)``, missing for none; `collect` then values groups.
        validation
            How much to carve: a fraction, a number of rows, or None for a fifth of the rows, at
            most 1,000. Classes are represented in proportion.
        kind
            ``"classification"`` or ``"regression"``; None decides from ``y``.
        standardize
            Bring every feature to mean 0 and standard deviation 1 over the pool.
        impute
            Fill missing values with the pool's median.
        feature_names
            Names of the features, shape ``(n_features,)``.
        random_state
            Seed of the carving.
        """
        from apiece.data._arrays import dataset_from_arrays

        return dataset_from_arrays(
            X,
            y,
            X_val=X_val,
            y_val=y_val,
            ids=ids,
            candidates=candidates,
            candidate_ids=candidate_ids,
            groups=groups,
            validation=validation,
            kind=kind,
            standardize=standardize,
            impute=impute,
            feature_names=feature_names,
            random_state=random_state,
        )

    @classmethod
    def from_pandas(
        cls,
        frame: pd.DataFrame,
        *,
        target: str,
        validation: float | pd.DataFrame | FilePath | None = None,
        text: Names | None = None,
        ids: str | None = None,
        groups: str | None = None,
        drop: Names = (),
        categorical: Names = (),
        standardize: bool = True,
        impute: bool = False,
        kind: Kind | None = None,
        text_features: int = 128,
        candidates: pd.DataFrame | FilePath | None = None,
        random_state: RandomState = 0,
    ) -> Dataset:
        """Make a dataset from a table; everything learned about columns is learned on the pool.

        Parameters
        ----------
        frame
            The table, one row for each point.
        target
            The column to predict.
        validation
            How much to carve (a fraction, a number of rows, or None for a fifth of the rows, at
            most 1,000), or a table of validation rows, or the file that holds one.
        text
            Columns of text, each turned into ``text_features`` numbers (tf-idf, then SVD).
        ids
            The column that names the points; left out, the row numbers from 0.
        groups
            The column that names the group that a row enters with (a source, a batch, a user),
            empty for none. It is no feature, and `collect` then values groups.
        drop
            Columns to leave out.
        categorical
            Columns of numbers to take as categories, as columns of strings are anyway. Each
            category of the pool becomes one feature; an unknown one has none of them.
        standardize
            Bring the numeric columns to mean 0 and standard deviation 1 over the pool.
        impute
            Fill missing cells: median of a number, most frequent category, empty text.
        kind
            ``"classification"`` or ``"regression"``; None decides from the target.
        text_features
            The most features made from one text column.
        candidates
            Points to value that are not in the pool: a table with the same columns, or its file.
        random_state
            Seed of the carving and of the texts' decomposition.
        """
        from apiece.data._tables import dataset_from_table

        return dataset_from_table(
            frame,
            target=target,
            validation=validation,
            text=text,
            ids=ids,
            groups=groups,
            drop=drop,
            categorical=categorical,
            standardize=standardize,
            impute=impute,
            kind=kind,
            text_features=text_features,
            candidates=candidates,
            random_state=random_state,
        )

    @classmethod
    def from_csv(cls, path: FilePath, *, target: str, **options: Unpack[TableOptions]) -> Dataset:
        """Make a dataset from a csv or tsv file with a header, gzipped or not.

        Parameters
        ----------
        path
            The file; tabs separate the cells of a ``.tsv``.
        target
            The column to predict.
        **options
            As in `from_pandas`.
        """
        from apiece.data._readers import read_csv
        from apiece.data._source import remembered

        dataset = cls.from_pandas(read_csv(path), target=target, **options)
        return remembered(dataset, path, {"target": target, **options})

    @classmethod
    def from_parquet(
        cls, path: FilePath, *, target: str, **options: Unpack[TableOptions]
    ) -> Dataset:
        """Make a dataset from a Parquet file.

        Parameters
        ----------
        path
            The file.
        target
            The column to predict.
        **options
            As in `from_pandas`.
        """
        from apiece.data._readers import read_parquet
        from apiece.data._source import remembered

        dataset = cls.from_pandas(read_parquet(path), target=target, **options)
        return remembered(dataset, path, {"target": target, **options})

    @classmethod
    def from_npz(
        cls,
        path: FilePath,
        *,
        validation: float | FilePath | None = None,
        kind: Kind | None = None,
        standardize: bool = False,
        impute: bool = False,
        groups: str | None = None,
        candidates: tuple[object, object] | FilePath | None = None,
        random_state: RandomState = 0,
    ) -> Dataset:
        """Make a dataset from the arrays of an npz file.

        Parameters
        ----------
        path
            A file with ``X`` and ``y``, and perhaps ``X_val`` and ``y_val``, ``ids``,
            ``feature_names`` and ``class_names`` (for whole numbers ``y`` from 0). No pickles.
        validation
            As in `from_arrays`, or another npz file with the ``X`` and ``y`` of a validation set.
        groups
            The array of the file that names the groups of the rows.
        kind, standardize, impute, candidates, random_state
            As in `from_arrays`.
        """
        from apiece.data._arrays import arrays_from_npz
        from apiece.data._source import remembered

        options: dict[str, Any] = {
            "kind": kind,
            "standardize": standardize,
            "impute": impute,
            "candidates": candidates,
            "random_state": random_state,
        }
        dataset = cls.from_arrays(**arrays_from_npz(path, validation, groups), **options)
        return remembered(dataset, path, {"validation": validation, "groups": groups, **options})

    @classmethod
    def from_hf(
        cls,
        dataset: Any | Mapping[str, Any],
        *,
        target: str,
        **options: Unpack[TableOptions],
    ) -> Dataset:
        """Make a dataset from a Hugging Face dataset, or from a mapping of its splits.

        Parameters
        ----------
        dataset
            Anything with ``to_pandas()``; or a mapping with a split ``"train"``, whose
            ``"validation"`` or else ``"test"`` split then is the validation set.
        target
            The column to predict; the names of a ``ClassLabel`` become the labels.
        **options
            As in `from_pandas`; ``validation`` takes precedence over the splits.
        """
        from apiece.data._hub import tables_from_hf

        frame, held_out = tables_from_hf(dataset, target)
        if held_out is not None and options.get("validation") is None:
            options["validation"] = held_out
        return cls.from_pandas(frame, target=target, **options)

    @classmethod
    def from_file(
        cls,
        path: FilePath,
        *,
        target: str | None = None,
        standardize: bool | None = None,
        **options: Any,
    ) -> Dataset:
        """Make a dataset from a csv, tsv, Parquet or npz file, by its suffix.

        Parameters
        ----------
        path
            The file.
        target
            The column to predict; tables need it, npz files have their ``y``.
        standardize
            None for what suits the format: yes for tables, no for arrays.
        **options
            As in `from_pandas` or `from_npz`; those that a format lacks must keep their defaults.
        """
        from apiece.data._files import dataset_from_file

        return dataset_from_file(path, target=target, standardize=standardize, options=options)
