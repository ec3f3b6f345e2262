"""Targets: what is fuzzed, each with inputs to begin with, a mutation that knows their form, and what must hold."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol


class Target(Protocol):
    history: list[bytes]  # the inputs since everything was new

    def seeds(self) -> Sequence[bytes]: ...
    def mutate(self, data: bytes, dice: random.Random) -> bytes: ...
    def run(self, data: bytes) -> None:
        """Try one input; raises whatever must not happen."""

    def replay(self, inputs: Sequence[bytes]) -> None:
        """Reset the target, run the inputs, and end."""

    def renew(self) -> None:
        """Reset the target."""

    def pieces(self, data: bytes) -> list[bytes]:
        """Return an input in parts, some of which may be left out."""


NAMES = ("requests", "sequences", "listeners", "records", "directories", "metadata", "answers")


def make_target(name: str) -> Target:
    # Each is imported when it is asked for, so that only what it uses is watched.
    if name == "requests":
        from tests.fuzz.request_target import RequestTarget

        return RequestTarget()
    if name == "sequences":
        from tests.fuzz.sequence_target import SequenceTarget

        return SequenceTarget()
    if name == "listeners":
        from tests.fuzz.listener_target import ListenerTarget

        return ListenerTarget()
    if name == "records":
        from tests.fuzz.record_target import RecordTarget

        return RecordTarget()
    if name == "directories":
        from tests.fuzz.directory_target import DirectoryTarget

        return DirectoryTarget()
    if name == "metadata":
        from tests.fuzz.metadata_target import MetadataTarget

        return MetadataTarget()
    if name == "answers":
        from tests.fuzz.answer_target import AnswerTarget

        return AnswerTarget()
    raise ValueError(f"there is no target {name}; there are {', '.join(NAMES)}")
