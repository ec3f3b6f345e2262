"""What the process beside a broker runs (`last_will.py` starts it): it waits for the broker's death, and tells of it.

Standard input has lines, each a will that takes the place of the one before: a frame in hexadecimal, and the addresses
of those who may be the active controller. An empty line is none. The input ends when the broker does.

It is run by itself, outside of the package, and imports next to nothing: it is there all the time, for every broker.
"""

from __future__ import annotations

import _socket  # `socket` would bring much more memory than it takes to connect
import sys
import time

PATIENCE_S = 10.0  # by then the session is over without our help
TIMEOUT_S = 2.0
PAUSE_S = 0.05
NOT_CONTROLLER = 41
ERROR_AT = 9  # behind correlation id, tags and throttle time


def main() -> None:
    will = ""
    for line in sys.stdin:
        if line.endswith("\n"):
            will = line.strip()
    if will:
        frame, *addresses = will.split()
        carry_out(bytes.fromhex(frame), addresses)


def carry_out(frame: bytes, addresses: list[str]) -> None:
    """Send a frame to one address after the other, until one answers that is the active controller."""
    deadline = time.monotonic() + PATIENCE_S
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
        connection.send(frame)  # so small that it goes at once
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
