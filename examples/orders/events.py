"""The events of a shop: orders and their payments, in the order in which they arrive.

The same seed always gives the same events; `arrivals(seed)` has no end. As in reality, some events arrive late, some
arrive twice, and one order in seven is never paid. The bounds below are guaranteed, and the pipeline's watermarks rely
on them. Time is the shop's own: two orders per second, from 2025 on, whatever the feeding rate is.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Final, NamedTuple

ORDERS: Final = "orders"
PAYMENTS: Final = "payments"

START_MS: Final = 1_735_689_600_000  # 2025-01-01 00:00 UTC
ORDER_EVERY_MS: Final = 500
PAID_WITHIN_MS: Final = 240_000
LATE_BY_MS: Final = 90_000  # largest delay between an event and its last arrival

_COUNTRIES: Final = ("AT", "BR", "DE", "JP", "KE")
_PRODUCTS: Final = {"coffee": 420, "tea": 350, "cake": 510, "beans": 1290, "mill": 6900}
_METHODS: Final = ("card", "transfer", "wallet")


class Event(NamedTuple):
    topic: str
    time_ms: int
    key: bytes
    value: bytes


def arrivals(seed: int) -> Iterator[Event]:
    """Yield every event of the shop by the time of its arrival."""
    waiting: list[tuple[int, int, Event]] = []
    number = 0
    while True:
        ordered_ms = START_MS + number * ORDER_EVERY_MS
        # No event that is still to be generated can arrive before the order's time.
        while waiting and waiting[0][0] <= ordered_ms:
            yield heapq.heappop(waiting)[2]
        for position, (arrives_ms, event) in enumerate(_of_order(seed, number, ordered_ms)):
            heapq.heappush(waiting, (arrives_ms, number * 4 + position, event))
        number += 1


def _of_order(seed: int, number: int, ordered_ms: int) -> Iterator[tuple[int, Event]]:
    dice = Random(f"{seed}:{number}")
    order_id = f"o-{number:08d}"
    product, price = dice.choice(tuple(_PRODUCTS.items()))
    amount = price * dice.randint(1, 5)
    order = {
        "order_id": order_id,
        "customer": f"c-{dice.randint(1, 500):04d}",
        "country": dice.choice(_COUNTRIES),
        "product": product,
        "amount_cents": amount,
        "ordered_ms": ordered_ms,
    }
    yield from _delivered(dice, _event(ORDERS, ordered_ms, order_id, order))
    if dice.random() < 6 / 7:
        paid_ms = ordered_ms + dice.randint(2_000, PAID_WITHIN_MS)
        payment = {
            "payment_id": f"p-{number:08d}",
            "order_id": order_id,
            "method": dice.choice(_METHODS),
            "amount_cents": amount,
            "paid_ms": paid_ms,
        }
        yield from _delivered(dice, _event(PAYMENTS, paid_ms, order_id, payment))


def _delivered(dice: Random, event: Event) -> Iterator[tuple[int, Event]]:
    delay = dice.randint(10_000, 60_000) if dice.random() < 0.02 else dice.randint(50, 3_000)
    yield event.time_ms + delay, event
    if dice.random() < 0.03:
        yield event.time_ms + delay + dice.randint(1, 30_000), event


def _event(topic: str, time_ms: int, key: str, value: Mapping[str, object]) -> Event:
    return Event(topic, time_ms, key.encode(), json.dumps(value, separators=(",", ":")).encode())
