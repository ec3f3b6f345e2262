from __future__ import annotations

import argparse

import pytest

from tailrace.cli.main import main
from tailrace.cli.parsing.options import positive, size, timestamp


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


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("134217728", 134_217_728), ("64k", 65_536), ("128M", 134_217_728), ("2g", 2 << 30)]
)
def test_a_size_has_an_optional_unit(text: str, number: int) -> None:
    assert size(text) == number


@pytest.mark.parametrize("text", ["", "m", "0", "1.5g", "1t", "-1m", "١"])
def test_a_malformed_size_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        size(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "parquet", "--follow"], "--follow is for --to iceberg and delta, not for --to parquet"),
        (["--to", "delta", "--catalog", "prod"], "--catalog is for --to iceberg, not for --to delta"),
        (["--to", "iceberg", "--path", "/data", "--batch-offsets", "5"], "--batch-offsets is for --to parquet"),
        (["--format", "delta", "--group", "g"], "--group needs --follow"),
        (["--to", "iceberg", "--keep-snapshots", "5"], "--keep-snapshots needs --follow"),
        (["--to", "parquet", "--latest"], "--latest is for --to iceberg and delta, not for --to parquet"),
        (["--to", "delta", "--buckets", "4"], "--buckets has no effect without --latest"),
        (["--to", "delta", "--latest", "--partition-by", "date"], "--latest divides the table by its keys"),
        (
            ["--to", "delta", "--latest", "--value-format", "string", "--key-format", "string"],
            "--latest compares the bytes of keys",
        ),
        (["--to", "delta", "--follow", "--latest", "--merge-every", "2"], "--latest leaves no small files to merge"),
        (["--to", "delta", "--latest", "--buckets", "5000"], "a table has at most 4,096 buckets, not 5,000"),
    ],
)
def test_an_export_refuses_options_that_have_no_effect(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["job", "export", "/data", "lake.orders", "--topic", "orders", *options]) == 2
    assert message in capsys.readouterr().err
