"""Release: a large message is freed a few structs at a time."""

from __future__ import annotations

import weakref

from tailrace.protocol.messages import FetchRequest
from tailrace.protocol.release import STRUCTS_PER_STEP, release, structs_in


def large(topics: int, partitions: int) -> FetchRequest:
    return FetchRequest(
        topics=[
            FetchRequest.FetchTopic(
                topic=f"topic-{topic}",
                partitions=[FetchRequest.FetchPartition(partition=number) for number in range(partitions)],
            )
            for topic in range(topics)
        ]
    )


def test_the_structs_of_all_arrays_are_found_with_the_outer_ones_last() -> None:
    message = large(3, 2)
    found = structs_in(message)
    assert [type(one).__name__ for one in found] == ["FetchPartition"] * 6 + ["FetchTopic"] * 3
    assert {id(one) for one in found[6:]} == {id(one) for one in message.topics}


def test_nothing_that_a_message_contains_is_freed_before_it_is_released() -> None:
    class Witness(FetchRequest.FetchPartition):
        __slots__ = ("__weakref__",)

    message = large(2, STRUCTS_PER_STEP)
    message.topics[0].partitions[0] = witness = Witness()
    is_alive = weakref.ref(witness)
    del witness
    kept = structs_in(message)
    del message
    assert is_alive() is not None
    release(kept)
    assert kept == []
    assert is_alive() is None


def test_a_message_without_arrays_has_no_structs() -> None:
    assert structs_in(FetchRequest()) == []
