"""Decisions are stored in notes and parsed again, for any number of tasks."""

from __future__ import annotations

import pytest

from tailrace.spark.sink.decision import NOTE_MAX, Decision, TaskOutput, from_notes, piece_count, task_id, to_notes


def decision(tasks: int) -> Decision:
    outputs = tuple(
        TaskOutput(task, task % 3, 2**40 + task * 7, task % 100, 12345, (task * 2**57) % 2**64) for task in range(tasks)
    )
    return Decision(17, "8a5b6c1e-2f0d-4a43-9a55-0d9a1f6b1c11", 421, "orders", outputs)


@pytest.mark.parametrize("tasks", [1, 20, 300, 5_000])
def test_a_decision_is_parsed_from_its_notes(tasks: int) -> None:
    notes = to_notes(decision(tasks))
    assert piece_count(notes[0]) == len(notes)
    assert all(len(note) <= 4096 for note in notes)  # the default limit of brokers
    assert from_notes(notes) == decision(tasks)


def test_a_small_decision_can_be_read_by_people() -> None:
    (note,) = to_notes(decision(1))
    assert note == (
        '1 {"decision":17,"query":"8a5b6c1e-2f0d-4a43-9a55-0d9a1f6b1c11","batch":421,"topic":"orders",'
        '"tasks":[[0,0,1099511627776,0,12345,0]]}'
    )
    assert NOTE_MAX < 4096


def test_attempts_of_a_task_have_different_transactional_ids() -> None:
    assert task_id("query", 3, 0) == "query-3-0"
    assert decision(5).outputs[4].transaction("query").transactional_id == "query-4-1"
