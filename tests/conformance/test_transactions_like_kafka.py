"""Transactions at Apache Kafka and at Tailrace: the same random requests get the same responses and leave the same
logs.

A play that differs is replayed with `TransactionPlay(twins, SEED).run(STEPS)`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.startup.open_broker import open_broker
from tailrace.protocol.messages import InitProducerIdRequest, UpdateFeaturesRequest
from tests.support.api_twins import ApiTwins, KafkaSide, OurSide
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation
from tests.support.memory_files import MemoryFiles
from tests.support.transaction_logs import index_of
from tests.support.transaction_play import PARTITIONS, TransactionPlay

pytestmark = pytest.mark.kafka


class Stage(NamedTuple):
    twins: ApiTwins
    data: Path  # the name of the log directory, on disk and in memory
    our_files: MemoryFiles

    def index_files(self, partition: str) -> tuple[bytes, bytes]:
        """Return the indexes of aborted transactions of a partition: Kafka's and ours."""
        path = self.data / partition / "00000000000000000000.txnindex"
        ours = self.our_files.read(str(path)) if self.our_files.exists(str(path)) else b""
        return path.read_bytes() if path.exists() else b"", ours


@pytest.fixture(scope="module")
def stage(kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    ids = count(1_000_000)
    files = MemoryFiles()
    with KafkaBroker(kafka, tmp_path_factory.mktemp("transactions")) as broker:
        ours = open_broker(
            files,
            BrokerConfig(broker.properties),
            now_ms=int(time.time() * 1000),
            new_id=lambda: next(ids).to_bytes(16, "big"),
            next_int=lambda limit: next(ids) % limit,
        )
        made = ApiTwins(KafkaSide(broker.port), OurSide(ours))
        _until(lambda: not made.kafka.ask(InitProducerIdRequest(transactional_id=None), 4).error_code)
        yield Stage(made, broker.data, files)
        made.kafka.close()


def _until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def play(stage: Stage, seed: int, steps: int, *, has_new_clients: bool = True) -> TransactionPlay:
    made = TransactionPlay(stage.twins, seed, name=f"s{seed}", has_new_clients=has_new_clients)
    made.run(steps)
    made.compare_logs()
    for number in range(PARTITIONS):
        files = stage.index_files(f"{made.topic}-{number}")
        kafka, ours = (index_of(player, data) for player, data in zip(made.players, files, strict=True))
        assert ours == kafka, f"index of {made.topic}-{number}"
    return made


def test_the_same_transaction_requests_get_the_same_responses(stage: Stage) -> None:
    played = [play(stage, seed, 130) for seed in range(3)]
    assert all(any(stage.index_files(f"{one.topic}-{number}")[1] for number in range(PARTITIONS)) for one in played)
    reported: dict[str, set[int]] = {}
    for one in played:
        for what, codes in one.codes.items():
            reported.setdefault(what, set()).update(codes)
    # Each kind of request succeeded, and was refused in more than one way: fenced, wrong id, wrong state.
    assert {0, 47, 49, 90} <= reported["add"]
    assert {0, 48, 49, 90} <= reported["end"]
    assert {0, 47, 48} <= reported["produce"]
    assert {0, 51} <= reported["init"]


@pytest.mark.slow
def test_more_transaction_requests_get_the_same_responses(stage: Stage) -> None:
    for seed in range(100, 160):
        play(stage, seed, 200)


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 0, 2])
def test_responses_are_the_same_at_other_feature_levels(stage: Stage, level: int) -> None:
    """transaction.version goes down and up again, and the coordinators' records change with it."""
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="transaction.version", max_version_level=level)
    update.upgrade_type = 2 if level < 2 else 1
    for side in (stage.twins.kafka, stage.twins.ours):
        answer = side.ask(UpdateFeaturesRequest(feature_updates=[update], timeout_ms=30_000), 1)
        assert not answer.error_code, answer
    time.sleep(1)  # until Kafka's coordinator knows it
    for seed in range(200 + 20 * level, 208 + 20 * level):
        play(stage, seed, 150, has_new_clients=level > 0)
