"""The start of a broker from its configuration and its log directories.

open_broker.py  open_broker: reads the metadata log, opens the logs, builds the broker
building.py     ServiceBuilder: builds the services of a broker
parts.py        the groups of services that are built together
remote_building.py  builds the services of tiered storage
environment.py  Environment: disk, random numbers, threads and network, provided by the process
"""
