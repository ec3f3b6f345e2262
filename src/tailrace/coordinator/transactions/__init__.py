"""Transactions: the coordinator behind `__transaction_state`.

May import: what `coordinator` may.

    InitProducerId, AddPartitionsToTxn, EndTxn ──► transaction_shard ──► Transaction in its next state ──► record
    PREPARE_COMMIT, PREPARE_ABORT ──► markers at the leaders of the partitions ──► COMPLETE_COMMIT, COMPLETE_ABORT

    transaction_coordinator.py   TransactionCoordinator: requests, retries, and the markers under way
    transaction_shard.py         TransactionShard: decides each request on the state of one partition
    transaction.py               Transaction: states, transition table, epochs
    ending.py                    the tables of EndTxn: which producer may end a transaction, and with which response
    markers.py                   the markers that have to be written, by leader
    timeouts.py                  Timeouts: aborts timed-out transactions, removes unused transactional ids
    sweep.py                     Sweep: periodic work on all transactional ids, with pauses
    transaction_records.py       records of transactions: written and read
    producer_ids.py              ProducerIds: producer ids from blocks of the controller
"""
