"""The length prefix of a frame."""

from __future__ import annotations

from tailrace.protocol.framing import frame_length


def test_the_length_of_a_frame_counts_all_its_parts() -> None:
    class FileSlice:
        def __len__(self) -> int:
            return 1000

    assert frame_length([b"abc", FileSlice(), memoryview(b"de")]) == (1005).to_bytes(4, "big")
