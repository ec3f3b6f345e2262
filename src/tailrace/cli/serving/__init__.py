"""`tailrace serve`, and the commands that inspect a running broker.

serving_arguments.py   options of `serve`, `shards`, `top` and `explain`
serve.py               `serve`: the settings, and the choice between one broker and several
serve_broker.py        one broker in this process
serve_shards.py        several brokers as one node
shard_process.py       the program of each of them
serve_start.py         what both need: the credentials of a new directory, and the line that reports the start
rebalance_shards.py    `shards rebalance`: spread partitions evenly over the shards of a node
container.py           a broker in a container, with its settings from KAFKA_… variables
log_format.py          log lines as text or JSON
top.py                 `top`: current activity, refreshed in place
top_reading.py         the counters of a broker or cluster at one moment
top_view.py            two readings as rates
explain_waiting.py     `explain waiting`: the requests that wait and the fetch sessions
explain_fetch.py       `explain fetch`: a running broker runs a fetch and reports each step
http_get.py            reads a page of a broker's HTTP endpoint
"""
