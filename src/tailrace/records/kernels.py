# cython: language_level=3, boundscheck=False, wraparound=False
"""The loops over records: the only code that runs once per record.

Plain Python that Cython compiles in place, with its C types in kernels.pxd: one source for both speeds. The
interpreted file is what runs where there is no compiler, and the oracle that the compiled one is tested against.
"""

COMPILED = not __file__.endswith(".py")
