"""Take the screenshots of the console that the documents show: `python -m scripts.console_screenshots`.

A broker gets some records of orders, and a headless Chromium opens the pages. The pictures go to docs/pictures.
"""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path

from tests.support.browser import Browser
from tests.support.command import tailrace
from tests.support.console import Console
from tests.support.tailrace_process import TailraceProcess

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
PAGES = {
    "console-topics": ("#/topics", ("orders", "5,000")),
    "console-group": ("#/groups/kitchen", ("55,000", "Lag over the last")),
    "console-log": ("#/log/orders/0?offset=7777", ("Read from offset 7,777", "Cost")),
    "console-records": ("#/topics/orders?tab=records&from=7777&max=12&partition=0", ("12 records",)),
}


def fill(broker: TailraceProcess, folder: Path) -> None:
    """Create a topic of a few segments, and a group that lags behind."""
    dice = random.Random(4)
    lines = folder / "lines"
    orders = (
        {"key": f"customer-{dice.randrange(50)}", "value": json.dumps({"order": n, "price": dice.randrange(99)})}
        for n in range(60_000)
    )
    lines.write_text("".join(json.dumps(order) + "\n" for order in orders))
    configs = ("--config", "segment.bytes=1048576", "--config", "index.interval.bytes=4096")
    for words in (
        ("topics", "create", "orders", *configs),
        ("produce", "orders", "--json", "--file", lines, "--batch-bytes", 3_000),
        ("consume", "orders", "--group", "kitchen", "--from", "beginning", "--max", 5_000, "--values"),
    ):
        ran = tailrace(*words, "--bootstrap", broker.bootstrap)
        assert ran.status == 0, ran.err


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, TailraceProcess(Path(name) / "data") as broker:
        fill(broker, Path(name))
        words = ("--bootstrap", broker.bootstrap, "--data", str(broker.data), "--lag-every", "1")
        with Console(*words) as console, Browser(Path(name) / "profile") as browser:
            for picture, (place, texts) in PAGES.items():
                browser.open(console.url + place)
                browser.wait_for(*texts)
                browser.screenshot(PICTURES / f"{picture}.png", height=1_750 if "log" in picture else 900)
                print(PICTURES / f"{picture}.png")


if __name__ == "__main__":
    main()
