"""Commands about topics, configs, offsets, groups and transactions of a cluster, through `client/`.

admin_arguments.py          options of `topics`, `configs` and `offsets`
topics.py                   `tailrace topics`: list, describe, create, delete, alter
trim.py                     `tailrace topics trim`
configs.py                  `tailrace configs`: effective values and their sources; set and unset single keys
offsets.py                  `tailrace offsets`: first and last offsets, and the offset of a time
checkpoint_offsets.py       `tailrace offsets of-checkpoint`: the offsets of a Spark stream
groups_arguments.py         options of `groups`
groups.py                   `tailrace groups`: list, describe, reset, delete
group_lag.py                the lag of groups in offsets and seconds; `tailrace groups lag`
transactions_arguments.py   options of `transactions`
transactions.py             `tailrace transactions`: list, describe, find hanging, abort
"""
