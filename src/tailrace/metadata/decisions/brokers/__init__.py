"""Decisions about brokers.

broker_registration.py   brokers register, are unfenced, shut down
broker_heartbeat.py      the state of a broker after its heartbeat
producer_ids.py          blocks of producer ids
"""
