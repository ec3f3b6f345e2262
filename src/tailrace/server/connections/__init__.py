"""Listening, accepting, and the open connections.

endpoints.py           Endpoint: name, host and port of a listener
listener.py            Listener: one bound endpoint
acceptor.py            Acceptor: accepts within the limits
connection_limits.py   ConnectionLimits: max.connections and related configs
held_sockets.py        HeldSockets: refused connections, closed after a delay
descriptors.py         Descriptors: the process's limit of file descriptors
connections.py         Connections: all open connections, their interest, pauses and idle times
connection.py          Connection: one client and its four reasons to hold
slow_requests.py       SlowRequests: closes connections whose request arrives too slowly
request_memory.py      RequestMemory: bounds the memory of requests that arrive
"""
