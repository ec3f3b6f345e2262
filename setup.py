"""Compile the kernels if there is a C compiler. Without one the same files run interpreted.

A wheel, and `make compiled`, also have the request path compiled. A checkout has only the kernels, in place.
"""

import os
import re
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from runpy import run_path

from Cython.Build import cythonize
from setuptools import Extension, setup

FORMS = run_path("src/tailrace/model/kernel_forms.py")
KERNELS, REQUEST_PATH = FORMS["KERNELS"], FORMS["REQUEST_PATH"]
PAGES = "https://github.com/tailrace/tailrace/blob"

# No debug symbols: they are four fifths of an object. Compilers of Windows do not know these options, and the linker of
# macOS ignores -s.
COMPILER_OPTIONS = [] if sys.platform == "win32" else ["-g0"]
LINKER_OPTIONS = ["-s"] if sys.platform == "linux" else []


def long_description() -> str:
    """Return the README with links to the pages of this version, because a package index resolves no relative links."""
    version = re.search(r'^__version__ = "(.+)"$', Path("src/tailrace/__init__.py").read_text(), re.MULTILINE)[1]
    readme = Path("README.md").read_text(encoding="utf-8")
    return re.sub(r"\]\((?![a-z]+:|#)", f"]({PAGES}/v{version}/", readme)


def extension(name: str, source: str | Path) -> Extension:
    options = {"extra_compile_args": COMPILER_OPTIONS, "extra_link_args": LINKER_OPTIONS}
    return Extension(name, [str(source)], **options)


def kernel_extensions() -> list[Extension]:
    sources = [extension(name, f"src/{name.replace('.', '/')}.py") for name in KERNELS]
    # The generated C lies below build/, because setuptools would copy it into the wheel from src/.
    return cythonize(sources, language_level=3, build_dir="build/cython")


def request_path_extensions() -> list[Extension]:
    """Return the modules of the request path, if packages are built. Type annotations have no effect in them."""
    if not {"bdist_wheel", "build"}.intersection(sys.argv):
        return []
    copy_with_declarations = run_path("scripts/extension_types.py")["copy_with_declarations"]
    target = Path("build/request_path")
    copies = copy_with_declarations(Path("src"), target, REQUEST_PATH)
    sources = [extension(name, place) for name, place in copies]
    return cythonize(
        sources,
        language_level=3,
        include_path=[str(target)],
        build_dir="build/cython",
        compiler_directives={"annotation_typing": False},
    )


def missing_compiler() -> str | None:
    """Return the command of the C compiler if it does not exist. Translating modules to C would be useless."""
    if sys.platform == "win32":  # setuptools finds compilers that are not on the PATH
        return None
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    return None if shutil.which(command) else command


def extensions() -> list[Extension]:
    command = missing_compiler()
    if command is not None:
        print(f"there is no C compiler ({command}): the kernels stay interpreted", file=sys.stderr)
        return []
    found = [*kernel_extensions(), *request_path_extensions()]
    for one in found:
        one.optional = True  # set here, because cythonize() does not copy it from the Extension that it is given
    return found


if __name__ == "__main__":
    setup(
        ext_modules=extensions(),
        long_description=long_description(),
        long_description_content_type="text/markdown",
    )
