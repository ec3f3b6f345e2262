"""Identifiers that every layer uses."""

from __future__ import annotations

import base64
import re
import uuid
from typing import NamedTuple, TypeAlias

Offset: TypeAlias = int
LeaderEpoch: TypeAlias = int
ProducerId: TypeAlias = int
BrokerId: TypeAlias = int

_UUID = re.compile(r"[A-Za-z0-9_-]{22}")

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1
NO_TIMESTAMP = -1


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicId(NamedTuple):
    """A topic's 128-bit identity, written by Kafka as 22 characters of URL-safe base64."""

    value: uuid.UUID

    @classmethod
    def parse(cls, text: str) -> TopicId:
        # Checked first, because the decoder ignores characters outside its alphabet.
        if not _UUID.fullmatch(text):
            raise ValueError(f"not a Kafka uuid: {text!r}")
        return cls(uuid.UUID(bytes=base64.urlsafe_b64decode(text + "==")))

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self.value.bytes).rstrip(b"=").decode()
