"""Count words with Quix Streams: quix_words.py BOOTSTRAP SOURCE SINK STATE_DIRECTORY GUARANTEE

Lines of the source become words in a repartition topic, keyed by word. The state of each word is its count, and each
new count goes to the sink. The state's changelog is in the cluster.
"""

import sys

from quixstreams import Application

bootstrap, source, sink, state, guarantee = sys.argv[1:6]
app = Application(
    broker_address=bootstrap,
    consumer_group=f"quix-{source}",
    auto_offset_reset="earliest",
    processing_guarantee=guarantee,
    state_dir=state,
    commit_interval=0.5,
    loglevel="WARNING",
    consumer_extra_config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000},
)


def count(row, word_state):
    number = word_state.get("count", 0) + 1
    word_state.set("count", number)
    return number


words = app.dataframe(app.topic(source, value_deserializer="str"))
words = words.apply(lambda line: [{"word": word} for word in line.split()], expand=True).group_by("word")
words.apply(count, stateful=True).to_topic(app.topic(sink, key_serializer="str", value_serializer="json"))

if __name__ == "__main__":
    app.run()
