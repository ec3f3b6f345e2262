"""DataDirectory: the contents of a data directory by its names and checkpoints. Nothing is opened or changed.

The directory may be written by Apache Kafka or by Tailrace, and may be stopped, crashed or in use. A checkpoint that
cannot be read is a finding and is treated as missing. The folder of a single partition is accepted too. Its checkpoints
are those of the parent directory, if there are any.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from tailrace.log.directories.shards_file import SHARDS_FILE, ShardedDirectory, read_shards, shard_folder
from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import CorruptCheckpoint, DirectoryIdentity, read_clean_shutdown, read_offsets
from tailrace.log.disk.files import Entry, Files, join
from tailrace.log.inspect.findings import Finding, InspectionFailed, Severity
from tailrace.model.ids import Offset, TopicPartition

CHECKPOINTS = (
    file_names.RECOVERY_POINT_CHECKPOINT,
    file_names.LOG_START_CHECKPOINT,
    file_names.HIGH_WATERMARK_CHECKPOINT,
    file_names.CLEANER_CHECKPOINT,
)
MARKS = {
    file_names.DELETE_FOLDER: "deleted",
    file_names.STRAY_FOLDER: "stray",
    file_names.FUTURE_FOLDER: "future",
}
_METADATA_FOLDER = f"{file_names.CLUSTER_METADATA_TOPIC}-0"


class NotADataDirectory(InspectionFailed):
    """A directory without any files of Kafka."""


@dataclass(frozen=True, slots=True)
class PartitionFolder:
    """One partition's folder and its entries in the directory's checkpoints."""

    path: str
    partition: TopicPartition
    mark: str = ""  # deleted, stray or future
    recovery_point: Offset | None = None
    log_start_offset: Offset | None = None
    high_watermark: Offset | None = None
    cleaned_to: Offset | None = None
    is_clean: bool = False  # the directory's last stop was clean

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(slots=True)
class DataDirectory:
    path: str
    is_clean: bool = False
    identity: DirectoryIdentity | None = None
    folders: list[PartitionFolder] = field(default_factory=list)
    checkpoints: dict[str, dict[TopicPartition, Offset]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def keep_folders(self, is_wanted: Callable[[PartitionFolder], bool]) -> None:
        """Drop the folders that the caller does not want."""
        self.folders = [folder for folder in self.folders if is_wanted(folder)]


def read_data_directory(files: Files, path: str) -> DataDirectory:
    """Return the partitions of a data directory, or the one of a partition's folder. Raise OSError if it cannot be
    listed."""
    entries = files.entries(path)
    if any(entry.name == SHARDS_FILE for entry in entries):
        return _read_shards(files, path, {entry.name for entry in entries})
    if any(file_names.parse_segment_file(entry.name) for entry in entries) or _looks_like_partition(path, entries):
        return _look_at_partition(files, path)
    directory = _read_directory(files, path, entries)
    names = {entry.name for entry in entries}
    if not directory.folders and not directory.checkpoints and file_names.META_PROPERTIES not in names:
        raise NotADataDirectory(
            f"{path} is not a data directory: it has no topic-N folder, no segment and no checkpoint"
        )
    return directory


def _read_shards(files: Files, path: str, names: Collection[str]) -> DataDirectory:
    """Return the partitions of all shards as those of one directory."""
    try:
        folders = [shard_folder(path, number) for number in range(1, read_shards(files, path) + 1)]
    except ShardedDirectory as error:
        raise NotADataDirectory(str(error)) from error
    shards = [read_data_directory(files, one) for one in folders if one.rpartition("/")[2] in names]
    together = DataDirectory(path, all(one.is_clean for one in shards), shards[0].identity if shards else None)
    for one in shards:
        together.folders += one.folders
        together.findings += one.findings
        for name, offsets in one.checkpoints.items():
            together.checkpoints.setdefault(name, {}).update(offsets)
    return together


def _looks_like_partition(path: str, entries: list[Entry]) -> bool:
    own = {file_names.LEADER_EPOCH_CHECKPOINT, file_names.PARTITION_METADATA}
    return file_names.parse_partition_folder(path.rpartition("/")[2]) is not None and any(
        entry.name in own for entry in entries
    )


def _look_at_partition(files: Files, path: str) -> DataDirectory:
    parent, _, name = path.rpartition("/")
    partition = file_names.parse_partition_folder(name)
    if partition is None:
        raise NotADataDirectory(f"{path} has segments, but its name is not that of a partition's folder (topic-N)")
    parent = parent or ("/" if path.startswith("/") else ".")
    try:
        directory = _read_directory(files, parent, files.entries(parent))
    except OSError:
        # The parent directory may be unreadable. Only the folder itself was requested.
        directory = DataDirectory(parent)
    directory.folders = [_folder(directory, path, partition)]
    return directory


def _read_directory(files: Files, path: str, entries: list[Entry]) -> DataDirectory:
    directory = DataDirectory(path)
    names = {entry.name for entry in entries}
    for name in CHECKPOINTS:
        if name in names:
            directory.checkpoints[name] = _read_checkpoint(files, join(path, name), directory.findings)
    if file_names.META_PROPERTIES in names:
        try:
            directory.identity = DirectoryIdentity.read(files, join(path, file_names.META_PROPERTIES))
        except CorruptCheckpoint as error:
            directory.findings.append(_finding(error))
        except OSError as error:
            directory.findings.append(os_finding(error))
    try:
        directory.is_clean = read_clean_shutdown(files, join(path, file_names.CLEAN_SHUTDOWN)) is not None
    except OSError as error:
        directory.findings.append(os_finding(error))
    for entry in entries:
        partition = file_names.parse_partition_folder(entry.name) if entry.is_directory else None
        if partition is not None:
            directory.folders.append(_folder(directory, join(path, entry.name), partition))
    directory.folders.sort(key=lambda folder: (folder.partition, folder.name))
    return directory


def _read_checkpoint(files: Files, path: str, findings: list[Finding]) -> dict[TopicPartition, Offset]:
    try:
        return read_offsets(files, path)
    except CorruptCheckpoint as error:
        findings.append(_finding(error))
    except OSError as error:
        findings.append(os_finding(error))
    return {}


def _folder(directory: DataDirectory, path: str, partition: TopicPartition) -> PartitionFolder:
    name = path.rpartition("/")[2]
    mark = next((word for suffix, word in MARKS.items() if file_names.is_marked(name, suffix)), "")

    def checkpointed(checkpoint: str) -> Offset | None:
        offsets: Mapping[TopicPartition, Offset] = {} if mark else directory.checkpoints.get(checkpoint, {})
        return offsets.get(partition)

    return PartitionFolder(
        path,
        partition,
        mark,
        recovery_point=checkpointed(file_names.RECOVERY_POINT_CHECKPOINT),
        log_start_offset=checkpointed(file_names.LOG_START_CHECKPOINT),
        high_watermark=checkpointed(file_names.HIGH_WATERMARK_CHECKPOINT),
        cleaned_to=checkpointed(file_names.CLEANER_CHECKPOINT),
        # The marker applies to logs that were open. It does not apply to the metadata log or to a log that was deleted
        # before.
        is_clean=directory.is_clean and name != _METADATA_FOLDER and not mark,
    )


def _finding(error: CorruptCheckpoint) -> Finding:
    return Finding(error.path, str(error).removeprefix(f"{error.path}: "))


def os_finding(error: OSError, severity: Severity = Severity.PROBLEM) -> Finding:
    return Finding(str(error.filename or "?"), f"cannot be read: {error.strerror}", severity=severity)
