"""Connections to other nodes: requests of the broker's outbox, heartbeats, and the last will.

peers.py                Peers: sends the outbox's requests and returns the responses
peer_connection.py      PeerConnection: one non-blocking connection
peer_streams.py         plain and encrypted streams
encrypted_stream.py     EncryptedStream: TLS as a client
peer_login.py           PeerLogin: SASL on a new connection
outgoing_security.py    OutgoingSecurity: the broker's own credentials
heartbeats.py           Heartbeats: the thread that keeps a broker registered
last_will.py            LastWill: reports a killed broker to its controllers at once
last_will_process.py    the program of the small process that sends this report
"""
