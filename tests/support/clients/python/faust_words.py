"""Count words with Faust: faust_words.py BOOTSTRAP SOURCE SINK STATE_DIRECTORY GUARANTEE

Lines of the source become words in a topic of their own, keyed by word. A table counts them, and each new count goes
to the sink. The table's changelog is in the cluster.
"""

import sys

import faust

bootstrap, source, sink, state, guarantee = sys.argv[1:6]
app = faust.App(
    f"faust-{source}",
    broker=f"kafka://{bootstrap}",
    datadir=state,
    store="memory://",
    key_serializer="raw",
    value_serializer="raw",
    processing_guarantee=guarantee,
    web_enabled=False,
    broker_commit_interval=0.5,
)
lines = app.topic(source, value_type=bytes)
words = app.topic(f"faust-{source}-words", key_type=bytes, value_type=bytes, partitions=2, internal=True)
counted = app.topic(sink, key_type=bytes, value_type=bytes)
counts = app.Table("counts", key_type=str, value_type=int, default=int, partitions=2)


@app.agent(lines)
async def split(stream):
    async for line in stream:
        for word in line.split():
            await words.send(key=word, value=word)


@app.agent(words)
async def count(stream):
    async for word in stream:
        counts[word.decode()] += 1
        await counted.send(key=word, value=b"%d" % counts[word.decode()])


if __name__ == "__main__":
    faust.Worker(app, loglevel="warning").execute_from_commandline()
