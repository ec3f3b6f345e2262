"""Compression codecs and CRC-32C.

compression.py    encoders of gzip, snappy, lz4 and zstd; the codec of a topic
decompression.py  decoders, in pieces of bounded size, with limits against bombs
codec_kernels.py  parts of codecs that no library has, compiled
crc32c.py         the checksum of batches and snapshots
"""
