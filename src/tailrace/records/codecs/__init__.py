"""Compression codecs and CRC-32C.

compression.py    encoders of gzip, snappy, lz4 and zstd; the codec that a topic asks for
decompression.py  decoders, in pieces of bounded size, with limits against bombs
crc32c.py         the checksum of batches and snapshots
"""
