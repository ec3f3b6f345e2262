"""`tailrace job load`: a table or files into a topic.

input.py ─► sink.py ─► chunks.py ─► build.py ─► target (directory, broker or cluster)

load.py      the job
input.py     the input as columns of records
sink.py      rows to the first tasks, in Arrow batches
chunks.py    first tasks: rows to chunks, files of record batches for one partition
build.py     second tasks: chunks to a log or a cluster
target.py    topics to create, log ends, the report
propose.py   a load into a directory that a broker serves
state.py     LoadState: resumes an interrupted load, and loads nothing twice
"""
