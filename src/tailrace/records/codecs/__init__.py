"""Compression codecs and CRC-32C."""
