# C types for check_kernels.py: Cython reads them when it compiles that file; plain Python never sees them.
#
# See `records/kernels.pxd` for the rules.

cimport cython

ctypedef long long i64
ctypedef unsigned long long u64

@cython.locals(low32=u64, raw=u64, byte=u64, shift=cython.int, value=i64)
cdef (i64, Py_ssize_t) _varint(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(raw=u64, byte=u64, shift=cython.int, value=i64)
cdef (i64, Py_ssize_t) _varlong(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(last=i64)
cdef i64 _add(i64 a, i64 b) noexcept

@cython.locals(high=i64)
cdef i64 _int32(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef i64 _uint32(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef i64 _int64(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef int _check_count(i64 count) except -1

@cython.locals(count=i64, length=i64)
cdef Py_ssize_t _skip_headers(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end) noexcept

cdef class RecordWalk:
    cdef readonly i64 index, refused, largest
    cdef readonly bint sequential
    cdef readonly list found
    cdef i64 count, base_timestamp, earliest, latest, skip, passed, start, size, timestamp_delta, offset_delta, headers
    cdef bint check_sizes, needs_keys, has_key
    cdef Py_ssize_t found_max
    cdef int stage

    cdef int _begin(self, i64 count, i64 base_timestamp, bint check_sizes, bint needs_keys, i64 earliest, i64 latest,
                    Py_ssize_t found_max) except -1

    @cython.locals(end=Py_ssize_t, position=Py_ssize_t, following=Py_ssize_t, value=i64)
    cpdef Py_ssize_t feed(self, const unsigned char[::1] data, bint is_last) except -1

    @cython.locals(start=Py_ssize_t, at=Py_ssize_t, size=i64, length=i64, timestamp_delta=i64, offset_delta=i64,
                   has_key=bint)
    cdef Py_ssize_t _whole_records(self, const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end) except -1

    @cython.locals(timestamp=i64)
    cdef int _note(self, i64 offset_delta, i64 timestamp_delta, bint has_key) except -1

    @cython.locals(stage=cython.int)
    cdef int _take_field(self, i64 value, Py_ssize_t position) except -1

@cython.locals(last_offset_delta=i64, count=i64)
cpdef int header_fault(const unsigned char[::1] data) except? -1

@cython.locals(last=i64, latest=i64)
cpdef (i64, i64) timestamp_bounds(i64 now_ms, i64 before_ms, i64 after_ms) noexcept

@cython.locals(end=Py_ssize_t, position=Py_ssize_t, earliest=i64, latest=i64, walk=RecordWalk, is_filled=bint)
cpdef bint is_sound(const unsigned char[::1] data, i64 crc, i64 now_ms, i64 before_ms, i64 after_ms,
                    bint needs_keys) except -1
