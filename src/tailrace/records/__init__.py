"""The record batch format: views over bytes, builders, validation, codecs. May import: model."""
