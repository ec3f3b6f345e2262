"""Down-conversion of stored batches for old clients: to message format 0 for versions 0 and 1, to format 1 for versions
2 and 3. Kafka 4 no longer serves these versions. The responses are those of Kafka 3.

The limits of versions 0 to 2 are hard and apply to the converted bytes, because the client's buffer has that size. Such
a client drops an incomplete message at the end and fetches it again. A batch that exceeds the limit is converted whole
before it is cut, so that the client can advance message by message. If the first message alone exceeds the limit, the
client receives an incomplete message and reports that.
"""

from __future__ import annotations

import logging
from typing import Final

from tailrace.fetch.session import PartitionFetch
from tailrace.log.segments.position import FileSlice
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.flat.fetch import PartitionAnswer
from tailrace.records.batch import LOG_OVERHEAD, PREFIX
from tailrace.records.conversion import down_convert, split_any

_log = logging.getLogger(__name__)

FIRST_UNCONVERTED_VERSION: Final = 4
_LAST_FORMAT_0_VERSION: Final = 1
LAST_HARD_LIMIT_VERSION: Final = 2


def converted(fetch: PartitionFetch, answer: PartitionAnswer, version: int) -> PartitionAnswer:
    """Return the answer with its records in the format that the version reads."""
    records = answer.records
    if not isinstance(records, FileSlice) or not records.size:
        return answer
    try:
        data = _converted(_whole(records), 0 if version <= _LAST_FORMAT_0_VERSION else 1, fetch.fetch_offset)
    except KafkaError as error:
        _log.debug("%s cannot be converted for version %d: %s", fetch, version, error)
        return PartitionAnswer(fetch.index, error.code, aborted=())
    # Old messages take more room than the stored batch, but the client's limit applies to the converted bytes.
    if version <= LAST_HARD_LIMIT_VERSION:
        data = data[: max(fetch.max_bytes, 0)]
    return answer._replace(records=data)


def _whole(records: FileSlice) -> bytes:
    """Return the bytes of a slice, and the whole first batch even if the slice ends within it."""
    file, position = records.file, records.position
    size = PREFIX.unpack(file.read(position, LOG_OVERHEAD))[1] + LOG_OVERHEAD
    return file.read(position, max(size, records.size))


def _converted(data: bytes, magic: int, first_offset: int) -> bytes:
    """Return the messages of as many batches as can be converted. Raise KafkaError if no batch can be converted."""
    out = bytearray()
    for batch in split_any(data):
        try:
            out += down_convert(batch.view, magic, first_offset).data
        except KafkaError as error:
            if out and error.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
                break
            raise
    return bytes(out)
