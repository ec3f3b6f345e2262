"""Schemas, and the Python that is generated from them."""
