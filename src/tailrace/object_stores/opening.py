"""Opens the files of a location: of this machine, or of an object store."""

from __future__ import annotations

from tailrace.log.disk.files import DiskFiles, Files
from tailrace.object_stores.object_files import ObjectFiles
from tailrace.object_stores.store import ArrowStore
from tailrace.object_stores.store_address import Place


def files_of(place: Place) -> Files:
    return DiskFiles() if place.settings is None else ObjectFiles(ArrowStore(place.settings))
