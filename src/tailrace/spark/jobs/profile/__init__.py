"""`tailrace job profile`: keys, sizes, skew, throughput, compression, and the effect of compaction.

profile.py   the job
task.py      counts the records of a slice
facts.py     the counts, which can be merged
page.py      writes the result as an HTML page and as JSON
plots.py     bar and area charts as SVG
"""
