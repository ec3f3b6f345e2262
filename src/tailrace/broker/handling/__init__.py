"""The machinery between the dispatcher and the handlers: decoding, binding, pausing, refusing, throttling.

A request is decoded (`request_decoder.py`), cut into pieces if it is about many things (`request_pieces.py`), and given
to its handler, which was bound to its services when it was loaded (`handler_binding.py`). A handler may pause
(`long_requests.py`) or have work done beside the loop (`request_work.py`).

    handler_binding.py  bind: a handler with the services that it names
    request_decoder.py  RequestDecoder: bodies, decoded on the loop or by a chore
    flat_requests.py    requests whose handlers take flat tuples
    request_pieces.py   requests about many things, handled a few things at a time
    request_chores.py   RequestChores: decoding and encoding beside the loop, one chore at a time
    request_work.py     RequestWork: parts of requests that look into many records, done beside the loop
    long_requests.py    LongRequests: handlers that pause, run in turns
    pending_answer.py   PendingAnswer: the response to a request that waits for a coordinator
    refusals.py         Refusals: requests that cannot be read, handlers that raise
    appends.py          Appends: Produce requests of a round, written together and answered in order
    round.py            Round: work that is done once for all requests of a round
    throttling.py       Throttling: client quotas
    timed_parts.py      TimedParts: the parts of a broker that have deadlines
"""
