"""TopicIdentity: the ids of a topic and its cluster. A topic that is deleted and created again has another id."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import CorruptCheckpoint, DirectoryIdentity, read_topic_id
from tailrace.log.disk.files import Files, join
from tailrace.spark.source.errors import Unreadable


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """Ids as text; empty if unknown."""

    topic_id: str = ""
    cluster_id: str = ""

    def differs(self, other: TopicIdentity) -> bool:
        """Return True if an id is known on both sides, and is not the same."""
        pairs = ((self.topic_id, other.topic_id), (self.cluster_id, other.cluster_id))
        return any(mine and theirs and mine != theirs for mine, theirs in pairs)


def changed_text(holder: str, topic: str, there: TopicIdentity, here: TopicIdentity) -> str | None:
    """Return why the records of a topic do not belong to those in `holder`; None if they do."""
    if not there.differs(here):
        return None
    if there.topic_id and here.topic_id not in ("", there.topic_id):
        return (
            f"topic {topic} was deleted and created again: {holder} has records of the topic with id "
            f"{there.topic_id}, but its id is now {here.topic_id}"
        )
    return f"{holder} has records of topic {topic} in cluster {there.cluster_id}, but this is cluster {here.cluster_id}"


def identity_in(files: Files, directory: str, folder: str) -> TopicIdentity:
    """Return the ids in a data directory for the topic of one of its partition folders."""
    meta, topic = join(directory, file_names.META_PROPERTIES), join(folder, file_names.PARTITION_METADATA)
    try:
        return TopicIdentity(
            str(read_topic_id(files, topic)) if files.exists(topic) else "",
            DirectoryIdentity.read(files, meta).cluster_id if files.exists(meta) else "",
        )
    except CorruptCheckpoint as error:
        raise Unreadable(f"the ids of a topic cannot be read: {error}") from None
