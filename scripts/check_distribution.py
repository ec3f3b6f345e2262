"""Check packages before they are uploaded: names, contents, size, links of the description.

python scripts/check_distribution.py dist/*                  every file, and that the versions are Tailrace's
python scripts/check_distribution.py --tag v0.2.0 dist/*     and that the tag names the same version
"""

from __future__ import annotations

import argparse
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import tailrace
from tailrace.model.kernel_forms import KERNELS, REQUEST_PATH

WHEEL_BYTES_MAX = 8_400_000
SDIST_BYTES_MAX = 3_000_000
NEEDED = ("tailrace/py.typed", "tailrace/protocol/schemas/index.json", "tailrace/pytest_plugin.py")
SDIST_NEEDED = (
    "setup.py",
    "pyproject.toml",
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    "scripts/smoke_test.py",
    "scripts/extension_types.py",
)
NOT_ALLOWED = re.compile(r"\.(c|pyc|o|a)$|(^|/)(tests|benchmarks|\.git)/")
LINK = re.compile(r"\]\(([^)]*)\)|(?:href|src)=\"([^\"]*)\"")
ABSOLUTE = re.compile(r"(https?:|mailto:|#)")


def relative_links(description: str) -> list[str]:
    """Return the links that lead nowhere on the page of a package index."""
    targets = [found[1] or found[2] or "" for found in LINK.finditer(description)]
    return [target for target in targets if not ABSOLUTE.match(target)]


def wheel_problems(path: Path) -> Iterator[str]:
    name = re.fullmatch(r"tailrace-([^-]+)-(cp\d+t?)-\2-(.+)\.whl", path.name)
    if name is None:
        yield "its name is not tailrace-VERSION-PYTHON-ABI-PLATFORM.whl"
        return
    if name[1] != tailrace.__version__:
        yield f"its version is {name[1]}, but Tailrace's is {tailrace.__version__}"
    if name[3].startswith("linux"):
        yield f"its platform is {name[3]}, which an index refuses: repair it with auditwheel"
    with zipfile.ZipFile(path) as wheel:
        files = wheel.namelist()
        metadata = wheel.read(f"tailrace-{name[1]}.dist-info/METADATA").decode()
    yield from (f"{needed} is missing" for needed in NEEDED if needed not in files)
    objects = {file.partition(".")[0].replace("/", ".") for file in files if file.endswith(".so")}
    yield from (f"{name} is not compiled" for name in (*KERNELS, *REQUEST_PATH) if name not in objects)
    yield from problems_of_all(path, files, metadata, WHEEL_BYTES_MAX)


def sdist_problems(path: Path) -> Iterator[str]:
    top = f"tailrace-{tailrace.__version__}"
    if path.name != f"{top}.tar.gz":
        yield f"its name is not {top}.tar.gz"
        return
    with tarfile.open(path) as sdist:
        files = [name.removeprefix(f"{top}/") for name in sdist.getnames()]
        information = sdist.extractfile(f"{top}/PKG-INFO")
        assert information is not None
        metadata = information.read().decode()
    needed = [*SDIST_NEEDED, *(f"src/{name}" for name in NEEDED)]
    for kernel in KERNELS:
        needed += [f"src/{kernel.replace('.', '/')}{suffix}" for suffix in (".py", ".pxd")]
    yield from (f"{name} is missing" for name in needed if name not in files)
    yield from (f"{name} is compiled" for name in files if name.endswith(".so"))
    yield from problems_of_all(path, files, metadata, SDIST_BYTES_MAX)


def problems_of_all(path: Path, files: list[str], metadata: str, bytes_max: int) -> Iterator[str]:
    yield from (f"{name} does not belong there" for name in files if NOT_ALLOWED.search(name))
    yield from (f"its description has the relative link {link!r}" for link in relative_links(metadata))
    size = path.stat().st_size
    if size > bytes_max:
        yield f"its size is {size:,} bytes, the limit is {bytes_max:,}"


def problems(path: Path) -> list[str]:
    found = wheel_problems(path) if path.suffix == ".whl" else sdist_problems(path)
    return [f"{path.name}: {problem}" for problem in found]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tag", help="the tag of the release, v and the version")
    parser.add_argument("files", nargs="+", type=Path, help="wheels and sdists")
    arguments = parser.parse_args()
    found = [problem for path in arguments.files for problem in problems(path)]
    if arguments.tag is not None and arguments.tag != f"v{tailrace.__version__}":
        found.append(
            f"the tag is {arguments.tag}, but the version in src/tailrace/__init__.py is {tailrace.__version__}"
        )
    for path in arguments.files:
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
