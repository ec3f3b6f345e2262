"""Remote stores: they keep the files of sealed segments. A store has four verbs, all of which may block for long.

remote_store.py  RemoteStore: the interface of a store, the files of a segment, and the errors
opening.py       opens the store that a broker's settings name
store_settings.py  the settings of stores, and the names that are refused
local_store.py   LocalStore: a folder in the layout of Kafka's LocalTieredStorage
local_layout.py  the names of that layout
aiven/           the layout of Aiven's plugin, in a bucket or a folder
view/            remote segments as a data directory, for tools and queries that read without a broker
tier_check.py    TierCheck: files without a segment, and segments without files
countdown.py     Countdown: the time that is left for one copy
"""
