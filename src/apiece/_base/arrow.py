"""Results as Arrow tables, for polars, DuckDB and everything else that reads Arrow's C stream."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


class ArrowTable:
    """A result whose `table` other libraries may read: ``polars.DataFrame(result)``."""

    @abstractmethod
    def table(self) -> pd.DataFrame:
        """Return the result as a frame."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Export the table, its named index included, as a stream of Arrow's C interface."""
        import pyarrow as pa

        return pa.Table.from_pandas(self.table()).__arrow_c_stream__(requested_schema)
