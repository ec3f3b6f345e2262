"""The process beside a broker (started by `last_will.py`): it waits for the broker's death and reports it.

Standard input has lines. Each line is a will that replaces the previous one: a frame in hexadecimal, and the addresses
of possible active controllers. An empty line revokes the will. The input ends when the broker dies.

The file is run as a program, outside of the package, and imports little: it runs all the time, beside every broker.
"""

from __future__ import annotations

import _socket  # `socket` would bring much more memory than it takes to connect
import sys
import time

TIMEOUT_S = 10.0  # after that the session has expired anyway
TIMEOUT_S = 2.0
PAUSE_S = 0.05
NOT_CONTROLLER = 41
ERROR_AT = 9  # after correlation id, tags and throttle time


def main() -> None:
    will = ""
    for line in sys.stdin:
        if line.endswith("\n"):
            will = line.strip()
    if will:
        frame, *addresses = will.split()
        carry_out(bytes.fromhex(frame), addresses)


def carry_out(frame: bytes, addresses: list[str]) -> None:
    """Send a frame to one address after the other, until the active controller has responded."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        for address in addresses:
            try:
                answer = ask(address, frame)
            except OSError:
                continue
            if len(answer) >= ERROR_AT + 2 and int.from_bytes(answer[ERROR_AT : ERROR_AT + 2], "big") != NOT_CONTROLLER:
                return
        time.sleep(PAUSE_S)


def ask(address: str, frame: bytes) -> bytes:
    host, _, port = address.rpartition(":")
    family, kind, protocol, _, place = _socket.getaddrinfo(host, int(port), 0, _socket.SOCK_STREAM)[0]
    connection = _socket.socket(family, kind, protocol)
    try:
        connection.settimeout(TIMEOUT_S)
        connection.connect(place)
        connection.send(frame)  # small enough to be sent at once
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
            piece = connection.recv(4_096)
            if not piece:
                break
            answer += piece
        return answer[4:]
    finally:
        connection.close()


if __name__ == "__main__":
    main()
