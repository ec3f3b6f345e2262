"""The newest record of each key in an Arrow table, and rows without certain keys. A key is one of a topic partition."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

KEY = ("topic", "partition", "key")
_ROW = "row"
_LAST = f"{_ROW}_max"


def newest(records: Any) -> Any:
    """Return the record with the highest offset of each key, in the order of offsets."""
    ordered = records.take(pc.sort_indices(records.column("offset")))
    groups = _numbered(ordered).group_by(list(KEY)).aggregate([(_ROW, "max")])
    return ordered.take(groups.column(_LAST).combine_chunks().sort())


def without_keys(rows: Any, keys: Any) -> Any:
    """Return the rows whose key is not in `keys`, which has the columns of KEY."""
    wanted = keys.select(list(KEY))
    kept = _numbered(rows).cast(_key_schema(wanted)).join(wanted, list(KEY), join_type="left anti")
    return rows.take(kept.column(_ROW).combine_chunks().sort())


def buckets_of(keys: Any, count: int) -> Any:
    """Return the bucket of each key, from its bytes only."""
    encoded = pc.dictionary_encode(keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys)
    known = [crc32(key) % count for key in encoded.dictionary.to_pylist()]
    return pa.array(known, pa.int32()).take(encoded.indices)


def _numbered(table: Any) -> Any:
    return table.select(list(KEY)).append_column(_ROW, pa.array(range(len(table)), pa.int64()))


def _key_schema(keys: Any) -> Any:
    return pa.schema([*keys.schema, pa.field(_ROW, pa.int64())])
