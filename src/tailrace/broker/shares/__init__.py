"""Share groups on this broker: delivery of records, and the state that it keeps.

A fetch goes through `shares.py` to the package shares/. The state of a share partition is written through
`share_persister.py`: here if this broker keeps it (`share_states.py`), else to the broker that does.

    shares.py                  Shares: sessions, share partitions and settings, put together
    share_acknowledgements.py  acknowledgements of a request: checked, carried out, answered together
    share_persister.py         SharePersister: state of share partitions, wherever it is kept
    share_questions.py         what is asked of the broker that keeps the state
    share_states.py            ShareStates: the share coordinator, with `__share_group_state`
    share_state_request.py     rules that the requests about that state share
    share_group_state.py       what group requests ask of that state, for many partitions at once
"""
