"""Compiles the kernels in place when a C compiler is to be had; without one the same files run interpreted."""

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = [
    Extension("tailrace.records.kernels", ["src/tailrace/records/kernels.py"], optional=True),
    Extension("tailrace.records.columns", ["src/tailrace/records/columns.py"], optional=True),
    Extension("tailrace.records.column_encoder", ["src/tailrace/records/column_encoder.py"], optional=True),
    Extension("tailrace.log.cleaner_kernels", ["src/tailrace/log/cleaner_kernels.py"], optional=True),
    Extension("tailrace.log.scan_kernels", ["src/tailrace/log/scan_kernels.py"], optional=True),
    Extension("tailrace.log.replicated_kernels", ["src/tailrace/log/replicated_kernels.py"], optional=True),
    Extension("tailrace.protocol.request_kernels", ["src/tailrace/protocol/request_kernels.py"], optional=True),
]

setup(ext_modules=cythonize(KERNELS, language_level=3))
