"""UTF-8 decoded like in Java: malformed bytes become U+FFFD instead of an error.

Header keys are UTF-8. They are decoded and encoded again when a batch is rebuilt, so invalid bytes must become the same
characters here as in Kafka. Python and Java differ only for a surrogate that was encoded as three bytes, or for its
first two bytes. Java replaces them with one U+FFFD, Python replaces each byte.
"""

from __future__ import annotations

import codecs

from tailrace.records.batch import Buffer


def _replace_as_java_does(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    rest = error.object[error.start : error.start + 3]
    if len(rest) > 1 and rest[0] == 0xED and 0xA0 <= rest[1] <= 0xBF:
        return "\ufffd", error.start + (3 if len(rest) == 3 and 0x80 <= rest[2] <= 0xBF else 2)
    return "\ufffd", error.end


codecs.register_error("tailrace.java", _replace_as_java_does)


def decode_utf8(data: Buffer) -> str:
    return codecs.decode(data, "utf-8", "tailrace.java")
