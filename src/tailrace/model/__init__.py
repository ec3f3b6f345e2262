"""The shared words: identifiers, error codes, typed topic configuration. May import: nothing."""
