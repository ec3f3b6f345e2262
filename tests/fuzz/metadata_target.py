"""Metadata: a broker's directory with a damaged metadata log → the broker starts, or says why it does not.

An input is a tree of files: `__cluster_metadata-0`, `meta.properties`, `bootstrap.checkpoint`. What must hold:

- opening raises only errors that the command line reports in a sentence;
- a broker that has started makes topics, serves them, stops, and starts again with them.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.startup.open_broker import REFUSALS, open_broker
from tailrace.protocol.messages import CreateTopicsRequest, MetadataRequest
from tests.fuzz.limits import InvariantBroken
from tests.fuzz.tree_target import ROOT, TreeTarget
from tests.fuzz.trees import read_tree
from tests.support.golden import golden, golden_names
from tests.support.memory_files import MemoryFiles, memory_files
from tests.support.memory_node import Client
from tests.support.metadata_snapshots import write_snapshot

NOW_MS = 1_700_000_000_000


class MetadataTarget(TreeTarget):
    def __init__(self) -> None:
        self._ids = count(1_000_000)
        self._names = count(1)
        super().__init__(self._trees())

    def _trees(self) -> list[dict[str, bytes]]:
        trees = []
        for name in golden_names("data_dir"):
            tree = read_tree(golden(name).path / "files")
            trees.append({path: data for path, data in tree.items() if "/" not in path or path.startswith("__cluster")})
        files = MemoryFiles()
        broker = self._open(files)
        self._use(broker)
        broker.abandon()
        trees.append(files.tree(ROOT))
        files = memory_files(files.tree())
        broker = self._open(files)
        write_snapshot(broker.services.controller.log, NOW_MS)
        self._use(broker)
        broker.close(NOW_MS)
        return [*trees, files.tree(ROOT)]

    def open(self, files: MemoryFiles) -> None:
        try:
            broker = self._open(files)
        except REFUSALS:
            return
        topics = self._use(broker)
        broker.close(NOW_MS)
        broker = self._open(files)
        if self._use(broker)[:-1] != sorted(topics):
            raise InvariantBroken("other topics after a clean stop")
        broker.close(NOW_MS)

    def _open(self, files: MemoryFiles) -> Broker:
        return open_broker(
            files,
            BrokerConfig.of(log_dirs=[ROOT], port=9092),
            now_ms=NOW_MS,
            new_id=lambda: next(self._ids).to_bytes(16, "big"),
            next_int=lambda limit: next(self._ids) % limit,
        )

    def _use(self, broker: Broker) -> list[str]:
        """Make a topic; all topics, the new one last."""
        client = Client(broker)
        name = f"new-{next(self._names)}"
        topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        (made,) = client.ask(CreateTopicsRequest(topics=[topic]), 7).topics
        if made.error_code:
            raise InvariantBroken(f"a topic cannot be made: {made.error_message}")
        reported: Any = client.ask(MetadataRequest(topics=None), 12)
        names = [one.name for one in reported.topics]
        return [*sorted(set(names) - {name}), name]
