"""Metrics of requests, connections and the process.

api_meter.py          ApiMeter: counts, sizes and times of one API; RequestTimes of one request
request_meter.py      RequestMeter: measures requests on their way through the loop
server_metrics.py     ServerMetrics: the server's metric families
statistics.py         ServerStatistics: counters of the network layer as one value
process_metrics.py    memory, CPU, descriptors and build of the process
"""
