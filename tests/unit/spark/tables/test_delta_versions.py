"""The ends of a Delta table are versions of applications."""

from __future__ import annotations

import pytest

from tailrace.model.ids import TopicPartition
from tailrace.spark.source.transports.topic_identity import TopicIdentity
from tailrace.spark.tables.formats.delta import read_ends, reason, to_versions
from tailrace.spark.tables.table_ends import TableEnds, TopicEnds

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.parametrize(
    "identity",
    [
        TopicIdentity("jzXgSqxwRRy1_wKofiihQw", "knun_xCUS7qL1PdKh5aPSw"),
        TopicIdentity("", "my-cluster"),
        TopicIdentity("1234567", "12345678"),
        TopicIdentity("ü" * 40, ""),
    ],
)
def test_ends_and_ids_are_read_back(identity: TopicIdentity) -> None:
    after = TableEnds({"t": TopicEnds(identity, {0: 5, 1: 2**62})})
    versions = to_versions(after, TableEnds())
    assert all(0 <= version < 2**63 for version in versions.values())
    assert read_ends(versions.get, [T0, T1]) == after


def test_only_ends_that_move_are_written_again() -> None:
    before = TableEnds({"t": TopicEnds(TopicIdentity("a", "b"), {0: 5, 1: 6})})
    after = TableEnds({"t": TopicEnds(TopicIdentity("a", "b"), {0: 9, 1: 6})})
    assert to_versions(after, before) == {"tailrace/t/0": 9}


def test_a_table_without_the_topic_has_no_ends() -> None:
    assert read_ends({}.get, [T0, T1]) == TableEnds()


def test_the_reason_of_an_error_is_its_first_and_last_line() -> None:
    text = "Generic S3 error\n  \x1b[31m↳\x1b[0m Error performing list\n    \x1b[31m↳\x1b[0m operation timed out"
    assert reason(OSError(text)) == "Generic S3 error: operation timed out"
    assert reason(OSError("one line")) == "one line"
    assert reason(OSError()) == "OSError"
