"""`tailrace log`: looks into a data directory, with or without a running broker. Only `repair --yes` changes anything.

log_arguments.py      options of all verbs
partition_choice.py   finds the chosen partitions, and prints warnings
ls.py                 `log ls`: partitions and segments
cat.py                `log cat`: records as text or JSON lines
dump.py               `log dump`: file contents in the lines of kafka-dump-log
explain.py            `log explain`: how one read finds its bytes
explain_text.py       an explained read as text with a picture
verify.py             `log verify`: check a data directory
repair.py             `log repair`: show what can be repaired, and do it with --yes
"""
