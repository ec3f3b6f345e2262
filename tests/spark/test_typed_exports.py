"""`job export` with typed columns runs on a real Spark, from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake")

import deltalake
import pyarrow as pa

import tailrace
from tests.support.filled_topics import put


@pytest.mark.slow
def test_typed_columns_from_the_command_line(spark: Any, tmp_path: Path) -> None:
    schema = tmp_path / "orders.schema"
    schema.write_text("id bigint, total decimal(9,2), lines array<struct<sku string, n int>>")
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("orders", partitions=2)
        values = [json.dumps({"id": n, "total": "1.50", "lines": [{"sku": "a", "n": n}]}).encode() for n in range(500)]
        put(broker.bootstrap, "orders", 0, [(b"k", value) for value in values])
        put(broker.bootstrap, "orders", 1, [(b"k", b"broken"), (b"k", None)])
        command = [
            sys.executable, "-m", "tailrace", "job", "export", broker.bootstrap, str(tmp_path / "delta"),
            "--topic", "orders", "--to", "delta", "--value-format", "json", "--value-schema", str(schema),
            "--key-format", "string", "--master", "local[2]", "--json",
        ]  # fmt: skip
        ran = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert (document["records"], document["broken"], document["commits"]) == (502, 1, 1)
    query = deltalake.QueryBuilder().register("orders", deltalake.DeltaTable(str(tmp_path / "delta")))
    text = (
        "select count(id) as n, sum(id) as ids, sum(total) as total, count(_error) as broken, max(key) as k from orders"
    )
    (row,) = pa.table(query.execute(text).read_all()).to_pylist()
    assert (row["n"], row["ids"], float(row["total"]), row["broken"], row["k"]) == (500, 124_750, 750.0, 1, "k")
