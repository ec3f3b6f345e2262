"""Remote stores: they keep the files of sealed segments. A store has four verbs, all of which may block for long.

remote_store.py  RemoteStore: the interface of a store, the files of a segment, and the errors
local_store.py   LocalStore: a folder in the layout of Kafka's LocalTieredStorage
local_layout.py  the names of that layout
countdown.py     Countdown: the time that is left for one copy
"""
