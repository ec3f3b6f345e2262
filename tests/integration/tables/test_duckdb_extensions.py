"""DuckDB's own extensions for Iceberg and Delta read the rows that `tailrace log cat` shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.tables.test_readers import expected, shown
from tests.support.cache import Unavailable
from tests.support.exported_tables import FORMATS, NAME, catalog_properties, export
from tests.support.foreign_clients import python_with
from tests.support.golden import golden

DUCKDB = "1.5.5"
EXTENSIONS = ("avro", "httpfs", "iceberg", "delta")
_READ = """
import base64, importlib, json, pathlib, sys
import duckdb
names, query = json.loads(sys.stdin.read())
connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
for name in names:
    package = pathlib.Path(importlib.import_module("duckdb_extension_" + name).__file__).parent
    (file,) = package.rglob("*.duckdb_extension")
    connection.execute(f"load '{file}'")
text = lambda value: None if value is None else base64.b64encode(value).decode()
for offset, time, key, value, headers in connection.execute(query).fetchall():
    found = [(header["key"], text(header["value"])) for header in headers or []]
    print(json.dumps([offset, time, text(key), text(value), found]))
"""


def location(form: str, folder: Path) -> str:
    if form == "delta":
        return f"delta_scan('{folder}/delta')"
    from pyiceberg.catalog import load_catalog

    table = load_catalog("test", **catalog_properties(folder)).load_table(NAME)
    return f"iceberg_scan('{table.metadata_location.removeprefix('file://')}')"


@pytest.mark.slow
@pytest.mark.parametrize("latest", [False, True], ids=["all", "latest"])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", ["codecs", "transactions", "compacted-transactions"])
def test_duckdb_reads_a_table_with_its_extensions(
    name: str, form: str, latest: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        packages = [f"duckdb=={DUCKDB}", *(f"duckdb-extension-{name}=={DUCKDB}" for name in EXTENSIONS)]
        duckdb = python_with(*packages)
    except Unavailable as missing:
        pytest.skip(str(missing))
    path = golden(name).unpack(tmp_path / "data")
    lines = expected(shown(path, capsys))
    if latest and any(line[2] is None for line in lines):
        pytest.skip("the topic has records without keys")
    export(form, tmp_path / "out", str(path), ["topic"], latest=latest)
    if latest:
        newest = {line[2]: line for line in lines}
        lines = [line for line in lines if newest[line[2]] is line and line[3] is not None]
    query = (
        'select "offset", epoch_ms("timestamp"), "key", "value", headers '
        f'from {location(form, tmp_path / "out")} order by "offset"'
    )
    found = map(json.loads, duckdb("-c", _READ, stdin=json.dumps([EXTENSIONS, query])).splitlines())
    assert lines
    assert [(*row[:4], [tuple(header) for header in row[4]]) for row in found] == lines
