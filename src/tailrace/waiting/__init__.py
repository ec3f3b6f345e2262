"""Operations that wait: for local state (purgatory) or for another node (outbox).

purgatory.py   Purgatory: parked requests, completed by an event or at their deadline
outbox.py      Outbox: requests to other nodes, and the callbacks of their answers
"""
