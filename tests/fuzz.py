"""Readers of files under atheris, which learns what bytes reach further into our code.

It needs a package that the tests do not, and goes on until something is wrong, or for as many
rounds as asked. Whole files are the first inputs; a reader may return, or raise an `ApieceError`.

    pip install atheris
    python tests/fuzz.py shard -runs=100000
    python tests/fuzz.py csv -max_total_time=600
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["apiece"]):
    import apiece.cli  # and with it every package
    from apiece.errors import ApieceError
    from apiece.laws import Laws

from property.test_readers import READERS

from conftest import make_line


def stored(folder):
    settings = {"model": "ridge", "sizes": (6, 12), "samples": 6, "random_state": 0}
    run = apiece.collect(make_line(n=24), to=folder / "run", progress=False, **settings)
    apiece.fit(run).save(run.path / "laws.parquet")
    return run.path


def readers(folder):
    """Return for each reader its file, whole, and what reads it."""
    run = stored(folder)
    found = {
        "shard": (min((run / "shards").iterdir()), lambda file: apiece.open(run).contributions()),
        "manifest": (run / "manifest.json", lambda file: repr(apiece.open(run))),
        "points": (run / "points.parquet", lambda file: apiece.open(run).points),
        "laws": (run / "laws.parquet", Laws.load),
    }
    for kind, (whole, read) in READERS.items():
        file = folder / f"data.{kind}"
        file.write_bytes(whole)
        found[kind] = (file, read)
    return found


def main(name, *options):
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        file, read = readers(folder)[name]
        corpus = folder / "corpus"
        corpus.mkdir()
        (corpus / "whole").write_bytes(file.read_bytes())

        def once(data):
            file.write_bytes(data)
            with suppress(ApieceError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(file)

        atheris.Setup([sys.argv[0], str(corpus), "-max_len=20000", *options], once)
        atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
