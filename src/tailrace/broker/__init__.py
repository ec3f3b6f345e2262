"""The core of a broker: requests in, replies out. It knows no socket, thread or clock; time is an argument.

A frame goes from `broker.py` to `dispatcher.py`, which decodes it and calls the API's handler in requests/ with the
services that the handler names. The handler returns a response, or leaves a delayed operation that responds later;
`replies.py` encodes responses and keeps them until the server takes them. `startup/` builds all of it.

    broker.py      Broker: the interface that the server calls
    dispatcher.py  Dispatcher: from a frame to its handler
    services.py    Services: the long-lived parts of a broker, by name
    events.py      Events: named events, each with the parts of the broker that listen to it
    replies.py     Replies: encoded responses in a queue

    startup/       opening a broker on its log directories
    handling/      steps between dispatcher and handlers: decoding, pausing, refusing, throttling
    requests/      one module per API, in families; the table of all APIs
    config/        settings: parsing, validation, description, changes while the broker runs
    security/      authentication, authorization
    storage/       logs of the hosted partitions: opening, metadata changes, maintenance, disk failures
    coordination/  group and transaction coordinators, and their topics
    shares/        share groups: delivery of records, persisted delivery state
    cluster/       communication with the controllers and with other brokers
    metrics/       metrics of the broker and of its clients
"""
