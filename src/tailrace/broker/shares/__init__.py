"""Delivery of records to share groups, and the state that it keeps."""
