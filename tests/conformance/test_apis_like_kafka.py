"""All APIs that we serve, in all versions that Kafka 4 still serves: the responses to the same requests, field by
field.

Known differences are listed below, with the reason. A listed difference that no longer exists fails the test too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

import pytest

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.requests.api_table import API_TABLE
from tailrace.broker.startup.open_broker import open_broker
from tailrace.protocol.messages import CreateTopicsRequest, InitProducerIdRequest
from tests.support.api_cases import cluster, configs, credentials, records, topics, transactions
from tests.support.api_cases.common import Case
from tests.support.api_twins import ApiTwins, Difference, KafkaSide, OurSide
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation
from tests.support.memory_files import MemoryFiles

pytestmark = pytest.mark.kafka


class Known(NamedTuple):
    api: str
    case: str  # regular expressions
    path: str
    reason: str

    def explains(self, one: Difference) -> bool:
        return (
            one.api == self.api
            and re.fullmatch(self.case, one.case) is not None
            and re.fullmatch(self.path, one.path) is not None
        )


_ANY = ".*"

KNOWN = (
    Known(
        "Produce",
        "no records|short|cut|two batches",
        r".*errorMessage",
        "our response names the error, Kafka's does not",
    ),
    Known(
        "Metadata", "by zero id|null name", r".*errorCode", "Kafka fails at such a topic; our response names the error"
    ),
    Known("IncrementalAlterConfigs", "operation (4|-1) of .*", _ANY, "Kafka fails at such an operation"),
    Known(
        "ElectLeaders", "timeout -1", _ANY, "we do not refuse a request that completes at once because of its deadline"
    ),
)

# Compared step by step in the plays of groups (`group_play.py`, `consumer_play.py`, `share_group_play.py` and others):
# test_groups_like_kafka.py and the tests of the other kinds of groups and of share delivery.
GROUPS = frozenset({
    "offsetcommit", "offsetfetch", "joingroup", "heartbeat", "leavegroup", "syncgroup", "describegroups", "listgroups",
    "deletegroups", "offsetdelete", "consumergroupheartbeat", "consumergroupdescribe", "streamsgroupheartbeat",
    "streamsgroupdescribe", "sharegroupheartbeat", "sharegroupdescribe", "sharefetch", "shareacknowledge",
    "initializesharegroupstate", "readsharegroupstate", "writesharegroupstate", "deletesharegroupstate",
    "readsharegroupstatesummary", "describesharegroupoffsets", "altersharegroupoffsets", "deletesharegroupoffsets",
})  # fmt: skip

# Kafka never responds to these, nor to anything else on the connection.
UNANSWERED = {
    ("Produce", "null records"): "the handler fails, and so does its error response",
    ("AlterConfigs", "a resource twice"): "the same",
}


@pytest.fixture(scope="module")
def twins(kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiTwins]:
    ids = count(1_000_000)
    with KafkaBroker(kafka, tmp_path_factory.mktemp("twins")) as broker:
        ours = open_broker(
            MemoryFiles(),
            BrokerConfig(broker.properties),
            now_ms=int(time.time() * 1000),
            new_id=lambda: next(ids).to_bytes(16, "big"),
            next_int=lambda limit: next(ids) % limit,
        )
        made = ApiTwins(KafkaSide(broker.port), OurSide(ours))
        create_topics(made)
        yield made
        made.kafka.close()


def create_topics(twins: ApiTwins) -> None:
    settings = {
        "orders": {},
        "compacted": {"cleanup.policy": "compact"},
        "timed": {"message.timestamp.type": "LogAppendTime"},
        "empty": {},
        "sequenced": {},
        "small": {"max.message.bytes": "1000"},
        "with_dot": {},
    }
    wanted = [
        CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=3 if name == "orders" else 1,
            replication_factor=1,
            configs=[CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in some.items()],
        )
        for name, some in settings.items()
    ]
    for side in (twins.kafka, twins.ours):
        answer = side.ask(CreateTopicsRequest(topics=wanted, timeout_ms=30_000), 7)
        assert not any(one.error_code for one in answer.topics)
    twins.learn()
    for _ in range(100):  # Kafka needs a while for the first block of producer ids
        if twins.kafka.ask(InitProducerIdRequest(transactional_id=None), 4).error_code == 0:
            return
        time.sleep(0.1)
    raise AssertionError("Kafka gives out no producer ids")


def run(twins: ApiTwins, cases: Iterable[Case], apis: set[str]) -> list[str]:
    found: list[str] = []
    used: set[Known] = set()

    def is_known(difference: Difference) -> bool:
        explained = [known for known in KNOWN if known.explains(difference)]
        used.update(explained)
        return bool(explained)

    for name, make in cases:
        api = make(twins.ours).SCHEMA.name.removesuffix("Request")
        apis.add(api)
        if (api, name) in UNANSWERED:
            request = make(twins.ours)
            assert twins.ours.ask(request, twins.versions(request.SCHEMA.api_key)[-1]), "we answer"
            continue
        found += [str(one) for one in twins.compare(name, make, is_known)]
        if api in ("CreateTopics", "DeleteTopics"):
            twins.learn()
    stale = [known for known in KNOWN if known.api in apis and known not in used]
    found += [f"no longer different: {known}" for known in stale]
    return found


def test_the_same_requests_get_the_same_responses(twins: ApiTwins) -> None:
    now_ms = int(time.time() * 1000)
    cases = [
        *topics.topic_cases(),
        *topics.metadata_cases(),
        *records.produce_cases(now_ms),
        *records.fetch_cases(),
        *records.offset_cases(now_ms),
        *records.fetch_cases(),
        *records.producer_id_cases(),
        *transactions.transaction_cases(),
        *configs.config_cases(),
        *cluster.quota_cases(),
        *credentials.credential_cases(),
        *credentials.acl_cases(),
        *credentials.token_cases(),
        *cluster.voter_cases(),
        *cluster.cluster_cases(),
        *topics.delete_topic_cases(),
    ]
    apis: set[str] = set()
    found = run(twins, cases, apis)
    assert not found, "\n".join([f"{len(found)} differences", *found])
    served = {row.key.name.replace("_", "").lower() for row in API_TABLE.values()}
    assert {one.lower() for one in apis} | GROUPS == served, "an API is not compared"
    assert twins.compared > 2500


@pytest.mark.parametrize("version", [7, 11, 12, 13, 18])
def test_fetch_sessions_get_the_same_responses(twins: ApiTwins, version: int) -> None:
    """Sessions are opened, idle, changed, used with wrong epochs and closed; each side uses its own session id."""
    steps: list[tuple[int, list[tuple[str, dict[str, int]]], list[tuple[str, list[int]]]]] = [
        (0, [("empty", {"partition": 0}), ("small", {"partition": 0}), ("nowhere", {"partition": 0})], []),
        (1, [], []),
        (2, [("orders", {"partition": 1, "fetch_offset": 10**6})], []),
        (3, [("orders", {"partition": 99})], [("empty", [0])]),
        (3, [], []),  # an old epoch
        (9, [], []),  # an epoch that is too high
        (4, [], [("orders", [1, 99]), ("nowhere", [0])]),
        (5, [], [("small", [0, 7])]),
        (6, [], []),
        (-1, [], []),  # close the session
        (7, [], []),  # the session is already closed
    ]
    reported = []
    for side in (twins.kafka, twins.ours):
        session, answers = 0, []
        for epoch, parts, forgotten in steps:
            more = {"session_id": session, "session_epoch": epoch}
            answer = side.ask(records.FetchByVersion(side, parts, forgotten, more), version)
            answers.append(
                (
                    epoch,
                    answer.error_code,
                    bool(answer.session_id),
                    sorted(
                        (one.partition_index, one.error_code, one.high_watermark, one.log_start_offset)
                        for topic in answer.responses
                        for one in topic.partitions
                    ),
                )
            )
            session = session or answer.session_id
        reported.append(answers)
    assert reported[1] == reported[0]
    assert reported[0][0][2], "a session was opened"
