"""AddRaftVoter and RemoveRaftVoter at a node that is its quorum's only voter.

A lone node never gets a second voter and keeps its only one, so every request is refused. Checks, their order and error
codes are those of Kafka's combined node; a new voter is answered like one that the node cannot connect to.
"""

from __future__ import annotations

from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol import messages
from tailrace.protocol.json_form import base64_uuid_text

_NO_DIRECTORY = bytes(16)


def add_voter(log: MetadataLog, request: messages.AddRaftVoterRequest) -> None:
    """Raise the KafkaError that refuses a new voter."""
    voter = _voter(request.voter_id, request.voter_directory_id)
    _check_request(log, request.cluster_id, request.voter_id, request.voter_directory_id)
    listener = log.controller_endpoints[0].listener
    if listener not in [one.name for one in request.listeners]:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{voter} has no endpoint for the listener {listener}")
    _check_feature(log)
    if request.voter_id == log.identity.node_id:
        raise KafkaError(ErrorCode.DUPLICATE_VOTER, f"voter {request.voter_id} is already the only voter")
    raise KafkaError(
        ErrorCode.REQUEST_TIMED_OUT,
        f"{voter} cannot be added: this node is controller and broker in one and runs a quorum of one; "
        "a quorum of several voters needs Apache Kafka's controllers",
    )


def remove_voter(log: MetadataLog, request: messages.RemoveRaftVoterRequest) -> None:
    """Raise the KafkaError that refuses to remove a voter."""
    _check_request(log, request.cluster_id, request.voter_id, request.voter_directory_id)
    _check_feature(log)
    voter = _voter(request.voter_id, request.voter_directory_id)
    only = f"the only voter, {log.identity.node_id} (directory {log.identity.directory_id}), cannot be removed"
    raise KafkaError(ErrorCode.VOTER_NOT_FOUND, f"{voter} is not removed: {only}")


def _check_request(log: MetadataLog, cluster_id: str | None, voter_id: int, directory_id: bytes) -> None:
    if cluster_id is not None and cluster_id != log.identity.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"cluster id {cluster_id!r} differs from this cluster's, {log.identity.cluster_id}",
        )
    if voter_id < 0 or directory_id == _NO_DIRECTORY:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a voter needs an id of 0 or more and a directory id")


def _check_feature(log: MetadataLog) -> None:
    if log.quorum.kraft_version < 1:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"voters can be changed from kraft.version 1 on; this cluster has {log.quorum.kraft_version}",
        )


def _voter(voter_id: int, directory_id: bytes) -> str:
    return f"voter {voter_id} (directory {base64_uuid_text(directory_id)})"
