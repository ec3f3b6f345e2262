"""The output of `tailrace top`: rates between two readings, as data for programs and as lines for people."""

from __future__ import annotations

import math
from typing import Any, Final

from tailrace.cli.output import NOTHING, count_text, size_text, table
from tailrace.cli.serving.top_reading import ApiReading, Reading, TopicReading

NO_TOPIC: Final = TopicReading()
NO_API: Final = ApiReading()
_THROTTLED_MAX: Final = 5  # the most delayed clients that the text shows


def compare(before: Reading, now: Reading) -> dict[str, Any]:
    """Return the rates per second between two readings. The busiest APIs and topics come first."""
    seconds = max(now.time_s - before.time_s, 1e-9)

    def rate(new: float, old: float) -> float:
        # A counter decreases if the broker was restarted or a log was truncated.
        return max(new - old, 0.0) / seconds

    rates = {f"{name}_per_s": rate(value, before.counters.get(name, 0.0)) for name, value in now.counters.items()}
    view: dict[str, Any] = {"source": now.source, "interval_s": seconds, "facts": dict(now.facts)}
    if "idle_s_per_s" in rates:
        idle = rates.pop("idle_s_per_s") / now.facts.get("shards", 1)
        view["facts"]["loop_busy"] = 1.0 - min(idle, 1.0)
    if now.cpu_s is not None and before.cpu_s is not None:
        view["facts"]["cpu"] = rate(now.cpu_s, before.cpu_s)
    view["rates"] = rates
    apis = []
    for name, api in now.apis.items():
        old = before.apis.get(name, NO_API)
        requests = max(api.requests - old.requests, 0.0)
        apis.append(
            {
                "api": name,
                "requests_per_s": requests / seconds,
                "errors_per_s": rate(api.errors, old.errors),
                "local_ms": 1_000 * max(api.local_s - old.local_s, 0.0) / requests if requests else None,
                "remote_ms": 1_000 * max(api.remote_s - old.remote_s, 0.0) / requests if requests else None,
                "p50_ms": _quantile_ms(old.buckets, api.buckets, 0.5),
                "p99_ms": _quantile_ms(old.buckets, api.buckets, 0.99),
                "requests": int(api.requests),
            }
        )
    view["apis"] = sorted(apis, key=lambda one: (-float(one["requests_per_s"] or 0), str(one["api"])))
    topics = []
    for name, topic in now.topics.items():
        was = before.topics.get(name, NO_TOPIC)
        topics.append(
            {
                "topic": name,
                "partitions": topic.partitions,
                "size_bytes": topic.size,
                "messages_in_per_s": rate(topic.messages, was.messages) if name in before.topics else 0.0,
                "bytes_in_per_s": None
                if topic.bytes_in is None
                else _rate_since(topic.bytes_in, was.bytes_in, seconds),
                "bytes_out_per_s": None
                if topic.bytes_out is None
                else _rate_since(topic.bytes_out, was.bytes_out, seconds),
            }
        )
    view["topics"] = sorted(topics, key=_traffic)
    view["throttled"] = [one._asdict() for one in now.throttled]
    return view


def _rate_since(new: float, old: float | None, seconds: float) -> float:
    return 0.0 if old is None else max(new - old, 0.0) / seconds


def _traffic(topic: dict[str, Any]) -> tuple[float, float, str]:
    moved = (topic["bytes_in_per_s"] or 0.0) + (topic["bytes_out_per_s"] or 0.0)
    return -moved, -topic["messages_in_per_s"], topic["topic"]


def _quantile_ms(before: dict[float, float], now: dict[float, float], share: float) -> float | None:
    """Return a quantile of the values that a histogram's buckets received between two readings."""
    bounds = sorted(now)
    cumulative = [now[bound] - before.get(bound, 0.0) for bound in bounds]
    if not cumulative or cumulative[-1] <= 0:
        return None
    wanted = share * cumulative[-1]
    low = below = 0.0
    for bound, count in zip(bounds, cumulative, strict=True):
        if count >= wanted:
            if math.isinf(bound) or count == below:
                return 1_000 * low
            return 1_000 * (low + (bound - low) * (wanted - below) / (count - below))
        low, below = bound, count
    return None


# Text


def show(view: dict[str, Any], time_text: str, *, height: int | None = None) -> list[str]:
    """Return lines for people: as many as fit into `height`, or all."""
    lines = [f"tailrace top  {time_text}  {view['source']}", *_facts(view), _rates(view["rates"])]
    if view["apis"]:
        heads = ["<API", "REQ/S", "ERR/S", "P50 MS", "P99 MS", "LOCAL MS", "WAIT MS", "REQUESTS"]
        busy = [api for api in view["apis"] if api["requests_per_s"]] or view["apis"]
        rows = [
            [
                api["api"],
                _number(api["requests_per_s"]),
                _number(api["errors_per_s"]),
                *(_milliseconds(api[name]) for name in ("p50_ms", "p99_ms", "local_ms", "remote_ms")),
                f"{api['requests']:,}",
            ]
            for api in busy[:10]
        ]
        lines += ["", *table(heads, rows)]
    lines += _throttled(view["throttled"])
    heads = ["<TOPIC", "PARTITIONS", "SIZE", "MSG/S IN", "IN/S", "OUT/S"]
    shown = view["topics"]
    if height is not None:
        shown = shown[: max(height - len(lines) - 4, 1)]
    rows = [
        [
            topic["topic"],
            topic["partitions"],
            size_text(topic["size_bytes"]),
            _number(topic["messages_in_per_s"]),
            _size(topic["bytes_in_per_s"]),
            _size(topic["bytes_out_per_s"]),
        ]
        for topic in shown
    ]
    lines += ["", *table(heads, rows)]
    hidden = len(view["topics"]) - len(shown)
    if hidden:
        lines.append(f"… and {hidden} more")
    return lines


def _throttled(clients: list[dict[str, Any]]) -> list[str]:
    if not clients:
        return []
    rows = [
        [
            one["user"] or NOTHING,
            one["client_id"] or NOTHING,
            one["quota"],
            f"{one['rate']:.1f} %" if one["quota"] == "request" else f"{_size(one['rate'])}/s",
            _milliseconds(one["pause_ms"]),
        ]
        for one in clients[:_THROTTLED_MAX]
    ]
    return ["", *table(["<THROTTLED USER", "<CLIENT", "<QUOTA", "RATE", "PAUSE MS"], rows)]


def _facts(view: dict[str, Any]) -> list[str]:
    facts = view["facts"]
    lines = []
    if "cluster_id" in facts:
        lines.append(
            [
                f"cluster {facts['cluster_id']}",
                count_text(facts["brokers"], "broker"),
                f"controller {facts['controller']}",
            ]
        )
    else:
        minutes, seconds = divmod(int(facts["uptime_s"]), 60)
        hours, minutes = divmod(minutes, 60)
        lines.append(
            [
                f"up {hours}:{minutes:02d}:{seconds:02d}",
                *([count_text(facts["shards"], "shard")] if "shards" in facts else []),
                f"cpu {100 * facts.get('cpu', 0.0):.0f}%",
                f"loop busy {100 * facts.get('loop_busy', 0.0):.0f}%",
                f"memory {size_text(facts['memory_bytes'])}",
                f"files {facts['open_files']}",
                f"connections {facts['connections']}",
                f"waiting {facts['waiting']}",
                f"fetch sessions {facts['fetch_sessions']}",
            ]
        )
    lines.append(
        [
            count_text(facts["topics"], "topic"),
            count_text(facts["partitions"], "partition"),
            f"{facts['under_replicated']} under-replicated",
            f"{facts['offline']} offline",
        ]
    )
    return ["   ".join(line) for line in lines]


def _rates(rates: dict[str, float]) -> str:
    parts = [f"in {_number(rates['messages_in_per_s'])} msg/s", f"{_size(rates['bytes_in_per_s'])}/s"]
    if "bytes_out_per_s" in rates:
        parts += [f"out {_size(rates['bytes_out_per_s'])}/s", f"{_number(rates['requests_per_s'])} requests/s"]
    return "   ".join(parts)


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.1f}"


def _milliseconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _size(value: float | None) -> str:
    return NOTHING if value is None else size_text(int(value))
