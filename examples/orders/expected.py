"""The expected results of the pipeline, computed from its input in plain Python: no Spark, no watermark."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

WINDOW_MS: Final = 300_000
PAYMENT_TIME_MS: Final = 300_000


class Settled(NamedTuple):
    country: str
    amount_cents: int
    ordered_ms: int
    payment_id: str | None


class Revenue(NamedTuple):
    orders: int
    paid: int
    revenue_cents: int


WindowKey = tuple[int, str]  # start in ms, country


@dataclass
class Expected:
    settled: dict[str, Settled] = field(default_factory=dict)  # by order id
    revenue: dict[WindowKey, Revenue] = field(default_factory=dict)

    def settled_by(self, watermark_ms: int) -> set[str]:
        """Return the orders that must be in the result by then: paid ones at once, others when a payment would be too
        late.
        """
        return {
            order_id
            for order_id, order in self.settled.items()
            if order.payment_id is not None or order.ordered_ms + PAYMENT_TIME_MS < watermark_ms
        }

    def final_by(self, watermark_ms: int) -> set[WindowKey]:
        """Return the windows that must be in the result by then: those in which every order is paid or too late to be
        paid.
        """
        return {key for key in self.revenue if key[0] + WINDOW_MS + PAYMENT_TIME_MS < watermark_ms}


def expect(orders: Iterable[bytes], payments: Iterable[bytes]) -> Expected:
    paid = {}
    for payment in map(json.loads, payments):
        paid[payment["order_id"]] = payment
    found = Expected()
    for order in map(json.loads, orders):
        payment = paid.get(order["order_id"])
        if payment is not None and not 0 <= payment["paid_ms"] - order["ordered_ms"] <= PAYMENT_TIME_MS:
            payment = None
        found.settled[order["order_id"]] = Settled(
            order["country"], order["amount_cents"], order["ordered_ms"], payment and payment["payment_id"]
        )
    for one in found.settled.values():
        key = (one.ordered_ms // WINDOW_MS * WINDOW_MS, one.country)
        orders_before, paid_before, revenue = found.revenue.get(key, (0, 0, 0))
        is_paid = one.payment_id is not None
        found.revenue[key] = Revenue(
            orders_before + 1, paid_before + is_paid, revenue + (one.amount_cents if is_paid else 0)
        )
    return found
