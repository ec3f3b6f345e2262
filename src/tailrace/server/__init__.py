"""The network around the broker: one loop, with threads, clock and signals. May import broker and below.

socket ─► loop/ ─► receiving/ ─► BrokerCore.handle ─► take_replies ─► sending/ ─► socket

run_broker.py   run_broker: a server as a process
server.py       Server: a broker behind its listeners, in this thread or its own
broker_interface.py  BrokerCore: the interface between server and broker
settings.py     ServerSettings: Kafka's network configs
loop/           the loop, its timers, its helper threads and clocks
receiving/      received bytes, cut into frames
connections/    listening, accepting, open connections
sending/        replies on their way to sockets
tls/            TLS on the loop
peers/          connections to other nodes
http/           the metrics endpoint, and keys of identity providers
metrics/        metrics of requests, connections and the process
"""
