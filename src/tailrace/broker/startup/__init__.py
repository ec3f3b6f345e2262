"""The start of a broker: from a configuration and log directories to a broker that serves.

open_broker.py  open_broker: reads the metadata log, opens the logs, builds the broker
building.py     ServiceBuilder: makes the parts of a broker, each with what it needs
givens.py       Givens: disk, chance, threads and network, given by the process
"""
