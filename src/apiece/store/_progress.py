"""How far a run is, counted from the footers of its shards."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from apiece.store._store import Store


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Parameters
    ----------
    n_contributions, n_planned
        Contributions stored, and planned altogether.
    n_shards, n_shards_planned
        Complete units of work, and units altogether.
    failed
        Message for each task that could not be computed.
    certificate
        The largest remaining error that the engine reported, or nan.
    notes
        Counts that the engine reported, summed over the run.
    digest
        Digest of which contributions are stored, from the footers of the shards.

    Examples
    --------
    >>> Progress(10, 20, 1, 2, failed={}, certificate=0.0, notes={}).is_complete
    False
    """

    n_contributions: int
    n_planned: int
    n_shards: int
    n_shards_planned: int
    failed: dict[int, str]
    certificate: float
    notes: dict[str, int]
    digest: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether every unit of work is stored."""
        return self.n_shards == self.n_shards_planned


def count_progress(store: Store) -> Progress:
    """Count what is stored, from the footers of the shards alone.

    Raises
    ------
    StoreError
        If a shard is truncated; other damage shows when its contributions are read.
    """
    n_rows = n_complete = 0
    failed: dict[int, str] = {}
    notes: dict[str, int] = {}
    certificates = [float("nan")]
    digest = hashlib.blake2b(digest_size=16)
    for index in store.indices():
        footer = store.footer(index)
        digest.update(f"{index} {footer.n_rows} {footer.digest}\n".encode())
        n_rows += footer.n_rows
        n_complete += footer.completes(store.layout.unit(index))
        failed |= footer.failed
        certificates.append(footer.certificate)
        for name, count in footer.notes.items():
            notes[name] = notes.get(name, 0) + count
    return Progress(
        n_contributions=n_rows,
        n_planned=store.manifest.n_contributions,
        n_shards=n_complete,
        n_shards_planned=len(store.layout),
        failed=failed,
        certificate=float(np.fmax.reduce(certificates)),
        notes=notes,
        digest=digest.hexdigest(),
    )
