"""The core of a broker: requests in, replies out. It knows no socket, thread or clock; time is an argument.

A frame goes from `broker.py` to `dispatcher.py`, which decodes it and calls the API's handler in requests/ with the
services that the handler names. The handler returns a response, or leaves a delayed operation that responds later;
`replies.py` encodes responses and keeps them until the server takes them. `startup.py` builds all of it.

    broker.py           Broker: the face that the server sees
    dispatcher.py       Dispatcher: from a frame to its handler
    services.py         Services: the long-lived parts of a broker, by name
    events.py           Events: occurrences that several parts act on, with their listeners
    startup.py          open_broker: from log directories to a broker that serves
    building.py         ServiceBuilder: makes the parts, each with what it needs
    givens.py           Givens: disk, chance, threads and network, given by the process

    api_table.py        the APIs that are served: key, versions, handler
    handler_binding.py  bind: a handler with the services that it names
    request_context.py  ConnectionContext, Request, Reply
    request_decoder.py  RequestDecoder: bodies, decoded on the loop or by a chore
    request_pieces.py   requests about many things, handled a few things at a time
    request_chores.py   RequestChores: decoding and encoding beside the loop
    request_work.py     RequestWork: parts of requests that look into many records, done beside the loop
    long_requests.py    LongRequests: handlers that pause, run in turns
    replies.py          Replies: responses, encoded and queued
    pending_answer.py   PendingAnswer: the response to a request that waits for a coordinator
    refusals.py         Refusals: requests that cannot be read, handlers that raise
    round.py            Round: work that is done once for all requests of a round
    throttling.py       Throttling: client quotas
    timed_parts.py      TimedParts: the parts that have deadlines

    quick_requests.py       fast paths for the most frequent requests, by API
    quick_produce.py        fast path of Produce
    waiting_produce.py      Produce requests of the fast path that wait for replicas
    quick_commit.py         fast path of OffsetCommit

    requests/      one module per API, in families
    config/        settings: parsing, validation, description, changes while the broker runs
    security/      authentication, authorization
    storage/       logs of the hosted partitions: opening, metadata changes, upkeep, failures
    coordination/  group and transaction coordinators, and their topics
    shares/        share groups: delivery and its state
    cluster/       controllers and brokers that are other nodes
    metrics/       metrics of the broker and of its clients
"""
