from __future__ import annotations

import argparse

import pytest

from tailrace.cli.main import main
from tailrace.cli.options import positive, timestamp


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0", 0),
        ("1700000000123", 1_700_000_000_123),
        ("2023-11-14", 1_699_920_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
        ("2023-11-15T00:13:20+02:00", 1_700_000_000_000),
    ],
)
def test_times_are_numbers_or_iso_8601(text: str, milliseconds: int) -> None:
    assert timestamp(text) == milliseconds


@pytest.mark.parametrize("text", ["", "noon", "2023-13-01", "-1", "1969-12-31T23:59:59Z"])
def test_malformed_time_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        timestamp(text)


def test_a_count_of_zero_or_less_is_refused() -> None:
    assert positive("17") == 17
    for text in ("0", "-1", "x", "", "1.5", "٣"):
        with pytest.raises(argparse.ArgumentTypeError):
            positive(text)


@pytest.mark.parametrize("name", ["iceberg", "delta"])
def test_an_export_to_a_format_without_jars_for_this_spark_is_refused(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["job", "export", "/data", "lake.orders", "--topic", "orders", "--checkpoint", "/c", "--format", name]
    assert main(command) == 2
    message = capsys.readouterr().err
    assert f"{name} has no release for the Spark that Tailrace needs (4.2 or newer); export to parquet" in message
