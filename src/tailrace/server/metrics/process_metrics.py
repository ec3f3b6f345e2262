"""Metrics of the process and its build, with the names of Prometheus' client libraries."""

from __future__ import annotations

import gc
import os
import platform
import resource
import time
from collections.abc import Iterator
from typing import Final

import tailrace
from tailrace.metrics.families import Family, Kind, Sample, counter, gauge
from tailrace.model.kernel_forms import interpreted_kernels
from tailrace.server.connections.descriptors import open_descriptors

KAFKA_VERSION: Final = "4.3.1"  # the version whose protocol and files are implemented
_PAGE_BYTES: Final = resource.getpagesize()
_HAS_PROC: Final = os.path.exists("/proc/self/statm")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def process_families() -> Iterator[Family]:
    yield Family(
        "tailrace_build",
        Kind.INFO,
        "Version and build of this program.",
        [
            Sample(
                {
                    "version": tailrace.__version__,
                    "kafka_version": KAFKA_VERSION,
                    "python_version": platform.python_version(),
                    "kernels": "interpreted" if interpreted_kernels() else "compiled",
                },
                1,
            )
        ],
    )
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield counter("process_cpu_seconds", "CPU time used, in seconds.", usage.ru_utime + usage.ru_stime)
    if _HAS_PROC:
        virtual, resident = _memory_bytes()
        yield gauge("process_virtual_memory_bytes", "Address space.", virtual)
        yield gauge("process_resident_memory_bytes", "Memory in use.", resident)
    yield gauge("process_open_fds", "Open file descriptors.", open_descriptors() - 1)
    yield gauge(
        "process_max_fds", "Maximum number of open file descriptors.", resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    )
    yield gauge("process_start_time_seconds", "Start time of the process, in seconds since 1970.", _START_S)
    yield Family(
        "python_gc_collections",
        Kind.COUNTER,
        "Runs of the garbage collector.",
        [Sample({"generation": str(number)}, one["collections"]) for number, one in enumerate(gc.get_stats())],
    )


def _memory_bytes() -> tuple[int, int]:
    with open("/proc/self/statm", "rb", buffering=0) as file:
        total, resident, *_ = file.read().split()
    return int(total) * _PAGE_BYTES, int(resident) * _PAGE_BYTES


def _started_s() -> float:
    """Return the start time of the process: from Linux in ticks since the boot, elsewhere the time of this import."""
    if not _HAS_PROC:
        return time.time()
    with open("/proc/self/stat", "rb", buffering=0) as file:
        ticks = int(file.read().rpartition(b")")[2].split()[19])
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / _TICKS


_START_S: Final = _started_s()
