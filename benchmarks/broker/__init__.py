"""The broker compared with Apache Kafka and kfake: same machine, same run, same clients. `python -m benchmarks.run
broker`.
"""
