"""The machinery between the dispatcher and the handlers: decoding, binding, pausing, refusing, throttling.

A request is decoded (`request_decoder.py`) and, if it names many topics, groups or resources, cut into pieces
(`request_pieces.py`). Its handler was bound to its services when it was loaded (`handler_binding.py`). A handler may
pause (`long_requests.py`) or move work to other threads (`request_work.py`).

A *chore* is a task on a worker thread; the event loop receives its result. A *round* is all requests that the loop
handles before it takes the replies.

    handler_binding.py  bind: passes a handler the services that it names
    request_decoder.py  RequestDecoder: decodes request bodies, on the loop or by a chore
    flat_requests.py    requests whose handlers take flat tuples
    request_pieces.py   large requests, handled one piece at a time
    request_chores.py   RequestChores: decoding and encoding by chores, one at a time
    request_work.py     RequestWork: checks and searches of many records, done by chores
    long_requests.py    LongRequests: runs handlers that pause, in turns
    pending_answer.py   PendingAnswer: the response to a request that waits for a coordinator
    refusals.py         Refusals: unreadable requests, and handlers that raise
    appends.py          Appends: the Produce requests of a round, written together and answered in order
    round.py            Round: work that is done once for all requests of a round
    throttling.py       Throttling: client quotas
    timed_parts.py      TimedParts: the services that have deadlines
"""
