"""The offset index, the time index and the transaction index of a segment."""
