"""A broker's side of a controller quorum: it follows the metadata log and stays registered.

quorum_observer.py    QuorumObserver: fetches the metadata log from the quorum's leader
observed_log.py       ObservedLog: the local copy of that log
quorum_state.py       the `quorum-state` file
broker_lifecycle.py   BrokerLifecycle: registration, heartbeats, controlled shutdown
"""
