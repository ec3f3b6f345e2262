"""GroupCommits: commits the progress of a stream to a consumer group, so that lag tools show it.

Spark's checkpoint decides where a stream resumes; the offsets of the group are never read. So a commit that fails for
now does not end the query: the next batch commits later offsets anyway. A permanent refusal, because the group has
members or the client lacks permission, ends the query with an error.

Each commit has a note as its metadata: what reads, a stream or the export of a table, and when it committed. By the
note `tailrace cluster queries` finds the group.
"""

from __future__ import annotations

import json
import logging
import time
from typing import Any, Final, NamedTuple

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.errors import ClientError
from tailrace.client.groups.group_offsets import OffsetAndMetadata, commit_offsets
from tailrace.spark.source.errors import NotCommitted
from tailrace.spark.source.options import WireOptions
from tailrace.spark.source.planning.offset_ranges import Offsets

_log = logging.getLogger(__name__)


_TABLE_NAME_MAX: Final = 1_000


class ReaderNote(NamedTuple):
    """The metadata of a committed offset."""

    table: str | None  # the table that the reader exports to; None for a stream
    time_ms: int
    batch: int | None = None  # the number of the batch since the reader started, from 1 on
    offsets: int | None = None  # how many offsets it went forward; None for the first batch

    def text(self) -> str:
        kind = "table" if self.table else "stream"
        fields = {
            "tailrace": kind,
            "table": self.table,
            "at": self.time_ms,
            "batch": self.batch,
            "offsets": self.offsets,
        }
        return json.dumps({name: value for name, value in fields.items() if value is not None or name == "table"})


def parse_note(text: str) -> ReaderNote | None:
    """Return the note, or None if the offset was committed by something else."""
    try:
        fields: Any = json.loads(text)
        if fields["tailrace"] not in ("stream", "table"):
            return None
        numbers = (None if fields.get(name) is None else int(fields[name]) for name in ("batch", "offsets"))
        return ReaderNote(None if fields["table"] is None else str(fields["table"]), int(fields["at"]), *numbers)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


class GroupCommits:
    def __init__(self, group: str, wire: WireOptions, *, table: str | None = None) -> None:
        """`table` is the name of the table that the reader exports to."""
        self._group = group
        self._table = None if table is None else table[:_TABLE_NAME_MAX]
        self._cluster = ClusterClient(wire.bootstrap, wire.settings)
        self._coordinators = Coordinators(self._cluster)
        self._batches = 0
        self._last: Offsets | None = None  # the offsets of the last batch

    def commit(self, offsets: Offsets) -> None:
        """Commit the end offsets of a batch."""
        self._batches += 1
        last, self._last = self._last, dict(offsets)
        moved = None if last is None else sum(offset - last.get(one, 0) for one, offset in offsets.items())
        note = ReaderNote(self._table, int(time.time() * 1_000), self._batches, moved).text()
        commits = {partition: OffsetAndMetadata(offset, note) for partition, offset in offsets.items()}
        try:
            commit_offsets(self._coordinators, self._group, commits)
        except ClientError as error:
            if not error.is_retriable:
                raise NotCommitted(f"offsets cannot be committed to group {self._group}: {error}") from None
            _log.warning("cannot commit offsets to group %s, the next batch will retry: %s", self._group, error)

    def close(self) -> None:
        self._cluster.close()
