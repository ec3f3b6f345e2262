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
    request_context.py  ConnectionContext, Request, Reply
    replies.py          Replies: responses, encoded and queued

    handling/      between dispatcher and handlers: decoding, pausing, refusing, throttling
    quick/         fast paths for the most frequent requests
    requests/      one module per API, in families
    config/        settings: parsing, validation, description, changes while the broker runs
    security/      authentication, authorization
    storage/       logs of the hosted partitions: opening, metadata changes, upkeep, failures
    coordination/  group and transaction coordinators, and their topics
    shares/        share groups: delivery and its state
    cluster/       controllers and brokers that are other nodes
    metrics/       metrics of the broker and of its clients
"""
