# C types for replicated_kernels.py: Cython reads them when it compiles that file; plain Python never sees them.

cimport cython

ctypedef long long i64

@cython.locals(high=i64)
cdef i64 _int32(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef i64 _int64(const unsigned char[::1] data, Py_ssize_t position) noexcept

@cython.locals(size=i64)
cdef int _frame_fault(const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end) noexcept

@cython.locals(view="const unsigned char[::1]", end=Py_ssize_t, last=Py_ssize_t, start=Py_ssize_t, fault=cython.int)
cpdef Py_ssize_t last_batch(data) except? -2

@cython.locals(view="const unsigned char[::1]", end=Py_ssize_t, size=i64, base_offset=i64, delta=i64, fault=cython.int,
               epoch=i64, batch_epoch=i64, largest=i64, first_offset=i64, timestamp=i64)
cpdef tuple take_replicated(data, Py_ssize_t start, i64 next_offset, i64 epoch_max, list batches, list epochs,
                            list produced)
