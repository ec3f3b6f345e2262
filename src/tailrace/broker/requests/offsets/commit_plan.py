"""CommitPlan: the partitions of an OffsetCommit or TxnOffsetCommit that can be committed, and the errors of the others.

A topic is refused if it does not exist or the client may not read it. A partition is refused if it does not exist. The
coordinator's verdicts on all other partitions complete the plan.
"""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.broker.requests.groups.group_topics import find_topic
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.group import TopicCommit
from tailrace.coordinator.offsets.committed_offsets import Verdict
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode
from tailrace.protocol.flat.offset_commit import AskedTopic, CommitTopic, PartitionCommit

_NO_ID = bytes(16)
_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class _PlannedTopic:
    """A topic of a request, and the errors of its partitions."""

    __slots__ = ("errors", "identity", "is_whole", "partitions")

    def __init__(
        self, identity: bytes | str, partitions: list[PartitionCommit], errors: Verdict, *, is_whole: bool
    ) -> None:
        self.identity = identity
        self.partitions = partitions
        self.errors = errors
        self.is_whole = is_whole  # every partition exists, so the coordinator's verdict holds for the whole topic

    def take(self, verdict: Verdict) -> None:
        """Note the coordinator's verdict on the partitions that exist."""
        if self.is_whole:
            self.errors = verdict
            return
        assert isinstance(self.errors, list)
        known = [place for place, code in enumerate(self.errors) if code is not _UNKNOWN]
        codes = verdict if isinstance(verdict, list) else [verdict] * len(known)
        for place, code in zip(known, codes, strict=True):
            self.errors[place] = code


class CommitPlan:
    def __init__(self, request: Request, *, has_ids: bool, controller: Controller, permissions: Permissions) -> None:
        """With `has_ids`, the records of the commit contain the ids of the topics."""
        self._request = request
        self._has_ids = has_ids
        self._controller = controller
        self._permissions = permissions
        self._topics: list[_PlannedTopic] = []
        self._committed: list[_PlannedTopic] = []  # topics with partitions to commit, in the order of `commits`
        self.commits: list[TopicCommit] = []

    def add(self, topic: AskedTopic) -> None:
        """Check a topic of the request, and plan the commits of its partitions."""
        identity, partitions = topic
        found = find_topic(
            self._request, identity, Operation.READ, controller=self._controller, permissions=self._permissions
        )
        if found.topic is None:
            self._topics.append(_PlannedTopic(identity, partitions, found.error, is_whole=False))
            return
        known, wanted = found.topic.partitions, partitions
        if [None for one in partitions if one[0] not in known]:
            wanted = [one for one in partitions if one[0] in known]
        is_whole = len(wanted) == len(partitions)
        errors: Verdict = ErrorCode.NONE
        if not is_whole:
            errors = [ErrorCode.NONE if one[0] in known else _UNKNOWN for one in partitions]
        planned = _PlannedTopic(identity, partitions, errors, is_whole=is_whole)
        self._topics.append(planned)
        if wanted:
            self._committed.append(planned)
            self.commits.append(TopicCommit(found.name, found.topic.id if self._has_ids else _NO_ID, wanted))

    def finish(self, verdicts: Sequence[Verdict]) -> None:
        """Note the coordinator's verdicts on `commits`."""
        for planned, verdict in zip(self._committed, verdicts, strict=True):
            planned.take(verdict)

    def refuse(self, code: ErrorCode) -> None:
        """Refuse all `commits`."""
        for planned in self._committed:
            planned.take(code)

    def results(self) -> list[CommitTopic]:
        """Return the topics of the response."""
        return [(one.identity, one.partitions, one.errors) for one in self._topics]  # type: ignore[misc]


def refused(topics: Sequence[AskedTopic], code: ErrorCode) -> list[CommitTopic]:
    """Return the topics of a response that refuses every partition."""
    return [(identity, partitions, code) for identity, partitions in topics]
