# C types for header_kernels.py: Cython reads them when it compiles that file; plain Python never sees them.
#
# See `records/kernels.pxd` for the rules.

cimport cython

ctypedef long long i64

@cython.locals(last=i64)
cdef i64 _add(i64 a, i64 b) noexcept

@cython.locals(high=i64)
cdef i64 _int32(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef i64 _uint32(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef i64 _int64(const unsigned char[::1] data, Py_ssize_t position) noexcept

@cython.locals(position=Py_ssize_t, size=i64, base_offset=i64, last_offset=i64)
cpdef tuple find_batch(const unsigned char[::1] view, Py_ssize_t start, Py_ssize_t end, i64 target_offset)

@cython.locals(position=Py_ssize_t, size=i64, magic=cython.int, base_offset=i64, crc=i64, time=i64, attributes=i64,
               batches=list)
cpdef tuple scan_batches(const unsigned char[::1] view, Py_ssize_t start, Py_ssize_t end)
