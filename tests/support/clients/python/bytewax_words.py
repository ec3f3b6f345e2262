"""Count words with Bytewax, whose state is in a recovery store: BOOTSTRAP, SOURCE and SINK are in the environment.

python -m bytewax.run bytewax_words.py -r RECOVERY_DIRECTORY -s 1 -b 0
"""

import os

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow

brokers = [os.environ["BOOTSTRAP"]]
flow = Dataflow("words")
lines = kop.input("lines", flow, brokers=brokers, topics=[os.environ["SOURCE"]])
words = op.flat_map("split", lines.oks, lambda line: [(word, 1) for word in line.value.decode().split()])
counts = op.stateful_map("count", words, lambda count, _: ((count or 0) + 1,) * 2)
records = op.map("encode", counts, lambda pair: KafkaSinkMessage(pair[0].encode(), b"%d" % pair[1]))
kop.output("counts", records, brokers=brokers, topic=os.environ["SINK"])
