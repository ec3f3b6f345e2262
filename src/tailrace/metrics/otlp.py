"""read_points: the numbers in an OTLP MetricsData message (OpenTelemetry's protobuf format of metrics).

Clients send the message, so its cost is bounded. Only the fields named below are read, and the known messages nest six
levels deep, so nothing here recurses. A message with more than FIELDS_MAX fields is refused.

    MetricsData      1 resource metrics
    ResourceMetrics  1 resource (1 attributes), 2 scope metrics
    ScopeMetrics     2 metrics
    Metric           1 name, 5 gauge, 7 sum; 9, 10 and 11 are histograms and summaries, which are counted as skipped
    Gauge, Sum       1 data points; of a sum: 2 temporality, 3 is monotonic
    NumberDataPoint  7 attributes, 4 value as double, 6 value as integer, 8 flags
    KeyValue         1 key, 2 value (1 string, 2 boolean, 3 integer, 4 double)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from struct import Struct
from typing import Final, NamedTuple

FIELDS_MAX: Final = 25_000  # take 20 to 50 ms
NAME_SIZE_MAX: Final = 255
ATTRIBUTES_MAX: Final = 10  # of a point, with those of its resource
TEXT_LENGTH_MAX: Final = 128  # of an attribute's key or value; longer ones are truncated

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DOUBLE: Final = Struct("<d")
_INT64: Final = Struct("<q")
_DELTA: Final = 1  # AGGREGATION_TEMPORALITY_DELTA
_NO_VALUE: Final = 1  # DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK


class MalformedMetricsData(ValueError):
    """The bytes are not a MetricsData message, or one with too many fields."""


class Point(NamedTuple):
    """A number with its name and attributes."""

    name: str
    attributes: Mapping[str, str]
    value: float
    is_counter: bool  # a sum that only grows
    is_delta: bool  # the change since the last message, not the total


class Points(NamedTuple):
    points: list[Point]
    skipped: int  # histograms, metrics with a long name, and points and metrics above the limit


class _Field(NamedTuple):
    number: int
    kind: int  # wire type
    value: int  # of a varint; for other types the position of the first byte
    end: int


def read_points(data: bytes, points_max: int) -> Points:
    """Return the points of a message, at most `points_max`.

    Raises MalformedMetricsData.
    """
    reader = _Reader(data, points_max)
    reader.read_message()
    return Points(reader.points, reader.skipped)


class _Reader:
    def __init__(self, data: bytes, points_max: int) -> None:
        self.points: list[Point] = []
        self.skipped = 0
        self._data = data
        self._points_max = points_max
        self._fields_left = FIELDS_MAX

    def read_message(self) -> None:
        for resource in self._messages(0, len(self._data), 1):
            attributes: dict[str, str] = {}
            for found in self._messages(resource.value, resource.end, 1):
                for entry in self._messages(found.value, found.end, 1):
                    self._read_attribute(entry, attributes)
            for scope in self._messages(resource.value, resource.end, 2):
                for metric in self._messages(scope.value, scope.end, 2):
                    if len(self.points) < self._points_max:
                        self._read_metric(metric, attributes)
                    else:
                        self.skipped += 1

    def _read_metric(self, metric: _Field, resource: Mapping[str, str]) -> None:
        name = ""
        data: list[_Field] = []
        for field in self._fields(metric.value, metric.end):
            if field.kind != _BYTES:
                continue
            if field.number == 1:
                name = self._text(field) if field.end - field.value <= NAME_SIZE_MAX else ""
            elif field.number in (5, 7):
                data.append(field)
            elif field.number in (9, 10, 11):
                self.skipped += 1
        for one in data:
            if name:
                self._read_data(name, one, resource)
            else:
                self.skipped += 1

    def _read_data(self, name: str, data: _Field, resource: Mapping[str, str]) -> None:
        """Read the points of a gauge or a sum."""
        is_delta = is_counter = False
        points: list[_Field] = []
        for field in self._fields(data.value, data.end):
            if field.number == 1 and field.kind == _BYTES:
                points.append(field)
            elif field.number == 2 and field.kind == _VARINT:
                is_delta = field.value == _DELTA
            elif field.number == 3 and field.kind == _VARINT:
                is_counter = field.value != 0
        if data.number == 5:
            is_delta = is_counter = False
        for point in points:
            if len(self.points) >= self._points_max:
                self.skipped += 1
                continue
            attributes = dict(resource)
            value = self._read_point(point, attributes)
            if math.isfinite(value):
                self.points.append(Point(name, attributes, value, is_counter, is_delta))

    def _read_point(self, point: _Field, attributes: dict[str, str]) -> float:
        """Return the value of a point, NaN if it has none, and add its attributes."""
        value: float = math.nan
        for field in self._fields(point.value, point.end):
            if field.number == 7 and field.kind == _BYTES:
                self._read_attribute(field, attributes)
            elif field.number == 4 and field.kind == _FIXED64:
                value = _DOUBLE.unpack_from(self._data, field.value)[0]
            elif field.number == 6 and field.kind == _FIXED64:
                value = _INT64.unpack_from(self._data, field.value)[0]
            elif field.number == 8 and field.kind == _VARINT and field.value & _NO_VALUE:
                return math.nan
        return value

    def _read_attribute(self, entry: _Field, attributes: dict[str, str]) -> None:
        key = text = ""
        for field in self._fields(entry.value, entry.end):
            if field.kind != _BYTES:
                continue
            if field.number == 1:
                key = self._text(field)[:TEXT_LENGTH_MAX]
            elif field.number == 2:
                text = self._value_text(field)[:TEXT_LENGTH_MAX]
        if key and (key in attributes or len(attributes) < ATTRIBUTES_MAX):
            attributes[key] = text

    def _value_text(self, value: _Field) -> str:
        """Return an AnyValue as text, "" for lists and bytes."""
        for field in self._fields(value.value, value.end):
            if field.number == 1 and field.kind == _BYTES:
                return self._text(field)
            if field.number == 2 and field.kind == _VARINT:
                return "true" if field.value else "false"
            if field.number == 3 and field.kind == _VARINT:
                return str(field.value - (1 << 64) if field.value >> 63 else field.value)
            if field.number == 4 and field.kind == _FIXED64:
                return repr(_DOUBLE.unpack_from(self._data, field.value)[0])
        return ""

    def _text(self, field: _Field) -> str:
        try:
            return self._data[field.value : field.end].decode()
        except UnicodeDecodeError as error:
            raise MalformedMetricsData(f"the string at byte {field.value} is not UTF-8") from error

    def _messages(self, position: int, end: int, number: int) -> Iterator[_Field]:
        """Yield the embedded messages with this field number."""
        return (field for field in self._fields(position, end) if field.number == number and field.kind == _BYTES)

    def _fields(self, position: int, end: int) -> Iterator[_Field]:
        """Yield the fields of a message that lies between two positions."""
        while position < end:
            self._fields_left -= 1
            if self._fields_left < 0:
                raise MalformedMetricsData(f"the message has more than {FIELDS_MAX} fields")
            tag, position = self._varint(position, end)
            kind = tag & 7
            value, stop = position, position
            if kind == _VARINT:
                value, stop = self._varint(position, end)
            elif kind == _BYTES:
                size, value = self._varint(position, end)
                stop = value + size
            elif kind == _FIXED64:
                stop = position + 8
            elif kind == _FIXED32:
                stop = position + 4
            else:
                raise MalformedMetricsData(f"wire type {kind} at byte {position} is unknown")
            if stop > end:
                raise MalformedMetricsData(f"the field at byte {position} is longer than its message")
            yield _Field(tag >> 3, kind, value, stop)
            position = stop

    def _varint(self, position: int, end: int) -> tuple[int, int]:
        data = self._data
        value = shift = 0
        while position < end and shift < 70:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFF_FFFF_FFFF_FFFF, position
            shift += 7
        raise MalformedMetricsData(f"the number before byte {position} does not end")
