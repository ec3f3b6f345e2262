"""Several brokers as one command, to use more than one core: `tailrace serve --shards N`.

shard_settings.py   the settings of each shard: node ids, ports, folders and the listeners between shards
shard_sockets.py    the sockets that the parent binds and the shards inherit
adoption.py         moves the data of a single broker into the folder of the first shard
shard_child.py      ShardChild: a shard as a child process, seen from the parent
supervisor.py       Supervisor: starts shards, restarts those that end, and stops them in order
run_shards.py       the loop of the parent process, with its signals
shard_metrics.py    the metrics of all shards as one page
metrics_server.py   serves that page, and the health of the whole
"""
