"""The dataset and the ways to make one: from arrays, tables of any kind, and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, cast

import numpy as np

from apiece._base.progress import tracking
from apiece._base.rng import RandomState, seed_from
from apiece._base.typing import AnyArray, PointIds
from apiece.data._options import (
    ArrayOptions,
    FileOptions,
    FilePath,
    Kind,
    Names,
    Steps,
    Table,
    TableOptions,
)
from apiece.data._points import PointSet
from apiece.data._rows import join_rows
from apiece.errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(PointSet):
    """Points to value, and the validation set on which their worth is measured, if there is one.

    Without a validation set nothing is set aside: rows take turns in training, scoring
    and being valued.

    Make one with `from_csv`, `from_arrays` or another constructor. A point is known by its
    position: ``0 .. n_pool - 1`` are the pool, from which training sets are drawn; from ``n_pool``
    on are the candidates, which are valued against the pool. All arrays are read-only.

    `PointSet` describes the fields.

    Examples
    --------
    >>> dataset = Dataset.from_arrays([[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"])
    >>> dataset
    Dataset(4 points x 1 feature, 2 classes, 0 validation rows, target 'target')
    >>> dataset.labels().tolist()
    ['no', 'yes', 'no', 'yes']
    >>> dataset.with_candidates(([[1.5]], ["yes"])).ids.tolist()
    [0, 1, 2, 3, 4]

    From a table, in memory or in a file:

    >>> import tempfile
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"x": [1.0, 2.0, 4.0, 8.0], "y": list("abab")}, index=list("pqrs"))
    >>> Dataset.from_pandas(frame, target="y").ids.tolist()
    ['p', 'q', 'r', 's']
    >>> Dataset.from_hf({"train": frame, "test": frame[:2]}, target="y").n_validation
    2
    >>> path = tempfile.mkdtemp() + "/rows"
    >>> frame.to_csv(path + ".csv", index=False)
    >>> Dataset.from_csv(path + ".csv", target="y").feature_names
    ('x',)
    >>> frame.to_parquet(path + ".parquet")
    >>> Dataset.from_parquet(path + ".parquet", target="y").n_pool
    4
    >>> np.savez(path + ".npz", X=frame[["x"]], y=[0.5, 0.25, 1.5, 3.0])
    >>> Dataset.from_npz(path + ".npz").kind
    'regression'
    >>> Dataset.from_file(path + ".csv", target="y", standardize=False).X.ravel().tolist()
    [1.0, 2.0, 4.0, 8.0]
    """

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
        sample_weight: object = None,
        validation: float | None = None,
        kind: Kind | None = None,
        preprocess: Any = "auto",
        standardize: bool = False,
        impute: bool = False,
        feature_names: Sequence[str] | None = None,
        random_state: RandomState = 0,
        source: dict[str, Any] | None = None,
    ) -> Dataset:
        """Make a dataset from features and targets in memory.

        Parameters
        ----------
        X
            Features, shape ``(n_rows, n_features)``: an array, nested lists, a sparse matrix, or a
            frame of numbers. float32 and sparse features are kept as they are for models that the
            refit engine trains.
        y
            Labels or quantities, shape ``(n_rows,)``.
        X_val, y_val
            A validation set of your own, shapes ``(n_validation, n_features)`` and
            ``(n_validation,)``. Left out, nothing is set aside: `collect` lets rows take turns in
            scoring, and every row is valued.
        ids
            Names for the rows, shape ``(n_rows,)``; left out, the index of a frame, or the row
            numbers from 0.
        candidates, candidate_ids
            Points to value that are not in the pool, as in `with_candidates`.
        groups
            Names of the groups that rows enter with (a source, a batch, a user), shape
            ``(n_rows,)``, missing for none; `collect` then values groups.
        sample_weight
            Weights of the rows in training, shape ``(n_rows,)``; `collect` then refits models.
        validation
            Rows to set aside as a fixed validation set: a fraction or a number of rows, with the
            classes in proportion. None (default) and 0 set nothing aside.
        kind
            ``"classification"`` or ``"regression"``; None decides from ``y``.
        preprocess
            ``"auto"`` for what ``standardize`` and ``impute`` say; a scikit-learn transformer or
            pipeline, which is fitted to the pool; or None to keep a frame as it is, so that a
            model finds its columns by name (`collect` then refits it).
        standardize
            Bring every feature to mean 0 and standard deviation 1 over the pool. False: arrays are
            taken as they are, while `from_pandas` standardises by default.
        impute
            Fill missing values with the pool's median.
        feature_names
            Names of the features, shape ``(n_features,)``.
        random_state
            Seed of the carving.
        source
            Where the arrays came from, ready for JSON.
        """
        from apiece.data._arrays import array_names, read_arrays, split_arrays
        from apiece.data._parts import fields_of_parts
        from apiece.data._preprocess import fit_numbers

        is_auto = isinstance(preprocess, str) and preprocess == "auto"
        steps: Steps | None = {"standardize": standardize, "impute": impute} if is_auto else None
        part, target = read_arrays(X, y, ids, groups, sample_weight, kind=kind, steps=steps)
        names = array_names(X, feature_names, part.rows.shape[1])
        seed = seed_from(random_state)
        split = split_arrays(part, target, (X_val, y_val, validation), steps=steps, seed=seed)
        fitted, rows, how = fit_numbers(preprocess, steps, split.pool, names)
        dataset = cls(
            **fields_of_parts(split, rows, target, fitted, names),
            preprocessing={"from": "arrays", **how, "validation": split.done},
            group_column=getattr(groups, "name", None),
            source=source,
        )
        if candidates is None:
            return dataset
        return dataset.with_candidates(candidates, ids=candidate_ids)

    @classmethod
    def from_pandas(
        cls,
        frame: Table,
        *,
        target: str,
        validation: float | Table | FilePath | None = None,
        preprocess: Any = "auto",
        text: Names | None = None,
        ids: str | None = None,
        groups: str | None = None,
        sample_weight: str | None = None,
        drop: Names = (),
        categorical: Names = (),
        standardize: bool = True,
        impute: bool = False,
        kind: Kind | None = None,
        text_features: int = 128,
        candidates: Table | FilePath | None = None,
        random_state: RandomState = 0,
        source: dict[str, Any] | None = None,
    ) -> Dataset:
        """Make a dataset from a table; everything learned about columns is learned on the pool.

        Parameters
        ----------
        frame
            The table, one row for each point: a pandas or polars frame, a DuckDB relation, an
            Arrow table, or anything else with Arrow's or the dataframe interchange protocol.
        target
            The column to predict.
        validation
            A fixed validation set: a table of rows, the file that holds one, or how many rows to
            set aside (a fraction or a number). None (default) and 0 set nothing aside: `collect`
            lets rows take turns in scoring, and every row is valued.
        preprocess
            ``"auto"`` for the steps below; a scikit-learn transformer or pipeline, which gets the
            columns that are left and is fitted to the pool; or None to keep the table as it is, so
            that a model finds its columns by name (`collect` then refits it).
        text
            Columns of text, each turned into ``text_features`` numbers (tf-idf, then SVD).
        ids
            The column that names the points; left out, the index of the frame.
        groups
            The column that names the group that a row enters with (a source, a batch, a user),
            empty for none. It is no feature, and `collect` then values groups.
        sample_weight
            The column of weights in training. It is no feature, and `collect` then refits models.
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
        source
            Where the table came from, ready for JSON.
        """
        from apiece.data._columns import decide_columns
        from apiece.data._parts import fields_of_parts
        from apiece.data._preprocess import fit_cells
        from apiece.data._tables import as_table, read_part, split_table
        from apiece.data._target import read_target

        is_auto = isinstance(preprocess, str) and preprocess == "auto"
        table = as_table(frame, "the table", id_column=ids)
        named = {
            "target": target,
            "ids": ids,
            "groups": groups,
            "sample_weight": sample_weight,
            "drop": drop,
            "text": text,
            "categorical": categorical,
        }
        columns = decide_columns(table, named, impute=impute, is_auto=is_auto)
        goal = read_target(table[columns.target], kind=kind, name=columns.target)
        part = read_part(table, columns, goal.values, "the rows of the table")
        seed = seed_from(random_state)
        split = split_table(part, columns, goal, validation, seed)
        steps = {"standardize": standardize, "impute": impute, "text_features": text_features}
        with tracking(None, title="reading the table", unit="rows"):  # texts take a while
            fitted, rows, how = fit_cells(preprocess, steps, split.pool, columns.roles, seed)
            fields = fields_of_parts(split, rows, goal, fitted, columns.features)
        dropped = list(columns.dropped)
        dataset = cls(
            **fields,
            preprocessing={"from": "table", "dropped": dropped, "validation": split.done, **how},
            columns=columns,
            group_column=columns.groups,
            source=source,
        )
        return dataset if candidates is None else dataset.with_candidates(candidates)

    from_table = from_pandas

    @classmethod
    def from_csv(cls, path: FilePath, *, target: str, **options: Unpack[TableOptions]) -> Dataset:
        """Make a dataset from a csv or tsv file with a header, gzipped or not.

        Parameters
        ----------
        path
            The file, as UTF-8. The header says whether commas, tabs, ``;`` or ``|`` separate cells;
            with ``;``, cells such as ``2,5`` are numbers.
        target
            The column to predict.
        **options
            As in `from_pandas`.
        """
        from apiece.data._readers import read_csv

        return cls._from_table_file(read_csv, path, target, options)

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

        return cls._from_table_file(read_parquet, path, target, options)

    @classmethod
    def _from_table_file(
        cls, read: Callable[[FilePath], Table], path: FilePath, target: str, options: TableOptions
    ) -> Dataset:
        from apiece.data._source import source_of

        source = source_of(path, {"target": target, **options})
        return cls.from_pandas(read(path), target=target, source=source, **options)

    @classmethod
    def from_npz(
        cls,
        path: FilePath,
        *,
        validation: float | FilePath | None = None,
        groups: str | None = None,
        **options: Unpack[ArrayOptions],
    ) -> Dataset:
        """Make a dataset from the arrays of an npz file.

        Parameters
        ----------
        path
            A file with ``X`` (or ``images``, whose pixels are the features) and ``y``, and perhaps
            ``X_val`` and ``y_val``, ``ids``, ``sample_weight``, ``feature_names`` and
            ``class_names`` (for whole numbers ``y`` from 0). No pickles.
        validation
            As in `from_arrays`, or another npz file with the ``X`` and ``y`` of a validation set.
        groups
            The array of the file that names the groups of the rows.
        **options
            ``kind``, ``preprocess``, ``standardize``, ``impute``, ``candidates`` and
            ``random_state``, as in `from_arrays`.
        """
        from apiece.data._arrays import arrays_from_npz
        from apiece.data._source import source_of

        source = source_of(path, {"validation": validation, "groups": groups, **options})
        arrays = arrays_from_npz(path, validation, groups)
        return cls.from_arrays(**arrays, source=source, **options)

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
            ``"validation"`` or else ``"test"`` split then is the validation set. Columns of lists
            of numbers (embeddings) become features.
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
        **options: Unpack[FileOptions],
    ) -> Dataset:
        """Make a dataset from a csv, tsv, JSON lines, Parquet, Arrow or npz file, by its suffix.

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
        from apiece.data._readers import existing, format_of, options_for_arrays, read_table

        if format_of(existing(path)) == "npz":
            kept = options_for_arrays(path, {"target": target, **options})
            return cls.from_npz(path, standardize=bool(standardize), **kept)
        if target is None:
            raise DataError(
                f"{str(path)!r} is a table and no target is given: expected the name of the column "
                "to predict. Pass for example target='label' (--target label)."
            )
        of_table: TableOptions = {**options, "standardize": standardize is not False}
        return cls._from_table_file(read_table, path, target, of_table)

    def with_candidates(
        self,
        candidates: tuple[object, object] | Table | FilePath,
        *,
        ids: object = None,
        groups: object = None,
    ) -> Dataset:
        """Return a dataset with further candidates: points to value that are not in the pool.

        Parameters
        ----------
        candidates
            Features and labels ``(X, y)``, as they were given to `from_arrays` (of a dataset made
            from a table: in the space of ``dataset.X``); or, of a dataset made from a table, a
            frame or a csv or Parquet file with the same columns; or, of one made from arrays, an
            npz file with ``X``, ``y`` and perhaps ``ids``.
        ids
            Names for them, shape ``(n_candidates,)``, or the column that holds the names. Left
            out, the table's id column serves, then an index that is not just row numbers; without
            one, whole numbers go on after the largest of the pool and the validation rows, and
            strings read ``candidate-0`` and so on.
        groups
            Names of their groups, shape ``(n_candidates,)``. Left out, the table's column of groups
            serves; without one, they belong to no group.
        """
        from apiece.data._candidates import read_candidates
        from apiece.data._source import joined

        new = read_candidates(self, candidates, ids, groups)
        weight = self.sample_weight
        return replace(
            self,
            rows=join_rows(self.rows, new.rows),
            points_y=np.concatenate([self.points_y, new.y]),
            ids=PointIds(np.concatenate([self.ids, cast(AnyArray, new.ids)])),
            source=joined(self.source, candidates, ids),
            groups=new.groups,
            sample_weight=None if weight is None else np.append(weight, cast(AnyArray, new.weight)),
        )
