"""Random requests: the same sequence to Apache Kafka and to Tailrace, under the same random settings.

settings.py       draw_broker_settings, draw_topics: server.properties and topic configs from a seed
record_data.py    RecordData: record batches of all codecs, whole, damaged and of old formats
plain_answers.py  PlainAnswers: responses as plain values, without values that each broker chooses itself
random_twins.py   RandomTwins: one request to both brokers, responses compared
random_play.py    RandomPlay: draws requests and sends them; `play(seed, …)` starts both brokers
data_requests.py  DataRequests: Produce, Fetch with sessions, ListOffsets, DeleteRecords, OffsetForLeaderEpoch
offset_requests.py OffsetRequests: OffsetCommit, OffsetFetch, TxnOffsetCommit, and the groups and transactions they need

`python -m tests.support.random_requests SEED [SEED …] [--steps N]` plays seeds and prints the first difference of each.
"""
