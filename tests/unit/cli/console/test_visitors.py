"""Sessions of visitors, and requests that do not come from the console's page."""

from __future__ import annotations

import pytest

from tailrace.cli.console.console_settings import ConsoleSettings, split_address
from tailrace.cli.console.http_message import Request
from tailrace.cli.console.visitors import COOKIE, IDLE_S_MAX, VISITORS_MAX, Visitors, foreign_reason
from tailrace.cli.errors import CommandError

SETTINGS = ConsoleSettings("127.0.0.1", 8080, ())


def request(method: str = "GET", **headers: str) -> Request:
    return Request(
        method, "/api/topics/list", {"host": "127.0.0.1:8080", **{k.replace("_", "-"): v for k, v in headers.items()}}
    )


def with_cookie(set_cookie: str) -> Request:
    return request(cookie=f"other=1; {set_cookie.partition(';')[0]}")


def test_requests_of_the_consoles_own_page_are_accepted() -> None:
    assert foreign_reason(request(), SETTINGS) is None
    assert foreign_reason(request(origin="http://127.0.0.1:8080", sec_fetch_site="same-origin"), SETTINGS) is None
    assert foreign_reason(request("POST", origin="http://127.0.0.1:8080", x_tailrace_console="1"), SETTINGS) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:8080"},
        {"host": ""},
        {"host": "127.0.0.1.evil.example"},
        {"host": "["},
        {"host": "[::1"},
        {"origin": "http://["},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
def test_a_request_of_another_site_is_refused(headers: dict[str, str]) -> None:
    assert foreign_reason(request(**headers), SETTINGS) is not None


def test_a_post_without_the_consoles_header_is_refused() -> None:
    reason = foreign_reason(request("POST", origin="http://127.0.0.1:8080"), SETTINGS)
    assert reason is not None
    assert "x-tailrace-console" in reason


def test_another_host_name_is_accepted_only_with_the_host_name_option() -> None:
    headers = {"host": "kafka.example.com:8080"}
    assert "--host-name kafka.example.com" in str(foreign_reason(request(**headers), SETTINGS))
    named = ConsoleSettings("0.0.0.0", 8080, (), host_names=("kafka.example.com",))
    assert foreign_reason(request(**headers), named) is None


def test_a_session_ends_at_logout_or_after_an_idle_hour() -> None:
    now = [0.0]
    visitors = Visitors(SETTINGS, lambda: now[0])
    cookie = visitors.log_in("alice", "secret")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    found = visitors.find(with_cookie(cookie))
    assert found is not None
    assert found.user == "alice"
    now[0] = IDLE_S_MAX
    assert visitors.find(with_cookie(cookie)) is found  # seen: another hour
    now[0] = 2 * IDLE_S_MAX + 1
    assert visitors.find(with_cookie(cookie)) is None
    second = visitors.log_in("alice", "secret")
    assert "Max-Age=0" in visitors.log_out(with_cookie(second))
    assert visitors.find(with_cookie(second)) is None


def test_a_guessed_or_missing_cookie_has_no_session() -> None:
    visitors = Visitors(SETTINGS, lambda: 0.0)
    visitors.log_in("alice", "secret")
    assert visitors.find(request()) is None
    assert visitors.find(request(cookie=f"{COOKIE}=")) is None
    assert visitors.find(request(cookie=f"{COOKIE}=guess")) is None


def test_the_number_of_visitors_is_bounded() -> None:
    now = [0.0]
    visitors = Visitors(SETTINGS, lambda: now[0])
    first = visitors.log_in("first", "x")
    for number in range(VISITORS_MAX):
        now[0] += 0.001
        last = visitors.log_in(str(number), "x")
    assert visitors.find(with_cookie(first)) is None
    assert visitors.find(with_cookie(last)) is not None


def test_an_address_that_others_reach_needs_a_login_and_tls() -> None:
    for settings in (
        ConsoleSettings("0.0.0.0", 1, ()),
        ConsoleSettings("10.0.0.1", 1, (), has_login=True),
        ConsoleSettings("::", 1, (), tls_certificate="x.pem"),
        ConsoleSettings("kafka.example.com", 1, ()),
    ):
        with pytest.raises(CommandError, match="--login and --tls-certificate"):
            settings.check()
    ConsoleSettings("0.0.0.0", 1, (), has_login=True, tls_certificate="x.pem").check()
    for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9"):
        ConsoleSettings(host, 1, ()).check()


@pytest.mark.parametrize("text", ["x", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", ":-1", "[::1]"])
def test_an_address_without_a_valid_port_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="HOST:PORT"):
        split_address(text)


def test_an_address_is_split_into_host_and_port() -> None:
    assert split_address("8080") == ("127.0.0.1", 8080)
    assert split_address(":8080") == ("127.0.0.1", 8080)
    assert split_address("[::1]:8080") == ("::1", 8080)
