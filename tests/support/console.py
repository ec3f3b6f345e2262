"""A `tailrace console` process for tests, and an HTTP client for it."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

from tests.support.command import tailrace


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class ConsoleClient:
    """Sends the requests of a page to a console."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.words: tuple[str, ...] = ()  # the options of the console that another one can use, too
        self.cookie: str | None = None

    @property
    def url(self) -> str:
        return f"http://{self.address}/"

    def ask(self, method: str, target: str, body: str = "", **headers: str) -> Answer:
        connection = http.client.HTTPConnection(self.address, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie is not None:
            sent["Cookie"] = self.cookie
        connection.request(method, target, body.encode() or None, sent)
        response = connection.getresponse()
        answer = Answer(
            response.status, {name.lower(): value for name, value in response.getheaders()}, response.read().decode()
        )
        connection.close()
        if "set-cookie" in answer.headers:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer

    def get(self, path: str, *parameters: tuple[str, Any]) -> Answer:
        return self.ask("GET", f"/api/{path}?{urlencode(parameters)}")

    def post(self, path: str, *parameters: tuple[str, Any], body: str = "") -> Answer:
        return self.ask("POST", f"/api/{path}?{urlencode(parameters)}", body, x_tailrace_console="1")

    def log_in(self, user: str, password: str) -> Answer:
        return self.post("login", body=json.dumps({"user": user, "password": password}))


class Console(ConsoleClient):
    """`tailrace console`, as a process of its own."""

    def __init__(self, *words: str) -> None:
        command = [sys.executable, "-m", "tailrace", "console", "--listen", "127.0.0.1:0", "--ends-with-input", *words]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ
        )
        assert self._process.stdout is not None
        self.first_line = self._process.stdout.readline().decode()
        found = re.search(r"http://([^/]+)/", self.first_line)
        assert found is not None, self.first_line
        super().__init__(found[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid


def printed(bootstrap: str, *words: str) -> str:
    """Return what a command prints with --json."""
    ran = tailrace(*words, "--json", "--bootstrap", bootstrap)
    assert ran.status == 0, ran.err
    return ran.out


def write_client_file(path: Path, **settings: str) -> Path:
    path.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in settings.items()))
    return path
