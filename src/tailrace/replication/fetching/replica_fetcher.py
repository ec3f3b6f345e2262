"""ReplicaFetcher: fetches partitions from one leader, with one request at a time.

    ready ──Fetch──► records: append │ diverging epoch: truncate │ OFFSET_OUT_OF_RANGE: │ any other error: backs off
      ▲                                                          │ find the offsets     │         │
      ├──── ListOffsets: the leader's end, and its start if need be ◄───────┘           │         │
      └──── after replica.fetch.backoff.ms ◄──────────────────────────────────────────────────────┘

A partition is fetched for its role, and each leader epoch has a new role. A response for an earlier role is ignored. A
partition that is no longer followed here (led, moved to another leader, deleted, failed disk) is left out of the next
request. An error affects only its partition.

A throttled partition (throttles.py) is also left out, while it is not in sync and the rate is exceeded. A partition
that returned records goes to the end of the request, so that each gets its turn if a response cannot hold all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.log.leader_epochs import EpochEnd
from tailrace.log.replicated.replicated_batches import end_of_records
from tailrace.log.segments.segment import SegmentOverflow
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId, Offset, TopicPartition
from tailrace.model.shortage import is_shortage
from tailrace.protocol.codegen.field_versions import FETCH_REPLICA_STATE
from tailrace.protocol.flat.replica_fetch import ReplicaFetchRequest, read_replica_answer
from tailrace.protocol.messages import FetchRequest
from tailrace.records.batch import CorruptBatch
from tailrace.replication.fetching.fetcher_settings import FetcherSettings
from tailrace.replication.fetching.followed import Followed
from tailrace.replication.fetching.leader_session import LeaderSession, PartitionId
from tailrace.replication.fetching.offsets_request import EARLIEST_LOCAL, LATEST, LOCAL_START_VERSION, offsets_request
from tailrace.replication.follower import FollowerRole
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.waiting.outbox import AnswerReader, Failure, Outbox, Peer

CHANNEL: Final = "replica-fetch"

_log = logging.getLogger(__name__)


class ReplicaFetcher:
    def __init__(
        self,
        leader_id: BrokerId,
        settings: FetcherSettings,
        outbox: Outbox,
        partitions: HostedPartitions,
        locate: Callable[[BrokerId], Peer | None],
        progressed: Callable[[TopicPartition, int], None],
        number: int = 0,
        idle_fetchers: set[ReplicaFetcher] | None = None,
    ) -> None:
        """`locate` finds the leader's address in the metadata. `progressed` is called when records or watermarks
        arrived. `number` distinguishes the fetchers of one leader. `idle_fetchers` contains the fetcher while no
        request is under way."""
        self.leader_id = leader_id
        self._settings = settings
        self._outbox = outbox
        self._partitions = partitions
        self._locate = locate
        self._progressed = progressed
        self.number = number
        self._followed: dict[PartitionId, Followed] = {}
        self._peer: Peer | None = None
        self._session = LeaderSession()
        self._idle_fetchers = set() if idle_fetchers is None else idle_fetchers
        self._has_request = False
        self._due_ms = 0
        self._limited_log = LimitedLog(_log)

    @property
    def _has_request(self) -> bool:
        return self not in self._idle_fetchers

    @_has_request.setter
    def _has_request(self, has_request: bool) -> None:
        (self._idle_fetchers.discard if has_request else self._idle_fetchers.add)(self)

    # Followed partitions

    def add(self, partition: Partition, role: FollowerRole) -> None:
        key = (partition.topic_id, partition.key.partition)
        known = self._followed.get(key)
        if known is None or known.role is not role:
            self._followed[key] = Followed(partition, role)
            self._due_ms = 0

    def release(self) -> list[Partition]:
        """Stop following all partitions; return them. A response that arrives later is ignored."""
        released = [one.partition for one in self._followed.values()]
        self._followed.clear()
        self._session.renew()
        return released

    def _is_followed(self, one: Followed) -> bool:
        role = one.role
        return (
            self._partitions.get(one.partition.key) is one.partition
            and one.partition.role is role
            and role.leader_id == self.leader_id
        )

    def _drop_others(self) -> None:
        """Remove partitions that are no longer followed here."""
        for one in [one for one in self._followed.values() if not self._is_followed(one)]:
            del self._followed[one.id]

    @property
    def max_lag(self) -> int:
        return max((one.lag for one in self._followed.values()), default=0)

    @property
    def is_idle(self) -> bool:
        """True if there is nothing to fetch and no request is under way."""
        return not self._followed and not self._has_request

    def next_deadline_ms(self) -> int | None:
        return None if self._has_request else self._due_ms

    def close(self) -> None:
        if self._peer is not None:
            self._outbox.disconnect(self._peer)

    # Requests

    def step(self, now_ms: int) -> None:
        """Send the next request, if none is under way and it is due."""
        if self._has_request or now_ms < self._due_ms:
            return
        self._drop_others()
        if not self._followed:
            return
        peer = self._located()
        if peer != self._peer:
            self._change_peer(peer)
        if peer is None:
            self._due_ms = now_ms + self._settings.backoff_ms
            return
        ready = [one for one in self._followed.values() if one.due_ms <= now_ms]
        if not ready:
            self._due_ms = min(one.due_ms for one in self._followed.values())
            return
        ready = self._unthrottled(ready, now_ms)
        if not ready:
            self._due_ms = now_ms + self._settings.backoff_ms
            return
        self._has_request = True
        out_of_range = [one for one in ready if one.is_out_of_range]
        if out_of_range:
            self._look_up(peer, out_of_range, LATEST)
        else:
            self._fetch(peer, ready)

    def _located(self) -> Peer | None:
        peer = self._locate(self.leader_id)
        if peer is None or not self.number:
            return peer
        return peer._replace(channel=f"{peer.channel}-{self.number}")

    def _unthrottled(self, ready: list[Followed], now_ms: int) -> list[Followed]:
        """Return the partitions that are not throttled."""
        throttle = self._settings.throttle
        if throttle is None:
            return ready
        held = {one.id for one in ready if not one.is_in_sync and throttle.is_throttled(one.partition)}
        if not held or not throttle.is_exceeded(now_ms):
            return ready
        return [one for one in ready if one.id not in held]

    def _change_peer(self, peer: Peer | None) -> None:
        """Use another address; close the connection to the previous one."""
        self.close()
        self._peer = peer
        self._session = LeaderSession()

    def _fetch(self, peer: Peer, ready: Sequence[Followed]) -> None:
        settings = self._settings
        wants = {one.id: one.fetch_position() for one in ready}
        request = ReplicaFetchRequest(
            replica_state=FetchRequest.ReplicaState(
                replica_id=settings.broker_id, replica_epoch=settings.broker_epoch()
            ),
            max_wait_ms=settings.wait_ms_max,
            min_bytes=settings.bytes_min,
            max_bytes=settings.response_bytes_max,
        )
        session = self._session
        session.fill(request, wants, settings.partition_bytes_max)
        asked = {one.id: (one, wants[one.id].fetch_offset) for one in ready}

        def answered(response: Any, now_ms: int) -> None:
            self._has_request = False
            if response.error_code:
                session.renew()
                self._refused(ErrorCode(response.error_code), now_ms)
            else:
                session.answered(request, response)
                self._handle_response(asked, response, now_ms)
            self.step(now_ms)

        self._send(peer, request, answered, FETCH_REPLICA_STATE, read_replica_answer)

    def _send(
        self,
        peer: Peer,
        request: Any,
        answered: Callable[[Any, int], None],
        version_min: int,
        read: AnswerReader | None = None,
    ) -> None:
        def failed(failure: Failure, now_ms: int) -> None:
            self._has_request = False
            self._session.renew()
            self._due_ms = now_ms + self._settings.backoff_ms
            self._limited_log.write(
                logging.WARNING,
                failure.name,
                now_ms,
                "fetch request failed",
                leader=self.leader_id,
                error=failure.value,
            )

        timeout_ms = self._settings.timeout_ms
        self._outbox.send(peer, request, answered, failed, timeout_ms=timeout_ms, version_min=version_min, read=read)

    def _refused(self, code: ErrorCode, now_ms: int) -> None:
        self._limited_log.write(
            logging.INFO, code.name, now_ms, "a fetch was refused", leader=self.leader_id, error=code.name
        )
        if code not in (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH):
            self._due_ms = now_ms + self._settings.backoff_ms

    # Responses

    def _handle_response(self, asked: dict[PartitionId, tuple[Followed, Offset]], response: Any, now_ms: int) -> None:
        later: list[tuple[Followed, Any]] = []
        for topic in response.responses:
            for answer in topic.partitions:
                one, offset = asked.get((topic.topic_id, answer.partition_index), (None, -1))
                if (
                    one is None
                    or self._followed.get(one.id) is not one
                    or not self._is_followed(one)
                    or one.role.fetch_offset != offset
                ):
                    # The response is for an earlier role, or the log end has moved since. What it contains, perhaps a
                    # high watermark, is ignored, and the leader would not send it again in this session.
                    self._session.renew()
                elif self._may_ask_ahead(one, answer):
                    later.append((one, answer))
                else:
                    self._handle_partition(one, answer, now_ms)
        if later:
            self.step(now_ms)
            self._outbox.flush()
            for one, answer in later:
                one.ask_after_log_end()
                self._handle_partition(one, answer, now_ms)

    def _may_ask_ahead(self, one: Followed, answer: Any) -> bool:
        """Return True if the next records can be requested before these are appended, while the leader reads them.

        A fetch offset claims that all records below it are stored here. A claim below the leader's high watermark
        commits nothing and adds no replica to the ISR. So nothing is lost if the append fails or the broker crashes.
        """
        records = answer.records
        if answer.error_code or records is None or len(records) < self._settings.ahead_bytes_min:
            return False
        if self._is_throttled(one):
            return False
        end = end_of_records(memoryview(records), one.role.leader_epoch)
        if end is None or end[0] >= answer.high_watermark or answer.diverging_epoch.epoch >= 0:
            return False
        one.ask_ahead(*end)
        return True

    def _is_throttled(self, one: Followed) -> bool:
        throttle = self._settings.throttle
        return throttle is not None and throttle.is_throttled(one.partition)

    def _handle_partition(self, one: Followed, answer: Any, now_ms: int) -> None:
        try:
            self._append(one, answer, now_ms)
        except OSError as error:
            self._partitions.failed(one.partition, error)
            if is_shortage(error):
                self._session.renew()
                self._back_off(one, now_ms)
        except (KafkaError, CorruptBatch, SegmentOverflow) as error:
            _log.error("%s cannot append the records of its leader %d: %s", one.partition.key, self.leader_id, error)
            self._session.renew()
            self._back_off(one, now_ms)

    def _append(self, one: Followed, answer: Any, now_ms: int) -> None:
        key, role = one.partition.key, one.role
        if answer.error_code:
            self._partition_refused(one, ErrorCode(answer.error_code), now_ms)
            return
        diverging = answer.diverging_epoch
        if diverging.epoch >= 0:
            before = role.fetch_offset
            end = role.truncate_at(EpochEnd(diverging.epoch, diverging.end_offset), now_ms)
            _log.info("%s: log cut to %d from %d, where it diverges from leader %d", key, end, before, self.leader_id)
            # The high watermark of this response cannot be used yet, and would not be sent again in this session.
            self._session.renew()
            self._progressed(key, now_ms)
            return
        records = answer.records or b""
        done = role.append(
            records,
            high_watermark=answer.high_watermark,
            leader_log_start_offset=answer.log_start_offset,
            now_ms=now_ms,
        )
        one.note_lag(max(answer.high_watermark - done.log_end_offset, 0))
        if records:
            self._count(one, len(records), now_ms)
        if records or done.high_watermark_moved or done.log_start_moved:
            self._progressed(key, now_ms)

    def _count(self, one: Followed, size: int, now_ms: int) -> None:
        one.partition.traffic.replication_bytes_in += size
        if self._settings.throttle is not None and self._is_throttled(one):
            self._settings.throttle.record(size, now_ms)
        self._followed[one.id] = self._followed.pop(one.id)

    def _partition_refused(self, one: Followed, code: ErrorCode, now_ms: int) -> None:
        key = one.partition.key
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            _log.info("%s: offset %d is outside the log of leader %d", key, one.role.fetch_offset, self.leader_id)
            one.note_out_of_range()
            return
        kind = f"partition: {code.name}"
        self._limited_log.write(logging.INFO, kind, now_ms, "partition not fetched", partition=key, error=code.name)
        self._back_off(one, now_ms)

    def _back_off(self, one: Followed, now_ms: int) -> None:
        one.back_off_until(now_ms + self._settings.backoff_ms)

    # Our log end is outside the leader's log

    def _look_up(
        self, peer: Peer, out_of_range: Sequence[Followed], spec: int, ends: dict[PartitionId, Offset] | None = None
    ) -> None:
        """Ask for the leader's log end, and for its start if that may be above our end."""
        by_key = {one.partition.key: one for one in out_of_range}

        def answered(response: Any, now_ms: int) -> None:
            self._has_request = False
            self._drop_others()
            found: dict[PartitionId, Offset] = {}
            for topic in response.topics:
                for answer in topic.partitions:
                    one = by_key.get(TopicPartition(topic.name, answer.partition_index))
                    if one is None or self._followed.get(one.id) is not one:
                        continue
                    if answer.error_code or answer.offset < 0:
                        code = ErrorCode(answer.error_code or ErrorCode.OFFSET_NOT_AVAILABLE)
                        self._partition_refused(one, code, now_ms)
                    else:
                        found[one.id] = answer.offset
            if ends is not None:
                for key, start in found.items():
                    self._restart(self._followed[key], start, ends[key], now_ms)
            else:
                beyond = [one for one in out_of_range if one.id in found and found[one.id] >= one.role.fetch_offset]
                for one in out_of_range:
                    if one.id in found and one not in beyond:
                        self._restart(one, 0, found[one.id], now_ms)
                if beyond:
                    self._has_request = True
                    self._look_up(peer, beyond, EARLIEST_LOCAL, found)
                    return
            self.step(now_ms)

        request = offsets_request(self._settings.broker_id, out_of_range, spec)
        self._send(peer, request, answered, LOCAL_START_VERSION)

    def _restart(self, one: Followed, leader_start: Offset, leader_end: Offset, now_ms: int) -> None:
        before = one.role.fetch_offset
        one.note_restart()
        self._session.renew()
        try:
            end = one.role.restart_at(leader_start, leader_end, now_ms)
        except OSError as error:
            self._partitions.failed(one.partition, error)
            if is_shortage(error):
                self._back_off(one, now_ms)
            return
        key = one.partition.key
        _log.warning("%s: log end reset to %d from %d, to match the log of leader %d", key, end, before, self.leader_id)
        self._progressed(key, now_ms)
