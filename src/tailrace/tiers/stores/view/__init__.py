"""Remote segments as a data directory: a tool or a query reads them with the code that reads logs on disk.

tier_listing.py   finds the segments of a store in its folders, in either layout
segment_chain.py  chooses the segments that form one log, and the offsets that the view uses of each
cut_indexes.py    cuts the indexes of a segment from which a view uses only the first offsets
tier_files.py     TierFiles: the chosen segments with the interface of the log's files, read-only
part_files.py     a range of a file, bytes in memory and a compressed log with the interface of a file
opening.py        opens the view of an address
"""
