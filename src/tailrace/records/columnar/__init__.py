"""Record batches to columns and back."""
