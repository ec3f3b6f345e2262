"""Try an installed Tailrace: its version, a broker, a record there and back, the files, a clean stop.

python scripts/smoke_test.py                        with the `tailrace` of this Python
python scripts/smoke_test.py --kernels compiled     and its kernels have to be compiled
"""

from __future__ import annotations

import argparse
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

TIMEOUT_S = 60
NEEDS_UNIX = "this command needs Linux or macOS"


def command() -> str:
    """Return the path of the command `tailrace` that was installed with this Python."""
    found = shutil.which("tailrace", path=sysconfig.get_path("scripts"))
    if found is None:
        raise SystemExit(f"{sysconfig.get_path('scripts')} has no command tailrace: install the package first")
    return found


def run(*arguments: str, given: str = "", status: int = 0) -> str:
    """Run the command, and return its output. End with its messages if it has another status."""
    done = subprocess.run([command(), *arguments], input=given, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode != status:
        raise SystemExit(f"tailrace {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def check(ok: bool, expected: str, output: str) -> None:
    if not ok:
        raise SystemExit(f"expected {expected}, but the output is:\n{output}")


def check_version(kernels: str | None) -> None:
    output = run("--version")
    form = kernels or r"\w+"
    check(re.fullmatch(rf"tailrace \S+ \({form} kernels\)\n", output) is not None, f"{form} kernels", output)
    print(output, end="")


def check_records(directory: Path) -> None:
    """Serve a new directory, write and read records, stop the broker, and verify its files."""
    data = str(directory / "data")
    arguments = [command(), "serve", "--data", data, "--port", "0", "--ready-line", "ready"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            lines = iter(broker.stdout.readline, "")
            address = next((found[1] for line in lines if (found := re.search(r"PLAINTEXT://(\S+)", line))), None)
            if address is None or next(lines, "") != "ready\n":
                raise SystemExit("the broker did not start")
            at = ("--bootstrap", address)
            run("topics", "create", "orders", *at)
            for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
                run("produce", "orders", "--compression", codec, *at, given=f"packed with {codec}\n" * 3)
            output = run("consume", "orders", "--values", *at)
            check(output.count("packed with zstd\n") == 3 and output.count("\n") == 15, "15 records", output)
        finally:
            broker.send_signal(signal.SIGTERM)
            stopped = broker.wait(TIMEOUT_S)
    check(stopped == 0, "status 0 of the broker", str(stopped))
    run("log", "verify", data, "--deep")
    print("15 records written, read and verified")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kernels", choices=("compiled", "interpreted"), help="the form that the kernels must have")
    arguments = parser.parse_args()
    check_version(arguments.kernels)
    if sys.platform == "win32":
        output = run("serve", status=2)
        check(NEEDS_UNIX in output, NEEDS_UNIX, output)
        return
    with tempfile.TemporaryDirectory(prefix="tailrace-smoke-") as directory:
        check_records(Path(directory))


if __name__ == "__main__":
    main()
