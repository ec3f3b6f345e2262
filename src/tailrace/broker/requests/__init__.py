"""One module for each API, in families."""
