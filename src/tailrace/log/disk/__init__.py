"""The disk: files, names of files, checkpoint files."""
