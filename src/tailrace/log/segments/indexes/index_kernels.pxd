# C types for index_kernels.py: Cython reads them when it compiles that file; plain Python never sees them.
#
# See `records/kernels.pxd` for the rules.

cimport cython

ctypedef long long i64

@cython.locals(high=i64)
cdef i64 _int32(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef i64 _int64(const unsigned char[::1] data, Py_ssize_t position) noexcept

cpdef Py_ssize_t offset_index_slot(const unsigned char[::1] data, Py_ssize_t entries, i64 relative_offset) except? -2

cpdef Py_ssize_t position_index_slot(const unsigned char[::1] data, Py_ssize_t entries, i64 file_position) except? -2

cpdef Py_ssize_t time_index_slot(const unsigned char[::1] data, Py_ssize_t entries, i64 timestamp) except? -2

@cython.locals(low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t, at=Py_ssize_t)
cdef Py_ssize_t _floor_slot(const unsigned char[::1] view, Py_ssize_t entries, Py_ssize_t size, Py_ssize_t inside,
                            i64 target) except? -2
