"""The files of a Delta table as a pyarrow file system, with the storage options of delta-rs.

pyarrow hands its own buffers to an output stream, but the streams of delta-rs accept only bytes.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem


class _Output:
    """An output stream of delta-rs that accepts buffers."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        return int(self._stream.write(bytes(data)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Handler(DeltaStorageHandler):
    def open_output_stream(self, path: str, metadata: dict[str, str] | None = None) -> Any:
        return pa.PythonFile(_Output(self._handler.open_output_stream(path, metadata)), mode="w")


def delta_file_system(uri: str, options: dict[str, str]) -> Any:
    """Return the file system whose root is the table."""
    return PyFileSystem(_Handler(uri, options))
