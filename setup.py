"""Compiles records/kernels.py in place when a C compiler is to be had; without one the same file runs interpreted."""

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = Extension("tailrace.records.kernels", ["src/tailrace/records/kernels.py"], optional=True)

setup(ext_modules=cythonize([KERNELS], language_level=3))
