"""QuickCommit: an OffsetCommit of any number of partitions, carried out without the objects of the general way.

All its partitions exist, their metadata is short, its client has the rights that it takes, and the group lets the
member commit whatever it likes. Everything else and everything that is refused is left to `apis/offset_commit.py`: the
same request leaves the same records and gets the same answer, byte for byte, on either way.
"""

from __future__ import annotations

from typing import Final

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.requests.request_context import ConnectionContext, Reply
from tailrace.broker.security.authorizer import AclResource, Operation, rights_of
from tailrace.broker.services import Services
from tailrace.coordinator.groups.group import CommittedOffset, Committer
from tailrace.coordinator.groups.group_coordinator import GroupCoordinator
from tailrace.coordinator.offsets.offset_bytes import METADATA_SIZE_MAX, key_start, value_end
from tailrace.coordinator.shard import PackedRecords, StateChange
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.codegen.field_versions import OFFSET_TOPIC_IDS
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.primitives import Buffer
from tailrace.protocol.request_kernels import (
    Committing,
    commit_answer,
    commits_size,
    encode_commits,
    read_offset_commit,
    take_commits,
)

RECORDS_MAX: Final = 4_096  # of one commit; larger ones are handled in pieces
RECORDS_BYTES_MAX: Final = 1 << 18  # for the group's name, which stands in each record


class QuickCommit:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._codes = services.replies.errors_of(ApiKey.OFFSET_COMMIT)
        self._rights = rights_of(services.authorizer)

    @staticmethod
    def is_usable(config: BrokerConfig) -> bool:
        """Return True if the broker takes all metadata that this path takes, which does not check its length."""
        return config.integer("offset.metadata.max.bytes") >= METADATA_SIZE_MAX

    def handle(self, frame: Buffer, context: ConnectionContext, now_ms: int) -> bool:
        """Whether it was taken: answered, or left to wait. If not, nothing was done."""
        asked = read_offset_commit(frame)
        if asked is None:
            return False
        # The frame's memory is used again, and an answer may have to wait.
        commit = PlainCommit(self, bytes(frame), asked, context, now_ms)
        try:
            group_id = commit.text(asked[2], asked[3])
            payload = commit.encode(group_id, self._services.controller.image)
        except (UnicodeDecodeError, LookupError, UnwritableMessage):
            return False
        if self._rights is not None and not self._may(context, group_id, commit.names):
            return False
        services = self._services
        services.current_round.settle()
        records = PackedRecords(payload, commit.count, commit.replay)
        services.groups.write(group_id, lambda shard: commit.change(shard, records), commit.done, commit.refuse, now_ms)
        return commit.shard is not None

    def _may(self, context: ConnectionContext, group_id: str, topics: list[str]) -> bool:
        assert self._rights is not None
        allows, principal, host = self._rights.allows, context.principal, context.client_host
        return allows(principal, host, Operation.READ, AclResource.GROUP, group_id) and all(
            allows(principal, host, Operation.READ, AclResource.TOPIC, topic) for topic in topics
        )

    def reply(self, context: ConnectionContext, answer: Buffer, code: ErrorCode, count: int) -> None:
        self._codes[code] += count
        self._services.replies.put(Reply(context.connection_id, [answer]))


class PlainCommit:
    """One request on its way: what it asks, in the bytes it came in."""

    __slots__ = ("_asked", "_by_id", "_context", "_data", "_group_id", "_now_ms", "_quick", "count", "names", "shard")

    def __init__(
        self, quick: QuickCommit, data: bytes, asked: Committing, context: ConnectionContext, now_ms: int
    ) -> None:
        self._quick = quick
        self._data = data
        self._asked = asked
        self._by_id = asked[0] >= OFFSET_TOPIC_IDS
        self._context = context
        self._now_ms = now_ms
        self.names: list[str] = []
        self.count = sum([topic[3] for topic in asked[-1]])
        self.shard: GroupCoordinator | None = None  # who has taken it

    def text(self, start: int, stop: int) -> str:
        return self._data[start:stop].decode()

    def encode(self, group_id: str, image: MetadataImage) -> bytes:
        """Encode the records. Raise LookupError if there is no such topic or partition, or if there are too many
        records to be made at once."""
        self._group_id = group_id
        data, parts, delta = self._data, [], 0
        if self.count * len(group_id) > RECORDS_BYTES_MAX or self.count > RECORDS_MAX:
            raise LookupError(group_id)
        for start, stop, position, number in self._asked[-1]:
            topic = image.topics_by_id[data[start:stop]] if self._by_id else image.topics[self.text(start, stop)]
            self.names.append(topic.name)
            key, end = key_start(group_id, topic.name), value_end(topic.id, self._now_ms)
            out = bytearray(commits_size(number, key, end) + min(len(data), METADATA_SIZE_MAX * number))
            size = encode_commits(data, position, number, len(topic.partitions), delta, key, end, out)
            if size < 0:
                raise LookupError(topic.name)
            parts.append(memoryview(out)[:size])
            delta += number
        return b"".join(parts)

    def change(self, shard: GroupCoordinator, records: PackedRecords) -> StateChange[None]:
        version, _, _, _, generation, member, member_stop, instance, instance_stop, _ = self._asked
        committer = Committer(
            self.text(member, member_stop),
            None if instance < 0 else self.text(instance, instance_stop),
            generation,
            version,
        )
        change = shard.commits.commit_packed(self._group_id, committer, records, self._now_ms)
        self.shard = shard
        return change

    def replay(self, record_offset: Offset) -> None:
        assert self.shard is not None
        for name, (_, _, position, number) in zip(self.names, self._asked[-1], strict=True):
            known = self.shard.offsets.of_topic(self._group_id, name)
            take_commits(self._data, position, number, self._now_ms, record_offset, CommittedOffset, known)
            record_offset += number

    def done(self, _: None, __: int) -> None:
        self._answer(ErrorCode.NONE)

    def refuse(self, error: KafkaError, _: int) -> None:
        if self.shard is not None:
            self._answer(error.code)

    def _answer(self, code: ErrorCode) -> None:
        answer = commit_answer(self._data, self._asked[1], self._asked[-1], self._by_id, code)
        self._quick.reply(self._context, answer, code, self.count)
