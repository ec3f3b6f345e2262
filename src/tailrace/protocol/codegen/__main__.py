"""Print the generated reader and writer of a message: python -m tailrace.protocol.codegen FetchRequest 17."""

from __future__ import annotations

import sys

from tailrace.protocol.codegen.reader_source import ReaderSource
from tailrace.protocol.codegen.writer_source import WriterSource
from tailrace.protocol.registry import message_class

if __name__ == "__main__":
    chosen, version = message_class(sys.argv[1]), int(sys.argv[2])
    print(ReaderSource(chosen, version).text())
    print(WriterSource(chosen, version).text())
