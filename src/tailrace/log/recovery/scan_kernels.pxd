# C types for scan_kernels.py: Cython reads them when it compiles that file; plain Python never sees them.

cimport cython

ctypedef long long i64

@cython.locals(high=i64)
cdef i64 _int32(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef i64 _int64(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef int _append_int32(bytearray out, i64 value) except -1

cdef i64 _smallest_size(int magic) noexcept

@cython.locals(position=Py_ssize_t, size=i64, magic=cython.int)
cpdef Py_ssize_t whole_batches(const unsigned char[::1] view, Py_ssize_t end) except -1

cdef class SegmentScan:
    cdef readonly i64 base_offset
    cdef readonly i64 next_offset
    cdef readonly i64 end_offset
    cdef public i64 leader_epoch
    cdef readonly i64 largest_timestamp
    cdef readonly i64 largest_offset
    cdef readonly bytearray offset_entries
    cdef readonly bytearray time_entries
    cdef i64 _index_interval
    cdef i64 _gaps_end
    cdef i64 _unindexed
    cdef i64 _last_timestamp

    @cython.locals(view="const unsigned char[::1]", end=Py_ssize_t, size=i64, base_offset=i64, delta=i64, crc=i64)
    cpdef Py_ssize_t take_plain(self, data, Py_ssize_t start, i64 position, list produced) except -1

    cpdef int take(self, i64 position, i64 size, i64 last_offset, i64 max_timestamp) except -1

    cpdef int note_time(self) except -1
