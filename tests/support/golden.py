"""Golden directories: small log directories that Apache Kafka wrote, kept as test data.

    tests/formats/data/directories/NAME/
        manifest.json    how it was made, and how Kafka reads it (described below)
        files/           the directory itself: `topic-0/…`, or a broker's whole log directory
        recovered/       after a crash: the same directory after Kafka has opened and closed it
        dumps/           for a broker's directory: the output of Kafka's DumpLogSegments for each file

Files that end in a long run of zeros (preallocated indexes) are kept without it; `Golden.unpack` puts the
zeros back. The manifest of a partition directory (`kind` is "partition"):

    about, kafka     one sentence; the Kafka version
    ended            "clean", "closed" (no flush) or "crashed"
    changes          later changes of the files by the test's code, in words
    steps            every call that made it, with arguments, clock (`now_ms`) and result: replay them and
                     compare the files with `files/`
    open             how to open it: config, recovery_point, log_start_offset, clean_shutdown, now_ms
    expected         after that: state, segments, producers, stable_offset (once all is replicated), aborted
                     transactions, batches of a full read from the log start (their records as offset,
                     timestamp, key, value, headers), and times: a time (or -2 earliest, -1 latest, -3 largest)
                     with the timestamp, offset and leader epoch that ListOffsets returns, or null
    sizes, sha256    of every file in files/ and recovered/

That of a broker's directory (`kind` is "data_dir") has `partitions`, with bounds, records, committed records
and times as the Java consumer saw them, instead of steps, open and expected.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DIRECTORIES = Path(__file__).resolve().parent.parent / "formats" / "data" / "directories"

# Shorter runs of zeros are kept: they may be data.
ZERO_TAIL = 512


@dataclass(frozen=True)
class Golden:
    name: str
    manifest: dict[str, Any]

    @property
    def path(self) -> Path:
        return DIRECTORIES / self.name

    def unpack(self, target: Path, tree: str = "files") -> Path:
        """Copy files/ (or recovered/) to target as Kafka left it, and return target."""
        for name, size in self.manifest["sizes"].items():
            if name.startswith(f"{tree}/"):
                copy = target / name.removeprefix(f"{tree}/")
                copy.parent.mkdir(parents=True, exist_ok=True)
                kept = (self.path / name).read_bytes()
                copy.write_bytes(kept + bytes(size - len(kept)))
        return target

    def file_digests(self, tree: str = "files") -> dict[str, str]:
        """Return the SHA-256 of every file below files/ (or recovered/), with the trailing zeros."""
        digests = self.manifest["sha256"].items()
        return {name.removeprefix(f"{tree}/"): digest for name, digest in digests if name.startswith(f"{tree}/")}


def golden(name: str) -> Golden:
    return Golden(name, json.loads((DIRECTORIES / name / "manifest.json").read_text()))


def golden_names(kind: str | None = None) -> list[str]:
    """Return the names of all golden directories, or of those of one kind ("partition", "data_dir")."""
    names = sorted(path.parent.name for path in DIRECTORIES.glob("*/manifest.json"))
    return [name for name in names if kind is None or golden(name).manifest["kind"] == kind]


def pack(source: Path, directory: Path, tree: str, manifest: dict[str, Any]) -> None:
    """Put the files below source into directory/tree without trailing zeros, and note their sizes and digests."""
    sizes = manifest.setdefault("sizes", {})
    digests = manifest.setdefault("sha256", {})
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.name != ".lock":
            data = path.read_bytes()
            name = f"{tree}/{path.relative_to(source)}"
            sizes[name] = len(data)
            digests[name] = hashlib.sha256(data).hexdigest()
            kept = data.rstrip(b"\0")
            if len(data) - len(kept) < ZERO_TAIL:
                kept = data
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(kept)
