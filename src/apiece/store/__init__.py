"""The store: nothing that was computed is lost."""

from apiece.store._filesystem import file_system, redacted
from apiece.store._folder import FolderStore
from apiece.store._laws import check_laws, laws_of
from apiece.store._layout import Layout, Unit
from apiece.store._manifest import Manifest, refuse_mismatch
from apiece.store._memory import MemoryStore
from apiece.store._progress import Progress
from apiece.store._run import Run, open_run
from apiece.store._shards import (
    SCHEMA_VERSION,
    Footer,
    Shard,
    TaskRows,
    decode_shard,
    encode_shard,
    make_shard,
    make_training_shard,
)
from apiece.store._store import Store, grown_manifest
from apiece.store._streamed import Streamed
from apiece.store._training_shards import TrainingRow

__all__ = [
    "SCHEMA_VERSION",
    "FolderStore",
    "Footer",
    "Layout",
    "Manifest",
    "MemoryStore",
    "Progress",
    "Run",
    "Shard",
    "Store",
    "Streamed",
    "TaskRows",
    "TrainingRow",
    "Unit",
    "check_laws",
    "decode_shard",
    "encode_shard",
    "file_system",
    "grown_manifest",
    "laws_of",
    "make_shard",
    "make_training_shard",
    "open_run",
    "redacted",
    "refuse_mismatch",
]
