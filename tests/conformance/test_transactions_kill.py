"""Transactions of real clients across `kill -9`: committed records are visible in all partitions, aborted
ones in none.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.support.confluent import create_topic
from tests.support.tailrace_process import TailraceProcess
from tests.support.transaction_load import TransactionLoad

PARTITIONS = 2


def test_committed_transactions_are_visible_and_aborted_ones_are_not(tmp_path: Path) -> None:
    with TailraceProcess(tmp_path / "data", "-o", "transaction.state.log.num.partitions=2") as broker:
        create_topic(broker.bootstrap, "load", PARTITIONS)
        load = TransactionLoad(broker.bootstrap, "load", PARTITIONS, seed=3)
        load.run(25)
        load.check()
        assert len(load.committed) > 5
        assert len(load.aborted) > 3
        assert not load.unknown


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_transactions_stay_atomic_when_the_broker_is_killed(tmp_path: Path, seed: int) -> None:
    with TailraceProcess(tmp_path / "data", "-o", "transaction.state.log.num.partitions=2") as broker:
        create_topic(broker.bootstrap, "load", PARTITIONS)
        load = TransactionLoad(broker.bootstrap, "load", PARTITIONS, seed)
        done = threading.Event()

        def kill_now_and_then() -> None:
            while not done.wait(load.random.uniform(0.5, 3)):
                broker.kill()
                broker.start()

        killer = threading.Thread(target=kill_now_and_then)
        killer.start()
        try:
            until = time.monotonic() + 40
            while time.monotonic() < until:
                load.one()
        finally:
            done.set()
            killer.join()
        for transactional_id in ("a", "b"):  # open transactions are aborted
            load._producers.pop(transactional_id, None)
            load._producer(transactional_id)
        load.check()
        assert len(load.committed) > 3
