"""Conversion between record batches and columns, for Spark and Arrow, without an object per record.

columns.py         RecordColumns: the visible records of batches as Arrow buffers
column_encoder.py  converts Arrow buffers to record batches
json_lines.py      copies values to lines of JSON, for a parser of lines
"""
