"""EncodedTopics: a cache of encoded topics for Metadata responses.

Clients that request all topics of a large cluster get nearly the same response each time. The bytes of a topic depend
on the listener, the version, the topic's image, and the registrations of the brokers with replicas of it. An image or
registration that changes becomes another object. So a cached topic is valid while these objects are identical.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from tailrace.metadata.image.image import TopicImage
from tailrace.metadata.image.registrations import BrokerRegistration
from tailrace.model.ids import BrokerId
from tailrace.model.steps import Steps
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.error_codes import error_counter
from tailrace.protocol.messages import MetadataResponse
from tailrace.protocol.primitives import uvarint

Brokers: TypeAlias = Mapping[BrokerId, BrokerRegistration]
Describe: TypeAlias = Callable[[TopicImage], MetadataResponse.MetadataResponseTopic]

_KEPT_BYTES_MAX: Final = 64 * 1024 * 1024  # about a million partitions in one version
_FORMS_MAX: Final = 4  # cached pairs of listener and version
_CLUSTER_OPERATIONS: Final = range(8, 11)
_FLEXIBLE_FROM: Final = 9
_ERROR_FROM: Final = first_version_with("MetadataResponse", "error_code")


class _Encoded(NamedTuple):
    topic: TopicImage
    data: bytes
    codes: dict[int, int]  # how often it contains an error code


class _Form:
    """The encoded topics for one listener and version."""

    def __init__(self, brokers: Brokers) -> None:
        self.brokers = brokers
        self.topics: dict[bytes, _Encoded] = {}
        self.size = 0


class EncodedTopics:
    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], _Form] = {}  # by listener and version, in the order of last use
        self.encoded = 0  # topics encoded so far

    def clear(self) -> None:
        """Forget all encoded topics."""
        self._kept.clear()

    def of(
        self,
        topics: Iterable[TopicImage],
        brokers: Brokers,
        listener: str,
        version: int,
        describe: Describe,
        codes: defaultdict[int, int],
    ) -> Steps[list[bytes]]:
        """Return each topic's bytes, and pause after each. `codes` counts the error codes in them."""
        before = self._kept.get((listener, version))
        known: Mapping[bytes, _Encoded] = {} if before is None else before.topics
        changed = _changed({} if before is None else before.brokers, brokers)
        room = _KEPT_BYTES_MAX - sum(one.size for one in self._kept.values() if one is not before)
        now = _Form(brokers)
        found: list[bytes] = []
        for topic in topics:
            encoded = known.get(topic.id)
            if encoded is None or encoded.topic is not topic or (changed and _is_on(topic, changed)):
                encoded = self._encode(topic, version, describe)
            found.append(encoded.data)
            for code, count in encoded.codes.items():
                codes[code] += count
            if now.size < room:
                now.topics[topic.id] = encoded
                now.size += len(encoded.data)
            yield
        self._kept.pop((listener, version), None)
        self._kept[listener, version] = now
        while len(self._kept) > _FORMS_MAX:
            del self._kept[next(iter(self._kept))]
        return found

    def _encode(self, topic: TopicImage, version: int, describe: Describe) -> _Encoded:
        self.encoded += 1
        alone = MetadataResponse(topics=[describe(topic)])
        codes: defaultdict[int, int] = defaultdict(int)
        error_counter(MetadataResponse)(alone, codes)
        codes[alone.error_code] -= 1  # the error code of the response itself
        data = alone.encode(version)
        tail = _tail_size(version)
        return _Encoded(topic, data[_head_size(version) : len(data) - tail], dict(codes))


def _changed(before: Brokers, now: Brokers) -> set[BrokerId]:
    """Return the brokers whose registrations have changed."""
    return set() if before is now else {one for one in {*before, *now} if before.get(one) is not now.get(one)}


def _is_on(topic: TopicImage, brokers: set[BrokerId]) -> bool:
    return not all(brokers.isdisjoint(partition.replicas) for partition in topic.partitions.values())


@cache
def _head_size(version: int) -> int:
    """Return the size of the fields before the topics. The count of topics has the same size for none and for one."""
    return len(MetadataResponse().encode(version)) - _tail_size(version)


def _tail_size(version: int) -> int:
    """Return the size of the fields after the topics."""
    return 4 * (version in _CLUSTER_OPERATIONS) + 2 * (version >= _ERROR_FROM) + (version >= _FLEXIBLE_FROM)


class WholeMetadata(MetadataResponse):
    """A response whose topics are already encoded."""

    encoded_topics: list[bytes]

    def write(self, parts: list[Any], version: int) -> None:
        without = self.encode(version)
        end = len(without) - _tail_size(version)
        count = len(self.encoded_topics)
        is_flexible = version >= _FLEXIBLE_FROM
        size = uvarint(count + 1) if is_flexible else count.to_bytes(4, "big")
        parts += [without[: end - (1 if is_flexible else 4)] + size, *self.encoded_topics, without[end:]]
