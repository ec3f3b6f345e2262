"""Blocking connections to brokers.

bootstrap.py ─► connections.py ─► connection.py ─► sockets.py

bootstrap.py    parses bootstrap lists
address.py       Address: host and port
connections.py   one connection per broker, reused
connection.py    one connection to one broker
sockets.py       plain TCP sockets, and the choice between plain and TLS
retry_budget.py  the time budget of a request and the pauses between retries
"""
