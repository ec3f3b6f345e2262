"""The forms of the kernels: compiled if there was a C compiler at installation, otherwise interpreted.

Both forms give the same results. Interpreted kernels are slower, so `tailrace --version`, the first line of `serve` and
the metric tailrace_build_info report which form runs.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Final

KERNELS: Final = (
    "tailrace.records.kernels",
    "tailrace.records.header_kernels",
    "tailrace.records.checks.check_kernels",
    "tailrace.records.codecs.codec_kernels",
    "tailrace.records.columnar.columns",
    "tailrace.records.columnar.column_encoder",
    "tailrace.records.columnar.json_lines",
    "tailrace.log.compaction.cleaner_kernels",
    "tailrace.log.recovery.scan_kernels",
    "tailrace.log.segments.indexes.index_kernels",
    "tailrace.log.replicated.replicated_kernels",
    "tailrace.coordinator.offsets.offset_kernels",
    "tailrace.protocol.flat.read_kernels",
    "tailrace.protocol.flat.write_kernels",
)


@cache
def interpreted_kernels() -> tuple[str, ...]:
    """Return the names of the kernels that are not compiled."""
    specs = {name: find_spec(name) for name in KERNELS}
    return tuple(name for name, spec in specs.items() if spec is None or (spec.origin or "").endswith(".py"))


def describe_kernels() -> str:
    missing = len(interpreted_kernels())
    if not missing:
        return "compiled kernels"
    if missing == len(KERNELS):
        return "interpreted kernels"
    return f"{missing} of {len(KERNELS)} kernels interpreted"
