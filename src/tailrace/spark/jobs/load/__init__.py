"""`tailrace job load`: loads a table or files into a topic.

input.py ─► sink.py ─► chunks.py ─► build.py ─► target (directory, broker or cluster)

load.py      the job
input.py     converts the input to the columns of records
sink.py      passes rows to the first tasks, in Arrow batches
chunks.py    first tasks: write rows to chunks, which are files of record batches for one partition
build.py     second tasks: write chunks to a log or a cluster
target.py    topics to create, log ends, the report
propose.py   loads into the directory of a running broker
state.py     LoadState: resumes an interrupted load, and loads nothing twice
"""
