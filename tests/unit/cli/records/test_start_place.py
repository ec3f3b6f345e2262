from __future__ import annotations

import argparse

import pytest

from tailrace.cli.records.start_place import Start, StartPlace, start_place


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beginning", StartPlace(Start.BEGINNING)),
        ("earliest", StartPlace(Start.BEGINNING)),
        ("latest", StartPlace(Start.LATEST)),
        ("end", StartPlace(Start.LATEST)),
        ("0", StartPlace(Start.OFFSET, 0)),
        ("4711", StartPlace(Start.OFFSET, 4711)),
        ("-5", StartPlace(Start.BEFORE_END, 5)),
        ("@1700000000000", StartPlace(Start.TIME, 1_700_000_000_000)),
        ("2023-11-14T22:13:20Z", StartPlace(Start.TIME, 1_700_000_000_000)),
        ("2023-11-14", StartPlace(Start.TIME, 1_699_920_000_000)),
    ],
)
def test_every_form_of_from_is_parsed(text: str, expected: StartPlace) -> None:
    assert start_place(text) == expected


@pytest.mark.parametrize("text", ["", "middle", "--5", "@soon", "1e3", "1969-01-01"])
def test_malformed_from_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a start"):
        start_place(text)
