"""CRC-32C (Castagnoli), the checksum of v2 record batches and producer snapshots, at hardware speed."""

from crc32c import crc32c

__all__ = ["crc32c"]
