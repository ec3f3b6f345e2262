"""The names of objects in the layout of Aiven's plugin.

<prefix><topic>-<topic id>/<partition>/<first offset, 20 digits>-<segment id>.{log,indexes,rsm-manifest}
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tailrace.model.ids import Offset, TopicId
from tailrace.tiers.remote_segment import RemoteSegment

LOG: Final = ".log"
INDEXES: Final = ".indexes"
MANIFEST: Final = ".rsm-manifest"
KINDS: Final = (LOG, INDEXES, MANIFEST)
_ID = "[A-Za-z0-9_-]{22}"
_TOPIC = re.compile(rf"(.+)-({_ID})")
_OBJECT = re.compile(rf"([0-9]{{20}})-({_ID})(\.log|\.indexes|\.rsm-manifest)")
_OFFSET_MAX = 2**63 - 2


class TierObject(NamedTuple):
    """The segment and the kind that an object's name gives."""

    start_offset: Offset
    segment_id: str
    kind: str


def segment_key(prefix: str, segment: RemoteSegment) -> str:
    """Return the common start of the names of a segment's objects."""
    one = segment.segment_id
    return f"{prefix}{one.topic}-{one.topic_id}/{one.partition}/{segment.start_offset:020d}-{one.text}"


def parse_topic(name: str) -> tuple[str, TopicId] | None:
    """Return the topic of a folder, or None for any other folder."""
    found = _TOPIC.fullmatch(name)
    return None if found is None else (found[1], TopicId.parse(found[2]))


def parse_object(name: str) -> TierObject | None:
    """Return the segment of an object, or None for any other name."""
    found = _OBJECT.fullmatch(name)
    if found is None or int(found[1]) > _OFFSET_MAX:
        return None
    return TierObject(int(found[1]), found[2], found[3])
