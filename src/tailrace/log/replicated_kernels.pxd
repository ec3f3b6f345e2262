# C types for replicated_kernels.py: Cython reads them when it compiles that file; plain Python never sees them.

cimport cython

ctypedef long long i64

@cython.locals(high=i64)
cdef i64 _int32(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef i64 _int64(const unsigned char[::1] data, Py_ssize_t position) noexcept

@cython.locals(view="const unsigned char[::1]", end=Py_ssize_t, start=Py_ssize_t, size=i64, base_offset=i64, delta=i64, crc=i64)
cpdef Py_ssize_t take_plain(data, i64 next_offset, i64 leader_epoch, list batches, list produced) except -1
