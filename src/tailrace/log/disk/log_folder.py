"""LogFolder: the folder of one partition's log."""

from __future__ import annotations

from typing import NamedTuple

from tailrace.log.disk.files import Files
from tailrace.model.ids import TopicId, TopicPartition


class LogFolder(NamedTuple):
    files: Files
    directory: str
    partition: TopicPartition
    topic_id: TopicId | None
