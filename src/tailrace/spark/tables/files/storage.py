"""Storage: the location of a table's data files, on this machine or in an object store. It can be sent to a worker.

Iceberg tables are accessed with the FileIO properties of their catalog, Delta tables with the storage options of
delta-rs. Both include credentials, or take them from the environment of each worker. Data files are never renamed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from tailrace.spark.jobs.errors import JobError, can_heal
from tailrace.spark.jobs.spark_session import first_sentence


class Storage(Protocol):
    @property
    def location(self) -> str:
        """The address of the table."""

    def opened(self) -> tuple[Any, str]:
        """Return a pyarrow file system, and the path of the table in it."""


@dataclass(frozen=True, slots=True)
class IcebergStorage:
    location: str
    properties: dict[str, str] = field(repr=False)

    def opened(self) -> tuple[Any, str]:
        from pyiceberg.io.pyarrow import PyArrowFileIO

        scheme, netloc, path = PyArrowFileIO.parse_location(self.location, self.properties)
        return PyArrowFileIO(self.properties).fs_by_scheme(scheme, netloc), path.rstrip("/")


@dataclass(frozen=True, slots=True)
class DeltaStorage:
    location: str
    options: dict[str, str] = field(repr=False)

    def opened(self) -> tuple[Any, str]:
        from tailrace.spark.tables.files.delta_files import delta_file_system

        return delta_file_system(self.location, self.options), ""


@contextmanager
def storage_errors(storage: Storage) -> Iterator[None]:
    """Raise errors of a file system or an object store, which have no common class, as JobErrors."""
    try:
        yield
    except JobError:
        raise
    except Exception as error:
        text = f"the files of table {storage.location} cannot be accessed: {first_sentence(error)}"
        raise JobError(text, is_transient=can_heal(error)) from error


def delete_folder(storage: Storage, folder: str, *, keep: frozenset[str] = frozenset()) -> int:
    """Delete the files below a folder of the table, except those to keep. Return their number."""
    from pyarrow import fs

    system, root = storage.opened()
    base = f"{root}/{folder}" if root else folder
    deleted = 0
    for info in system.get_file_info(fs.FileSelector(base, recursive=True, allow_not_found=True)):
        name = f"{folder}/{info.path.rpartition(f'{folder}/')[2]}"
        if info.type == fs.FileType.File and name not in keep:
            system.delete_file(info.path)
            deleted += 1
    return deleted
