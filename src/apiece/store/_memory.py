"""`MemoryStore`: shards in a dictionary."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from apiece.errors import StoreError
from apiece.records import Anchor
from apiece.store._manifest import Manifest
from apiece.store._shards import Footer, Shard
from apiece.store._store import Store, grown_manifest

if TYPE_CHECKING:
    import pandas as pd


class MemoryStore(Store):
    """Shards in a dictionary, for as long as the process lives; safe for several threads.

    Parameters
    ----------
    manifest, points
        As for `start`; leave them out to hand an empty store to ``collect(to=...)``.

    Examples
    --------
    >>> import apiece
    >>> from apiece.data import load_demo
    >>> store = MemoryStore()
    >>> _ = apiece.collect(load_demo()[0], to=store, sizes=(20, 40), samples=3, progress=False)
    >>> store.manifest.engine.name
    'logistic'
    """

    def __init__(
        self, manifest: Manifest | None = None, points: pd.DataFrame | None = None
    ) -> None:
        self._manifest = manifest
        self._points = points
        self._shards: dict[int, Shard] = {}
        self._anchor: Anchor | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def __str__(self) -> str:
        return "memory"

    @property
    def manifest(self) -> Manifest:
        """What the run is about."""
        if self._manifest is None:
            raise StoreError(
                "this store holds no run yet: expected one that was started. Pass it to "
                "collect(..., to=store) first."
            )
        return self._manifest

    @property
    def points(self) -> pd.DataFrame:
        """The points by position: ``id``, ``label``, ``role``, ``valued``."""
        assert self._points is not None, self.manifest  # a run has both
        return self._points

    def has_run(self) -> bool:
        """Whether a run has been started here."""
        return self._manifest is not None

    def start(self, manifest: Manifest, points: pd.DataFrame) -> None:
        """Start a run, or accept the request as `extend` does."""
        with self._lock:
            if self._manifest is None:
                self._manifest, self._points = manifest, points
                return
        self.extend(manifest)

    def extend(self, manifest: Manifest) -> None:
        """Accept a manifest that asks for as many or more samples of the same contributions."""
        with self._lock:
            stored = self.manifest
            self._manifest = grown_manifest("this run", stored, manifest) or stored

    def write(self, shard: Shard) -> None:
        """Keep a shard, unless the one that is there holds as much."""
        with self._lock:
            known = self._shards.get(shard.index)
            if known is None or shard.footer.holds_more_than(known.footer):
                self._shards[shard.index] = shard

    @property
    def anchor(self) -> Anchor | None:
        """Losses of models trained on nearly all rows; None before `keep_anchor`."""
        return self._anchor

    def keep_anchor(self, anchor: Anchor) -> None:
        """Keep an anchor."""
        self._anchor = anchor

    def indices(self) -> list[int]:
        """Return the indices of the shards that are there, rising."""
        with self._lock:
            return sorted(self._shards)

    def footer(self, index: int) -> Footer:
        """Return the description of a shard."""
        return self.read(index).footer

    def read(self, index: int) -> Shard:
        """Return a shard."""
        if index not in self._shards:
            raise FileNotFoundError(f"shard {index} is not in memory")
        return self._shards[index]
