"""Compile the kernels in place if there is a C compiler. Without one the same files run interpreted."""

import re
import sys
from pathlib import Path
from runpy import run_path

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = run_path("src/tailrace/model/kernel_forms.py")["KERNELS"]
PAGES = "https://github.com/tailrace/tailrace/blob"

# No debug symbols: they are four fifths of an object. Compilers of Windows do not know these options, and macOS' linker
# has no use for -s.
COMPILER_OPTIONS = [] if sys.platform == "win32" else ["-g0"]
LINKER_OPTIONS = ["-s"] if sys.platform == "linux" else []


def long_description() -> str:
    """Return the README with links to the pages of this version, because a package index resolves no relative links."""
    version = re.search(r'^__version__ = "(.+)"$', Path("src/tailrace/__init__.py").read_text(), re.MULTILINE)[1]
    readme = Path("README.md").read_text(encoding="utf-8")
    return re.sub(r"\]\((?![a-z]+:|#)", f"]({PAGES}/v{version}/", readme)


def kernel_extensions() -> list[Extension]:
    sources = [
        Extension(
            name,
            [f"src/{name.replace('.', '/')}.py"],
            extra_compile_args=COMPILER_OPTIONS,
            extra_link_args=LINKER_OPTIONS,
        )
        for name in KERNELS
    ]
    # The generated C lies below build/, because setuptools would copy it into the wheel from src/.
    extensions = cythonize(sources, language_level=3, build_dir="build/cython")
    for extension in extensions:
        extension.optional = True  # set here, because cythonize() does not copy it from the Extension that it is given
    return extensions


if __name__ == "__main__":
    setup(
        ext_modules=kernel_extensions(),
        long_description=long_description(),
        long_description_content_type="text/markdown",
    )
