"""The console in a real browser: every page, on a broker with real traffic, without errors, and with hostile names."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Browser, axe_source, chromium
from tests.support.cache import Unavailable
from tests.support.command import tailrace as command
from tests.support.console import Console
from tests.support.tailrace_process import TailraceProcess

BINARY_HEADER = {"key": "bytes", "value": "/gE=", "valueEncoding": "base64"}
HOSTILE = "</td><script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">"
PATIENCE_S = 60.0

pytestmark = pytest.mark.skipif(
    chromium() is None, reason="no Chromium with its driver: apt-get install chromium-driver"
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TailraceProcess]:
    data = tmp_path_factory.mktemp("browser") / "data"
    with TailraceProcess(data, "-o", "group.initial.rebalance.delay.ms=0", "--metrics-port", "0") as running:

        def run(*words: object) -> None:
            ran = command(*words, "--bootstrap", running.bootstrap)
            assert ran.status == 0, ran.err

        lines = data.parent / "lines"
        lines.write_text("".join(json.dumps({"key": f"k{n}", "value": f"value {n}"}) + "\n" for n in range(3_000)))
        run("topics", "create", "orders", "--partitions", 2, "--config", "retention.ms=86400000")
        run("produce", "orders", "--json", "--file", lines, "--partition", 0, "--batch-bytes", 4_000)
        hostile = {"key": HOSTILE, "value": HOSTILE, "headers": [{"key": HOSTILE, "value": HOSTILE}]}
        lines.write_text(json.dumps(hostile) + "\n")
        run("topics", "create", "hostile")
        run("produce", "hostile", "--json", "--file", lines)
        run("consume", "orders", "--group", HOSTILE, "--from", "beginning", "--max", 100, "--values")
        run("consume", "orders", "--group", "kitchen", "--from", "beginning", "--max", 100, "--values")
        yield running


@pytest.fixture(scope="module")
def console(broker: TailraceProcess) -> Iterator[Console]:
    metrics = broker.ready_line.partition("metrics on ")[2].split("/metrics")[0]
    words = ("--bootstrap", broker.bootstrap, "--data", str(broker.data), "--metrics", metrics, "--console-write")
    with Console(*words, "--lag-every", "1") as running:
        yield running


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


PAGES = {
    "overview": ("#/", ["Healthy", "Traffic of this broker", "Controllers"]),
    "topics": ("#/topics", ["orders", "hostile", "3,000"]),
    "topic": ("#/topics/orders", ["Partitions", "End offset", "3,000"]),
    "records": ("#/topics/orders?tab=records&from=10&max=3&partition=0", ["3 records", "value 10", "value 12"]),
    "configs": ("#/topics/orders?tab=configs", ["retention.ms", "86400000", "this topic"]),
    "groups": ("#/groups", ["kitchen", "Empty"]),
    "group": ("#/groups/kitchen", ["2,900", "Show the plan"]),
    "log": ("#/log/orders/0?offset=1500", ["Segments", "Leader epochs", "Read from offset 1,500", "index probe"]),
    "log of a time": ("#/log/orders/0?timestamp=1000", ["First record at or after", "Result"]),
    "map of a log": (
        "#/log/orders/0?segment=0&byte=5000",
        ["Batches of segment 0", "from byte", "What is removed next", "Read now", "kitchen"],
    ),
    "replicas": ("#/replicas", ["orders", "Largest lag"]),
    "replicas of a topic": ("#/replicas/orders", ["All replicas are in sync", "high watermark 3,000"]),
    "spark": ("#/spark", ["Queries that write exactly once"]),
    "lag": ("#/groups/kitchen", ["Lag in time", "age of the oldest unread record", "Lag over the last"]),
    "condition": (
        "#/topics/orders?tab=records&from=0&where=offset%20%25%201000%20%3D%3D%207",
        ["3 records", "value 1007"],
    ),
    "waiting": ("#/waiting", ["Waiting requests", "Fetch sessions"]),
    "transactions": ("#/transactions", ["Transactional ids", "Hanging transactions"]),
    "security": ("#/security", ["No authorizer is configured", "SCRAM users", "Quotas", "Throttled now"]),
    "hostile records": ("#/topics/hostile?tab=records", ["1 record", HOSTILE]),
    "hostile group": ("#/groups/" + HOSTILE.replace("/", "%2F").replace("<", "%3C").replace('"', "%22"), [HOSTILE]),
    "no such topic": ("#/topics/nothing", ["there is no topic"]),
}


@pytest.mark.parametrize("name", list(PAGES))
def test_a_page_shows_its_facts_without_errors(
    name: str, browser: Browser, console: Console, tmp_path: Path, record_property: Callable[[str, Any], None]
) -> None:
    place, texts = PAGES[name]
    browser.open(console.url + place)
    browser.wait_for(*texts)
    browser.screenshot(tmp_path / f"{name}.png")
    assert browser.errors() == []
    assert browser.title() != "hacked"
    assert browser.execute("return document.querySelectorAll('main script, main img').length") == 0


@pytest.mark.parametrize(
    "name", ["overview", "topics", "records", "group", "map of a log", "replicas of a topic", "spark", "security"]
)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_has_no_accessibility_violations(name: str, theme: str, browser: Browser, console: Console) -> None:
    try:
        source = axe_source()
    except Unavailable as why:
        pytest.skip(f"no axe-core: {why}")
    browser.open(console.url + PAGES[name][0])
    browser.wait_for(*PAGES[name][1])
    browser.execute(f"document.documentElement.dataset.theme = {theme!r}")
    time.sleep(0.5)  # until colours have changed
    browser.execute(source)
    found = browser.execute_async("axe.run().then((result) => arguments[arguments.length - 1](result.violations))")
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found] == []


def test_a_topic_is_created_filled_and_deleted_by_clicks(browser: Browser, console: Console) -> None:
    browser.open(console.url + "#/topics")
    browser.wait_for("orders")
    browser.click("Create a topic")
    browser.type("Name", "clicked")
    browser.click("Create")
    browser.wait_for("End offset", "clicked")
    browser.open(console.url + "#/topics/clicked?tab=records")
    browser.wait_for("no record matches")
    browser.click("Produce")
    browser.type("Value", "by hand")
    browser.click("Produce", within="dialog")
    browser.wait_for("written:")
    browser.click("Close")
    browser.click("Read")
    browser.wait_for("1 record", "by hand")
    browser.open(console.url + "#/topics/clicked")
    browser.wait_for("Delete this topic")
    browser.type("Name of the topic", "clicked")
    browser.click("Delete")
    browser.wait_for("Filter", "orders")
    assert "clicked" not in command("topics", "list", "--bootstrap", console_bootstrap(browser)).out


def console_bootstrap(browser: Browser) -> str:
    text: str = browser.execute("return document.querySelector('.command code').textContent")
    return text.partition("--bootstrap=")[2].split()[0]


def test_a_batch_is_found_by_clicks_in_the_drawn_log(browser: Browser, console: Console) -> None:
    browser.open(console.url + "#/log/orders/0")
    browser.wait_for("Segments")
    browser.execute("document.querySelector('svg .segment').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    browser.wait_for("Batches of segment")
    browser.execute(
        "document.querySelectorAll('svg .batch')[1].dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    browser.wait_for("Checksum", "valid", "Its records")
    assert browser.errors() == []


def test_a_search_for_a_key_shows_its_progress_and_its_result(browser: Browser, console: Console) -> None:
    browser.open(console.url + "#/topics/orders?tab=records&from=0&max=1&partition=0&key=k2999")
    browser.wait_for("1 record")
    browser.click("Search all")
    browser.wait_for("1 record found in 3,000 of 3,000 offsets", "done", "value 2999")
    assert browser.execute("return document.querySelector('progress').value") == 1
    assert browser.errors() == []


def test_selected_records_are_sent_to_another_topic_with_the_command_shown(browser: Browser, console: Console) -> None:
    created = console.post("topics/create", ("arg", "resent"))
    assert created.headers["tailrace-exit-status"] == "0"
    browser.open(console.url + "#/topics/orders?tab=records&from=10&max=3&partition=0")
    browser.wait_for("3 records", "value 11")
    browser.execute("document.querySelectorAll('tbody input[type=checkbox]')[1].click()")
    browser.click("send the selected again")
    browser.execute("document.querySelector('dialog input').value = 'resent'")
    browser.click("Send", within="dialog")
    browser.wait_for("1 record written to resent.", "tailrace produce --repartition")
    found = console.get("consume", ("arg", "resent")).json
    assert (found["key"], found["value"]) == ("k11", "value 11")


def test_a_topic_is_trimmed_and_widened_by_clicks(browser: Browser, console: Console) -> None:
    console.post("topics/create", ("arg", "changed"))
    for _ in range(2):
        console.post("produce", ("arg", "changed"), body='{"value":"a"}\n{"value":"b"}\n')
    browser.open(console.url + "#/topics/changed")
    browser.wait_for("Change this topic", "Delete records before")
    browser.type("Delete records before", "3")
    browser.click("Trim")
    browser.wait_for("The records before 3 are deleted.", "tailrace topics trim")
    browser.click("Add partitions")
    browser.wait_for("The topic changed has 2 partitions.", "tailrace topics alter")
    assert console.get("consume", ("arg", "changed")).json["offset"] == 3


def test_ten_thousand_topics_are_drawn_as_they_scroll_into_view(browser: Browser, console: Console) -> None:
    browser.open(console.url + "#/topics")
    browser.wait_for("orders")
    browser.execute(
        "import('/dom.js').then(({table}) => { const rows = Array.from({length: 10000}, (_, n) => ({n}));"
        " const before = performance.now();"
        " document.querySelector('main').replaceChildren(table([{head: 'N', cell: (one) => one.n}], rows));"
        " document.querySelector('main').offsetHeight; window.spent = performance.now() - before; })"
    )
    browser.wait_until("return window.spent !== undefined")
    assert browser.execute("return document.querySelectorAll('tbody tr').length") <= 600
    assert browser.execute("return window.spent") < 2_000


def test_new_records_appear_while_the_page_follows(browser: Browser, console: Console, broker: TailraceProcess) -> None:
    browser.open(console.url + "#/topics/orders?tab=records&from=-1&partition=1")
    browser.wait_for("Follow")
    browser.click("Follow")
    browser.wait_for("waiting for new records")
    (broker.data.parent / "fresh").write_text("fresh record\n")
    deadline = time.monotonic() + PATIENCE_S
    while "fresh record" not in browser.text() and time.monotonic() < deadline:
        produce = ("produce", "orders", "--partition", 1, "--file", broker.data.parent / "fresh")
        assert command(*produce, "--bootstrap", broker.bootstrap).status == 0
        time.sleep(0.5)
    assert "fresh record" in browser.text()


def test_the_page_can_be_used_with_the_keyboard(browser: Browser, console: Console) -> None:
    browser.open(console.url)
    browser.wait_for("Healthy")
    browser.press("2")
    browser.wait_for("Filter", "orders")
    browser.press("/")
    assert browser.execute("return document.activeElement.type") == "search"


def test_an_answer_that_arrives_after_an_abort_does_not_replace_the_live_view(
    browser: Browser, console: Console
) -> None:
    browser.open(console.url + "#/topics/orders?tab=records&from=1&max=2&partition=0")
    browser.wait_for("2 records")
    browser.execute(  # an answer that is complete in the browser already cannot be aborted
        "const original = window.fetch; window.late = 0;"
        "window.fetch = async (target, {signal, ...rest} = {}) => {"
        " const response = await original(target, rest);"
        " await new Promise((done) => setTimeout(done, 500)); window.late += 1; return response; };"
    )
    browser.click("Read")
    browser.click("Follow")
    browser.wait_for("waiting for new records")
    browser.wait_until("return window.late === 1")
    time.sleep(0.2)
    assert "waiting for new records" in browser.text()


ODD_RECORDS = [
    {"key": "tombstone", "value": None, "headers": [{"key": "none", "value": None}, {"key": "empty", "value": ""}]},
    {"key": "AP8=", "keyEncoding": "base64", "value": "/wA=", "valueEncoding": "base64", "headers": [BINARY_HEADER]},
]


@pytest.mark.parametrize("number", [0, 1])
def test_a_copy_of_a_record_has_its_nulls_and_bytes(
    number: int, browser: Browser, console: Console, broker: TailraceProcess
) -> None:
    topic = f"odd-{number}"
    lines = broker.data.parent / "odd"
    lines.write_text(json.dumps(ODD_RECORDS[number]) + "\n")
    where = ("--bootstrap", broker.bootstrap)
    assert command("topics", "create", topic, *where).status == 0
    assert command("produce", topic, "--json", "--file", lines, *where).status == 0
    browser.open(console.url + f"#/topics/{topic}?tab=records")
    browser.wait_for("1 record")
    browser.execute("document.querySelector('tbody button').click()")
    browser.wait_for("Produce a copy")
    browser.click("Produce a copy")
    browser.wait_for("A value that is null deletes the key")
    browser.click("Produce", within="dialog")
    browser.wait_for("written:")
    first, second = command("consume", topic, "--from", "beginning", "--max", 2, "--json", *where).json_lines
    for name in ("key", "keyEncoding", "value", "valueEncoding", "headers"):
        assert second.get(name) == first.get(name), name
    browser.click("Close")


def test_keys_values_and_headers_are_shown_as_hex(browser: Browser, console: Console) -> None:
    browser.open(console.url + "#/topics/odd-1?tab=records")
    browser.wait_for("2 records")
    browser.execute("document.querySelector('tbody button').click()")
    browser.wait_for("Produce a copy")
    for title in ("Key", "Value", "Header bytes"):
        browser.execute(f"document.querySelector(`dialog button[aria-label='{title} as hex']`).click()")
    shown = browser.execute("return [...document.querySelectorAll('dialog pre')].map((one) => one.textContent)")
    assert [one.split()[1:3] for one in shown] == [["00", "ff"], ["ff", "00"], ["fe", "01"]]
    browser.click("Close")


def test_a_failed_download_is_an_error_on_the_page(browser: Browser, console: Console) -> None:
    browser.open(console.url + "#/topics/orders?tab=records&from=0&max=2&partition=0")
    browser.wait_for("2 records")
    browser.execute(
        "const original = window.fetch; window.fetch = (target, options) =>"
        " original(String(target).includes('parquet') ? '/api/consume/parquet?arg=nothing' : target, options)"
    )
    browser.click("save as Parquet")
    browser.wait_for("there is no topic 'nothing'")
    assert "2 records" in browser.text(), "the page is still there"


def test_a_search_that_loses_its_connection_is_not_started_again(browser: Browser, console: Console) -> None:
    browser.open(console.url + "#/topics/orders?tab=records&from=beginning&key=k7&partition=0")
    browser.wait_for("1 record")
    browser.execute(
        "window.opened = 0; const Original = window.EventSource;"
        "window.EventSource = class extends Original {"
        " constructor(...all) { super(...all); window.opened += 1; window.source = this; } }"
    )
    browser.click("Search all")
    browser.wait_until("return window.source !== undefined")
    browser.execute("window.source.onerror(new Event('error'))")  # as after a lost connection, which would be retried
    browser.wait_for("the connection to the console was lost")
    assert browser.execute("return [window.opened, window.source.readyState]") == [1, 2]


def test_live_values_keep_the_order_the_rows_and_the_focus(browser: Browser, console: Console) -> None:
    browser.open(console.url + "#/topics")
    browser.wait_for("orders")
    browser.execute(
        "import('/dom.js').then(({h, table}) => { const rows = Array.from({length: 1000}, (_, n) => ({n, size: n}));"
        " const drawn = table([{head: 'N', cell: (one) => h('a', {href: `#/${one.n}`}, one.n), sort: (one) => -one.n},"
        " {head: 'Size', cell: (one) => one.size}], rows); window.drawn = drawn; window.rows = rows;"
        " document.querySelector('main').replaceChildren(drawn);"
        " drawn.querySelector('th button').click(); drawn.querySelector(':scope > button').click();"
        " drawn.querySelectorAll('tbody a')[300].focus(); })"
    )
    browser.wait_until("return window.drawn?.querySelectorAll('tbody tr').length >= 400")
    browser.execute("for (const row of window.rows) row.size += 5000; window.drawn.refresh()")
    cells = browser.execute(
        "return [...window.drawn.querySelectorAll('tbody tr')].slice(0, 2).map((one) => one.textContent)"
    )
    assert cells == ["9995999", "9985998"]
    assert browser.execute("return window.drawn.querySelectorAll('tbody tr').length") >= 400
    assert browser.execute("return document.activeElement.textContent") == "699"
