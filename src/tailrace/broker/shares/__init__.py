"""Share groups on this broker: delivery of records, and persisted delivery state.

A fetch goes through `shares.py` to the package tailrace.shares. The state of a share partition is read and written
through `share_persister.py`: by this broker if it coordinates the state (`share_coordinator.py`), else by another one.

    shares.py                  Shares: sessions, share partitions and settings of this broker
    share_acknowledgements.py  the acknowledgements of a request: validated, applied and answered together
    share_persister.py         SharePersister: state of share partitions, here or at another broker
    state_operations.py        operations on the state, as local calls or as requests to another broker
    share_coordinator.py       ShareCoordinator: the share coordinator, with `__share_group_state`
    share_state_request.py     common code of the handlers of requests about that state
    share_group_state.py       operations of group requests on the state of many partitions at once
"""
