"""From the columns of a table to features, with everything learned from the pool alone.

Numeric columns come first, then booleans as 0 and 1, then one feature for each category that the
pool holds (an unknown category has none of them), then the texts' directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from apiece._base.rng import stream
from apiece._base.typing import AnyArray, FloatArray
from apiece.data._cells import Cells
from apiece.data._columns import Roles
from apiece.data._numeric import NumericEncoder
from apiece.data._text import TextEncoder
from apiece.errors import DataError

_WRITING: Final = 0x74657874  # the stream of the texts' decomposition
_MOST_ENTRIES: Final = 500_000_000  # 4 GB of float64


@dataclass(frozen=True)
class FrameEncoder:
    """What the pool taught about a table's columns, to encode further rows alike.

    Parameters
    ----------
    roles
        The columns and what they are.
    numbers
        Encoder of the numeric and boolean columns.
    levels
        Categories of each categorical column, in rising order.
    common
        The most frequent category of each categorical column.
    texts
        Encoder of each text column.
    impute
        Whether missing cells are filled.
    id_column
        The column that names the rows, if any.
    """

    roles: Roles
    numbers: NumericEncoder
    levels: dict[str, tuple[str, ...]]
    common: dict[str, str]
    texts: dict[str, TextEncoder]
    impute: bool
    id_column: str | None

    @classmethod
    def fit(
        cls,
        pool: Cells,
        roles: Roles,
        *,
        standardize: bool,
        impute: bool,
        text_features: int,
        seed: int,
        id_column: str | None = None,
    ) -> tuple[FrameEncoder, FloatArray]:
        """Learn from the pool's cells; return the encoder and their features.

        Parameters
        ----------
        pool
            The pool's cells, whose numbers are used up.
        roles
            The columns and what they are.
        standardize, impute, text_features
            As in `Dataset.from_pandas`.
        seed
            Seed of the texts' decomposition.
        id_column
            The column that names the rows, if any.

        Returns
        -------
        tuple of FrameEncoder and FloatArray
            The features have shape ``(n_pool, n_features)``.
        """
        numbers = NumericEncoder.fit(
            pool.numbers,
            roles.numeric + roles.boolean,
            standardize=standardize,
            impute=impute,
            is_boolean=np.arange(pool.numbers.shape[1]) >= len(roles.numeric),
        )
        levels = {name: _levels(name, column) for name, column in pool.words.items()}
        common = {name: _most_common(pool.words[name], levels[name]) for name in levels}
        texts, blocks = {}, []
        for j, (name, column) in enumerate(pool.texts.items()):
            text_seed = int(stream(seed, _WRITING, j).integers(2**31))
            texts[name], block = TextEncoder.fit(
                column, name, n_features=text_features, seed=text_seed
            )
            blocks.append(block)
        encoder = cls(roles, numbers, levels, common, texts, impute, id_column)
        return encoder, encoder._assemble(pool, blocks)

    def encode(self, rows: Cells) -> FloatArray:
        """Return the features of further rows, whose numbers are used up.

        Parameters
        ----------
        rows
            Cells of the same columns as the pool's.

        Returns
        -------
        FloatArray
            Shape ``(n_rows, n_features)``.
        """
        return self._assemble(
            rows, [self.texts[name].encode(rows.texts[name]) for name in self.texts]
        )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features: ``age``, ``city=Paris``, ``review[0]``."""
        return (
            *self.roles.numeric,
            *self.roles.boolean,
            *(f"{name}={level}" for name, levels in self.levels.items() for level in levels),
            *(f"{name}[{j}]" for name, text in self.texts.items() for j in range(text.n_features)),
        )

    def describe(self) -> dict[str, Any]:
        """Return what becomes of the columns, ready for JSON."""
        return {
            "numeric": len(self.roles.numeric),
            "boolean": list(self.roles.boolean),
            "categorical": {name: len(levels) for name, levels in self.levels.items()},
            "text": {name: text.n_features for name, text in self.texts.items()},
        }

    def _assemble(self, rows: Cells, text_blocks: list[FloatArray]) -> FloatArray:
        """Encode numbers and categories, and write all blocks side by side."""
        n_rows, n_numbers = rows.numbers.shape
        width = self._width(n_rows)
        numbers = self.numbers.encode(rows.numbers)
        if n_numbers == width:
            return numbers
        X = np.zeros((n_rows, width))
        X[:, :n_numbers] = numbers
        start = n_numbers
        for name, levels in self.levels.items():
            words = rows.words[name]
            if self.impute:
                words = np.where(pd.isna(words), self.common[name], words)
            code = _codes(words, levels)
            known = np.flatnonzero(code >= 0)
            X[known, start + code[known]] = 1.0
            start += len(levels)
        for block in text_blocks:
            X[:, start : start + block.shape[1]] = block
            start += block.shape[1]
        X += 0.0  # -0.0 becomes 0.0, so that equal features have equal bytes
        return X

    def _width(self, n_rows: int) -> int:
        width = len(self.feature_names)
        if n_rows * width > _MOST_ENTRIES and self.levels:
            widest = max(self.levels, key=lambda name: len(self.levels[name]))
            raise DataError(
                f"{n_rows:,} rows become {width:,} features each, {len(self.levels[widest]):,} of "
                f"them categories of {widest!r}: expected at most {_MOST_ENTRIES:,} numbers in "
                f"all. Drop that column (drop=[{widest!r}], --drop {widest}), or pass fewer rows."
            )
        return width


def _codes(words: AnyArray, levels: tuple[str, ...]) -> AnyArray:
    """Return positions in ``levels``, -1 for words that are not there, shape ``(n_rows,)``."""
    return pd.Index(levels, dtype=object).get_indexer(pd.Index(words, dtype=object))


def _levels(name: str, words: AnyArray) -> tuple[str, ...]:
    levels = tuple(sorted(pd.unique(words[pd.notna(words)]).tolist()))
    if not levels:
        raise DataError(
            f"column {name!r} has no value at all in the pool: expected at least one category. "
            f"Drop it (drop=[{name!r}], --drop {name})."
        )
    return levels


def _most_common(words: AnyArray, levels: tuple[str, ...]) -> str:
    return levels[int(np.bincount(_codes(words[pd.notna(words)], levels)).argmax())]
