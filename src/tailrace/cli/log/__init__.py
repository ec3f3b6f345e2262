"""`tailrace log`: inspects a data directory, with or without a running broker. Only `repair --yes` changes files.

log_arguments.py      options of all verbs
partition_choice.py   finds the chosen partitions, and prints warnings
empty_partitions.py   one line for the empty partitions of internal topics
ls.py                 `log ls`: partitions and segments
map.py                `log map`: segments, transactions, and what retention and compaction do next
log_map.py            LogMap: the facts of a map, decided by the code of retention and compaction
cat.py                `log cat`: records as text or JSON lines
dump.py               `log dump`: file contents in the lines of kafka-dump-log
explain.py            `log explain`: the steps of one read
explain_text.py       an explained read as text with a chart of the segment
verify.py             `log verify`: check a data directory
repair.py             `log repair`: list possible repairs, and carry them out with --yes
"""
