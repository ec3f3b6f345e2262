"""Requests about transactions and producer ids, answered by the transaction coordinator (`coordination/`).

init_producer_id.py       InitProducerId
add_partitions_to_txn.py  AddPartitionsToTxn
add_offsets_to_txn.py     AddOffsetsToTxn
txn_offset_commit.py      TxnOffsetCommit
end_txn.py                EndTxn
write_txn_markers.py      WriteTxnMarkers, from the coordinators of other brokers
describe_transactions.py  DescribeTransactions
list_transactions.py      ListTransactions
describe_producers.py     DescribeProducers
"""
