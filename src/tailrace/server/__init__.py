"""The network around the broker: one epoll loop, with threads, clock and signals. May import broker and below.

socket ─► loop.py ─► frame_input.py ─► BrokerCore.handle ─► take_replies ─► sending/ ─► socket

main.py              run_broker: a server as a process
server.py            Server: a broker behind its listeners, in this thread or its own
loop.py              Loop: one thread, one epoll, all connections
broker_seam.py       BrokerCore: the interface between server and broker
settings.py          ServerSettings: Kafka's network configs
frame_input.py       FrameInput: received bytes cut into frames
receive_buffers.py   the memory of received requests
turn.py              Turn: how long pausable requests may run in one pass
loop_timers.py       LoopTimers: deadlines of the loop itself
chores.py            Chores: long work on a few threads
other_threads.py     calls from other threads into the loop
wakeup.py            WakeUp: wakes the loop from a thread or a signal
clock.py             wall clock, monotonic clock, SteadyClock
garbage.py           Garbage: runs the cyclic collector in small portions
connections/         listening, accepting, open connections
sending/             replies on their way to sockets
tls/                 TLS on the loop
peers/               connections to other nodes
http/                the metrics endpoint, and keys of identity providers
metrics/             metrics of requests, connections and the process
"""
