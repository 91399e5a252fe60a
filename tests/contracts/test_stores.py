from __future__ import annotations

from apiece.store import FolderStore, MemoryStore
from apiece.testing import StoreContract


class TestFolderStore(StoreContract):
    def make(self, tmp_path):
        return FolderStore(tmp_path / "run")

    def damage(self, store, index):
        file = store.path / "shards" / f"shard-{index:08d}.parquet"
        data = bytearray(file.read_bytes())
        data[len(data) // 4] ^= 1
        file.write_bytes(data)


class TestMemoryStore(StoreContract):
    def make(self, tmp_path):
        return MemoryStore()


class TestObjectStore(StoreContract):
    def make(self, tmp_path):
        return FolderStore(f"memory://{tmp_path.name}/run")
