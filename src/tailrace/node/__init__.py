"""A whole node: settings, directories, broker and network put together."""
