"""ApiMeter: counts, sizes and times of one API's requests; RequestTimes: the timestamps of one request."""

from __future__ import annotations

from typing import Final

from tailrace.metrics.histogram import Histogram

_SIZE_BITS: Final = range(6, 27, 2)  # 63 bytes to 64 MB


class ApiMeter:
    """The requests of one API."""

    __slots__ = (
        "bytes", "local", "name", "queue", "remote", "response", "sizes", "throttle", "total", "versions",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.versions: dict[int, VersionMeter] = {}
        self.bytes = 0
        self.sizes = [0] * 33  # requests by the bits of their size
        self.queue = Histogram()  # counts only times above the first bound; the sum has all
        self.local = Histogram()
        self.remote = Histogram()  # of requests that waited
        self.response = Histogram()
        self.throttle = Histogram()  # of throttled requests
        self.total = Histogram()

    @property
    def requests(self) -> int:
        return sum(version.requests for version in self.versions.values())

    def size_histogram(self) -> Histogram:
        histogram = Histogram([2**bits - 1 for bits in _SIZE_BITS])
        low = 0
        for index, bits in enumerate(_SIZE_BITS):
            histogram.counts[index] = sum(self.sizes[low : bits + 1])
            low = bits + 1
        histogram.counts[-1] = sum(self.sizes[low:])
        histogram.total = self.bytes
        return histogram


class VersionMeter:
    """The requests of one version of an API."""

    __slots__ = ("api", "requests")

    def __init__(self, api: ApiMeter) -> None:
        self.api = api
        self.requests = 0


class RequestTimes:
    """The times of one request at the broker."""

    __slots__ = ("handled_ns", "meter", "read_ns", "request", "taken_ns")

    def __init__(self, meter: ApiMeter, read_ns: int, taken_ns: int) -> None:
        self.meter = meter
        self.read_ns = read_ns
        self.taken_ns = self.handled_ns = taken_ns
        self.request: dict[str, object] = {}  # fields of the request log

    def handled(self, now_ns: int) -> None:
        """Note that the broker has returned."""
        self.handled_ns = now_ns
        self.meter.local.add(now_ns - self.taken_ns)
