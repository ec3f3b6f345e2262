"""Record batches to columns and back, for Spark and Arrow, without an object per record.

columns.py         RecordColumns: the visible records of batches as Arrow buffers
column_encoder.py  Arrow buffers to record batches
"""
