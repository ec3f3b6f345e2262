"""Both sides of a controller quorum: a broker follows the metadata log and stays registered; its leader serves the log.

quorum_observer.py    QuorumObserver: fetches the metadata log from the quorum's leader
observed_log.py       ObservedLog: the local copy of that log
served_log.py         ServedLog: the metadata log of a LocalController, as observers fetch it
quorum_state.py       the `quorum-state` file
broker_lifecycle.py   BrokerLifecycle: registration, heartbeats, controlled shutdown
"""
