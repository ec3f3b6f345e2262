from __future__ import annotations

from typing import Any

from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.producing.transaction_admin import find_hanging
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.messages import (
    DescribeProducersResponse,
    DescribeTransactionsResponse,
    FindCoordinatorResponse,
    ListTransactionsResponse,
)
from tests.unit.client.fakes import FakeCluster

NOW_MS = 1_000_000
EXPIRED, HANGING = 7, 8  # producer ids


def describe_producers(request: Any, version: int) -> DescribeProducersResponse:
    of = DescribeProducersResponse
    producers = [
        of.ProducerState(producer_id=one, last_timestamp=0, current_txn_start_offset=5) for one in (EXPIRED, HANGING)
    ]
    partition = of.PartitionResponse(partition_index=0, active_producers=producers)
    return of(topics=[of.TopicResponse(name="t", partitions=[partition])])


def list_transactions(request: Any, version: int) -> ListTransactionsResponse:
    state = ListTransactionsResponse.TransactionState(
        transactional_id="expired", producer_id=EXPIRED, transaction_state="CompleteAbort"
    )
    return ListTransactionsResponse(transaction_states=[state])


def describe_transactions(request: Any, version: int) -> DescribeTransactionsResponse:
    state = DescribeTransactionsResponse.TransactionState(
        transactional_id="expired", error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    )
    return DescribeTransactionsResponse(transaction_states=[state])


def test_an_id_that_expires_during_the_search_has_no_transaction() -> None:
    fake = FakeCluster()
    fake.add_topic("t", 1)
    fake.handle(ApiKey.DESCRIBE_PRODUCERS, describe_producers)
    fake.handle(ApiKey.LIST_TRANSACTIONS, list_transactions)
    fake.handle(ApiKey.DESCRIBE_TRANSACTIONS, describe_transactions)
    fake.handle(ApiKey.FIND_COORDINATOR, lambda request, version: FindCoordinatorResponse(node_id=1))
    found = find_hanging(Coordinators(fake.client()), [TopicPartition("t", 0)], longest_ms=1_000, now_ms=NOW_MS)
    assert [one.producer_id for one in found] == [EXPIRED, HANGING]
