"""`tailrace job profile`: keys, sizes, skew, throughput, compression, and the effect of compaction.

profile.py   the job
task.py      a slice of a log to numbers
facts.py     the numbers, which can be added up
page.py      the result as an HTML page and as JSON
plots.py     bar and area charts as SVG
"""
