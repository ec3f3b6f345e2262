"""CRC-32C (Castagnoli), the checksum of v2 record batches and producer snapshots, at hardware speed.

The function is from the package `crc32c`. Its extension module is loaded without running the package, because the
package reads its own version and thereby imports much of the standard library. That would delay the broker's start.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any, cast

Crc32c = Callable[..., int]


def _load() -> Crc32c:
    package = find_spec("crc32c")  # finds the package without running it
    places = None if package is None else package.submodule_search_locations
    spec = None if places is None else PathFinder.find_spec("_crc32c", list(places))
    if spec is None or spec.loader is None:
        from crc32c import crc32c as whole

        return cast(Crc32c, whole)
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Crc32c, module.crc32c)


crc32c = _load()

__all__ = ["crc32c"]
