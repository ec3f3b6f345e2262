"""LeaderEpochs: the start offset of each leader epoch, stored in `leader-epoch-checkpoint`. They show where two logs
diverge.

An entry (epoch, offset) means that the records from this offset up to the next entry were written under this leader
epoch. Epochs and offsets both grow from entry to entry. The file is

    0            version
    2            number of entries
    0 0          epoch, start offset
    4 1170
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tailrace.log.disk.checkpoints import read_entries, write_entries
from tailrace.log.disk.files import Files
from tailrace.model.ids import NO_LEADER_EPOCH, LeaderEpoch, Offset


class EpochStart(NamedTuple):
    epoch: LeaderEpoch
    start_offset: Offset


class EpochEnd(NamedTuple):
    """The offset up to which a log agrees with another log that has an epoch, and the own epoch there."""

    epoch: LeaderEpoch
    end_offset: Offset


UNKNOWN_END = EpochEnd(NO_LEADER_EPOCH, -1)


class LeaderEpochs:
    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        self.entries: list[EpochStart] = []
        self._stored: list[EpochStart] = []  # the epochs that the file durably has
        self.is_written = True  # False if the epochs have changed since they were read or written
        self._is_awaited = False  # True if epochs without records have to be written, too
        self.write_soon: Callable[[], None] | None = None  # set if background work writes the file

    def load(self) -> None:
        """Read the file. A missing file is empty. Raise CorruptCheckpoint for a malformed one."""
        self.entries = []
        for first, second in read_entries(self._files, self.path, 2, missing_ok=True):
            self._append_entry(EpochStart(int(first), int(second)))
        self._stored = list(self.entries)

    def load_for_recovery(self) -> None:
        """Read the file. Nothing is written until `recovered`."""
        self.load()
        self.write_soon = lambda: None

    def recovered(self, start_offset: Offset, end_offset: Offset) -> None:
        """Apply the bounds that recovery found, when the epochs of unflushed records are known.

        The file is written later, because a start that syncs thousands of them takes long. A crash loses nothing.
        """
        self.truncate_end(end_offset)
        self.truncate_start(start_offset)
        self.write_soon = None
        self.is_written = self.entries == self._stored

    @property
    def latest(self) -> EpochStart | None:
        return self.entries[-1] if self.entries else None

    @property
    def earliest(self) -> EpochStart | None:
        return self.entries[0] if self.entries else None

    def assign(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        """Record that `epoch` writes from `start_offset` on. Usually it is the latest epoch already."""
        latest = self.entries[-1] if self.entries else None
        if latest is None or epoch != latest.epoch or start_offset < latest.start_offset:
            assert epoch >= 0, f"invalid leader epoch {epoch}"
            assert start_offset >= 0, f"invalid start offset {start_offset}"
            before = list(self.entries)
            self._append_entry(EpochStart(epoch, start_offset))
            try:
                self.changed()
            except OSError:
                self.entries = before  # otherwise the next call would not write it
                raise

    def _append_entry(self, entry: EpochStart) -> None:
        # Entries that contradict the new one are wrong, because epochs and offsets never decrease.
        while self.entries and (
            self.entries[-1].epoch >= entry.epoch or self.entries[-1].start_offset >= entry.start_offset
        ):
            self.entries.pop()
        self.entries.append(entry)

    def end_of(self, epoch: LeaderEpoch, log_end_offset: Offset) -> EpochEnd:
        """Return the offset at which the log stops agreeing with a log whose last epoch is `epoch`, for
        OffsetForLeaderEpoch."""
        if epoch == NO_LEADER_EPOCH:
            return UNKNOWN_END
        if self.latest is not None and self.latest.epoch == epoch:
            return EpochEnd(epoch, log_end_offset)
        higher = next((entry for entry in self.entries if entry.epoch > epoch), None)
        if higher is None:
            return UNKNOWN_END
        floor = next((entry for entry in reversed(self.entries) if entry.epoch <= epoch), None)
        return EpochEnd(floor.epoch if floor else epoch, higher.start_offset)

    def epoch_of(self, offset: Offset) -> LeaderEpoch | None:
        """Return the epoch in which an offset was written, or None if it is before all of them."""
        return next((entry.epoch for entry in reversed(self.entries) if entry.start_offset <= offset), None)

    def truncate_end(self, end_offset: Offset) -> bool:
        """Drop the epochs that start at or after the log end. Return True if there were any. The caller writes the
        file."""
        before = len(self.entries)
        while self.entries and self.entries[-1].start_offset >= end_offset:
            self.entries.pop()
            self.is_written = False
        return len(self.entries) < before

    def truncate_start(self, start_offset: Offset) -> bool:
        """Drop the epochs before the log start. The epoch that covers the start then begins there. The caller writes
        the file."""
        before = list(self.entries)
        covering = None
        while self.entries and self.entries[0].start_offset <= start_offset:
            covering = self.entries.pop(0)
        if covering is not None:
            self.entries.insert(0, EpochStart(covering.epoch, start_offset))
        return self.entries != before

    def clear(self) -> None:
        self.entries = []
        self.changed()

    def changed(self) -> None:
        """Schedule a write of the file, or write it now if there is no background work."""
        self.is_written = False
        if self.write_soon is None:
            self.write()
        else:
            self.write_soon()

    def write(self) -> None:
        write_epochs(self._files, self.path, self.entries)
        self.note_written()

    def note_written(self) -> None:
        """Note that background work has written the current entries."""
        self._stored = list(self.entries)
        self.is_written, self._is_awaited = True, False

    def is_behind(self, log_end: Offset) -> bool:
        """Return True if the file lacks epochs that it needs: those of records, because a start drops the others."""
        if self.is_written:
            return False
        return self._is_awaited or _with_records(self.entries, log_end) != _with_records(self._stored, log_end)

    def write_without_records(self) -> bool:
        """Return True if the file has all epochs, also those without records. Otherwise it is written, soon or now."""
        if not self.is_written:
            self._is_awaited = True
            self.changed()
        return self.is_written

    def moved_to(self, path: str) -> None:
        """Record that the partition's folder was renamed."""
        self.path = path

    def write_by(self, write_soon: Callable[[], None]) -> None:
        """Let background work write the file from now on."""
        self.write_soon = write_soon
        if not self.is_written:
            write_soon()

    def make_durable(self, log_end: Offset) -> bool:
        """Return True if the file has the epochs of all records. Otherwise it is written, soon or now."""
        if not self.is_behind(log_end):
            return True
        if self.write_soon is not None:
            self.write_soon()
            return False
        self.write()
        return True

    def write_if_there(self) -> None:
        """Write the file unless its folder was removed."""
        if self._files.exists(self.path.rpartition("/")[0]):
            self.write()


def _with_records(entries: list[EpochStart], log_end: Offset) -> list[EpochStart]:
    return [entry for entry in entries if entry.start_offset < log_end]


def write_epochs(
    files: Files, path: str, entries: Iterable[tuple[LeaderEpoch, Offset]], *, sync_name: bool = True
) -> None:
    write_entries(files, path, [f"{epoch} {offset}" for epoch, offset in entries], sync_name=sync_name)
