"""A Spark sink that passes the rows of a DataFrame to the first tasks of a load, in Arrow batches."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from tailrace.model.ids import TopicPartition
from tailrace.records.batch import Codec
from tailrace.spark.jobs.load.chunks import Chunk, ChunkPlan, ChunkWriter
from tailrace.spark.worker_process import freeze_imports

NAME = "tailrace-load"
_LIST = "chunks.json"


@dataclass(frozen=True)
class ChunkMessage(WriterCommitMessage):
    task: int
    chunks: tuple[Chunk, ...]


class LoadSink(DataSource):
    """The data source for `spark.dataSource.register`. Its only option is the plan."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def writer(self, schema: Any, overwrite: bool) -> LoadWriter:
        return LoadWriter(plan_of(self.options["plan"]))


class LoadWriter(DataSourceArrowWriter):
    def __init__(self, plan: ChunkPlan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[Any]) -> ChunkMessage:
        freeze_imports()
        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        return ChunkMessage(number, tuple(ChunkWriter(self._plan, number).write(iterator)))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Write the list of chunks to a file. This runs in another process than the one that started the load."""
        found = sorted((one for one in messages if isinstance(one, ChunkMessage)), key=lambda one: one.task)
        rows = [list(chunk) for message in found for chunk in message.chunks if chunk.records]
        os.makedirs(self._plan.folder, exist_ok=True)
        with open(os.path.join(self._plan.folder, _LIST), "w", encoding="utf-8") as file:
            json.dump(rows, file)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing: the process that started the load removes the folder."""


def plan_text(plan: ChunkPlan) -> str:
    return json.dumps(asdict(plan))


def plan_of(text: str) -> ChunkPlan:
    values = json.loads(text)
    return ChunkPlan(**{**values, "codec": Codec(values["codec"])})


def written_chunks(plan: ChunkPlan) -> list[Chunk]:
    """Return the chunks that the first tasks have written, in the order of their rows."""
    with open(os.path.join(plan.folder, _LIST), encoding="utf-8") as file:
        return [Chunk(TopicPartition(*partition), *rest) for partition, *rest in json.load(file)]
