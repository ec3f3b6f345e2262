"""Failures: their place in the code, and the fewest inputs that reproduce them."""

from __future__ import annotations

import struct
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz.limits import TooLong

if TYPE_CHECKING:
    from tests.fuzz.targets import Target


def place_of(error: BaseException) -> str:
    """Return the kind of an error and the line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {'/'.join(Path(last.filename).parts[-2:])}:{last.lineno}"


def pack_inputs(inputs: Sequence[bytes]) -> bytes:
    return b"".join(struct.pack(">I", len(data)) + data for data in inputs)


def unpack_inputs(packed: bytes) -> list[bytes]:
    inputs = []
    position = 0
    while position < len(packed):
        (size,) = struct.unpack_from(">I", packed, position)
        inputs.append(packed[position + 4 : position + 4 + size])
        position += 4 + size
    return inputs


def save_failure(target: Target, error: BaseException, folder: Path) -> Path:
    """Write the fewest inputs that fail in the same place, and how they fail."""
    place = place_of(error)
    history = list(target.history)
    # To run into the time limit again and again would take too long.
    fewest = history if isinstance(error, TooLong) else _fewest(target, history, place)
    folder.mkdir(parents=True, exist_ok=True)
    name = place.replace(" at ", "-").replace("/", "-").replace(":", "-")
    folder.joinpath(f"{name}.txt").write_text("".join(traceback.format_exception(error)))
    path = folder / f"{name}.bin"
    path.write_bytes(pack_inputs(fewest))
    return path


def _fewest(target: Target, history: list[bytes], place: str) -> list[bytes]:
    if not _fails(target, history, place):
        return history
    if _fails(target, history[-1:], place):
        history = history[-1:]
    for at in range(len(history) - 2, -1, -1):
        without = [*history[:at], *history[at + 1 :]]
        if _fails(target, without, place):
            history = without
    for at, data in enumerate(history):
        pieces = target.pieces(data)
        for number in range(len(pieces) - 1, -1, -1):
            fewer = [*pieces[:number], *pieces[number + 1 :]]
            if fewer and _fails(target, [*history[:at], b"".join(fewer), *history[at + 1 :]], place):
                pieces = fewer
        history[at] = b"".join(pieces) or data
    return history


def _fails(target: Target, inputs: Sequence[bytes], place: str) -> bool:
    try:
        target.replay(inputs)
    except Exception as error:
        return place_of(error) == place
    finally:
        target.renew()
    return False
