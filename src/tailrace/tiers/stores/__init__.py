"""Remote stores: they keep the files of sealed segments. A store has four verbs, all of which may block for long.

remote_store.py  RemoteStore: the interface of a store, the files of a segment, and the errors
"""
