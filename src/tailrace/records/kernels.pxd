# C types for kernels.py: Cython reads them when it compiles that file; plain Python never sees them.
