"""The transaction coordinator with writes that wait and fail, markers that are refused, and new coordinators.

A failing seed is replayed with `TransactionWorld(SEED, server_version=VERSION).run(STEPS)`.
"""

from __future__ import annotations

import pytest

from tailrace.coordinator.transactions.transaction import EPOCH_MAX, Facts, Transaction, TransactionState
from tests.support.transaction_world import TransactionWorld


@pytest.mark.parametrize("server_version", [0, 1, 2])
def test_acknowledged_transactions_survive_all_faults(server_version: int) -> None:
    ended = 0
    for seed in range(60):
        world = TransactionWorld(seed, server_version=server_version)
        try:
            world.run(300)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        ended += len(world.promised)
    assert ended > 300, "too few transactions ended for a meaningful test"


@pytest.mark.slow
@pytest.mark.parametrize("server_version", [1, 2])
def test_acknowledged_transactions_survive_all_faults_in_longer_runs(server_version: int) -> None:
    for seed in range(1_000, 1_400):
        TransactionWorld(seed, server_version=server_version).run(1_500)


@pytest.mark.parametrize("server_version", [1, 2])
def test_transactions_survive_the_end_of_the_producer_epochs(server_version: int) -> None:
    """Producers near their last epoch get new ids, and no id is allocated twice."""
    for seed in range(40):
        world = TransactionWorld(seed, server_version=server_version)
        transactions = world.coordinator.runtime.shard(0).transactions
        for one in world.ids:
            producer_id, epoch = next(world.producer_ids), EPOCH_MAX - world.random.randint(2, 6)
            transactions[one] = Transaction(one, Facts(TransactionState.EMPTY, producer_id, epoch, timeout_ms=1_000))
            world.given[one].append((producer_id, epoch))
        world.run(250)
        assert any(len({producer_id for producer_id, _ in given}) > 1 for given in world.given.values()), seed
