"""TextDecoder: UTF-8 text, for keys and values that are plain strings."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.spark.typed.values.decoded import Decoded, build_array, spread


class TextDecoder:
    type: Any = pa.string()

    def decode(self, values: Any) -> Decoded:
        try:
            return Decoded(pc.cast(values, pa.string()))
        except pa.ArrowInvalid:
            errors: dict[int, str] = {}
            found = build_array(list(enumerate(values.to_pylist())), _texts, errors)
            return Decoded(spread(found, len(values), errors, self.type), errors)


def _texts(values: Any) -> Any:
    return pc.cast(pa.array(values, pa.binary()), pa.string())
