"""Operations that wait: for local state (purgatory), for another node (outbox) or for a worker thread (chore).

purgatory.py   Purgatory: parked requests, completed by an event or at their deadline
chore.py       Chore: work that a worker thread does for the loop
outbox.py      Outbox: requests to other nodes, and the callbacks of their answers
"""
