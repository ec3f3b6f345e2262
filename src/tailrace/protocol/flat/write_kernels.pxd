# C types for write_kernels.py: Cython reads them when it compiles that file; plain Python never sees them.

cimport cython

ctypedef long long i64

@cython.locals(size=cython.int)
cdef int _length_size(i64 value) noexcept

cdef Py_ssize_t _put_length(unsigned char[::1] out, Py_ssize_t at, i64 value) noexcept

cdef Py_ssize_t _put_int16(unsigned char[::1] out, Py_ssize_t at, int value) noexcept

cdef int _put_int32(unsigned char[::1] data, Py_ssize_t position, i64 value) noexcept

cdef Py_ssize_t _put_int64(unsigned char[::1] out, Py_ssize_t at, i64 value) noexcept

cdef Py_ssize_t _copy(const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t stop, unsigned char[::1] out,
                      Py_ssize_t at) noexcept

@cython.locals(size=i64, length=i64)
cdef i64 _topic_size(name, i64 partitions, bint by_id) except -1

@cython.locals(name=bytes)
cdef Py_ssize_t _put_topic(unsigned char[::1] out, Py_ssize_t at, topic, bint by_id) except -1

@cython.locals(by_id=bint, size=i64, at=Py_ssize_t, out="unsigned char[::1]", partitions=list)
cpdef write_produced(int version, i64 correlation_id, i64 throttle_ms, list topics)

@cython.locals(by_id=bint, size=i64, length=i64, at=Py_ssize_t, begun=Py_ssize_t, out="unsigned char[::1]",
               partitions=list, index=i64, code=cython.int, high_watermark=i64, last_stable=i64, log_start=i64,
               preferred=i64, parts=list)
cpdef write_fetched(int version, i64 correlation_id, i64 throttle_ms, int error, i64 session_id, list topics)

@cython.locals(size=i64, length=i64, partitions=list)
cdef i64 _fetched_size(list topics, bint by_id) except -2

@cython.locals(producer_id=i64, first_offset=i64)
cdef Py_ssize_t _put_aborted(unsigned char[::1] out, Py_ssize_t at, aborted) except -1

@cython.locals(by_id=bint, size=i64, at=Py_ssize_t, out="unsigned char[::1]", partitions=list, has_errors=bint,
               code=cython.int, place=Py_ssize_t, index=i64)
cpdef write_committed(int version, i64 correlation_id, i64 throttle_ms, list topics)
