from __future__ import annotations

from apiece.store import FolderStore, MemoryStore
from apiece.testing import StoreContract


class TestFolderStore(StoreContract):
    def make(self, tmp_path, manifest, points):
        return FolderStore.create(tmp_path / "run", manifest, points)


class TestMemoryStore(StoreContract):
    def make(self, tmp_path, manifest, points):
        return MemoryStore(manifest, points)
