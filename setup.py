"""Compile the kernels in place if there is a C compiler. Without one the same files run interpreted."""

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = (
    "tailrace.records.kernels",
    "tailrace.records.columnar.columns",
    "tailrace.records.columnar.column_encoder",
    "tailrace.log.compaction.cleaner_kernels",
    "tailrace.log.recovery.scan_kernels",
    "tailrace.log.replicated.replicated_kernels",
    "tailrace.coordinator.offsets.offset_kernels",
    "tailrace.protocol.flat.read_kernels",
    "tailrace.protocol.flat.write_kernels",
)

sources = [Extension(name, [f"src/{name.replace('.', '/')}.py"]) for name in KERNELS]
extensions = cythonize(sources, language_level=3)
for extension in extensions:
    extension.optional = True  # set here, because cythonize() does not copy it from the Extension that it is given

setup(ext_modules=extensions)
