"""The zstd library of this environment, compared with the one whose bytes Apache Kafka 4.3 writes.

zstd 1.5.7 writes other frames than 1.5.6 at some levels; docs/decisions/0003-codecs.md. Tests that compare zstd bytes
with Kafka's run only with Kafka's version, which the development environment has.
"""

from __future__ import annotations

from typing import Final

import zstandard

from tailrace.records.batch import Codec

KAFKAS_ZSTD: Final = (1, 5, 6)
HAS_KAFKAS_ZSTD: Final = zstandard.ZSTD_VERSION[:3] == KAFKAS_ZSTD
REASON: Final = (
    f"zstandard {zstandard.__version__} carries zstd {'.'.join(map(str, zstandard.ZSTD_VERSION[:3]))}; "
    "Kafka's bytes come from zstd 1.5.6, which zstandard 0.23 carries"
)
CODECS_WITH_KAFKAS_BYTES: Final = [codec for codec in Codec if codec is not Codec.ZSTD or HAS_KAFKAS_ZSTD]
