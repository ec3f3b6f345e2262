"""APIs that only a controller listener has, or that it answers differently. One module per API.

fetch.py                      observers follow the metadata log
fetch_snapshot.py             observers load a snapshot of it
broker_registration.py        a broker begins a life
broker_heartbeat.py           a broker is alive, or wants to stop
alter_partition.py            a leader proposes in-sync replicas
allocate_producer_ids.py      a broker gets a block of producer ids
assign_replicas_to_dirs.py    a broker reports the log directories of its replicas
controller_registration.py    a controller reports its addresses
describe_cluster.py           the controllers, or the brokers, of the cluster
alter_configs.py              configs of any broker, in the old way
incremental_alter_configs.py  configs of any broker

`broker/cluster/controller_listener.py` handles an Envelope.
"""
