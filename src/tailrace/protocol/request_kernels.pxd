# C types for request_kernels.py: Cython reads them when it compiles that file; plain Python never sees them.

cimport cython

ctypedef long long i64

@cython.locals(value=cython.int)
cdef int _int16(const unsigned char[::1] data, Py_ssize_t position) noexcept

@cython.locals(high=i64)
cdef i64 _int32(const unsigned char[::1] data, Py_ssize_t position) noexcept

@cython.locals(high=i64, low=i64)
cdef i64 _int64(const unsigned char[::1] data, Py_ssize_t position) noexcept

@cython.locals(value=i64, shift=cython.int, byte=i64)
cdef (i64, Py_ssize_t) _length(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(version=cython.int, position=Py_ssize_t, size=cython.int)
cdef Py_ssize_t _body(const unsigned char[::1] data, int api_key, int first_version, int last_version,
                      Py_ssize_t end) noexcept

@cython.locals(size=Py_ssize_t, start=Py_ssize_t)
cdef (Py_ssize_t, Py_ssize_t) _topic(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end,
                                     bint by_id) noexcept

@cython.locals(end=Py_ssize_t, position=Py_ssize_t, version=cython.int, acks=cython.int, topic=Py_ssize_t,
               topic_stop=Py_ssize_t, index=i64, size=i64, start=Py_ssize_t, stop=Py_ssize_t)
cpdef read_produce(const unsigned char[::1] data)

@cython.locals(end=Py_ssize_t, position=Py_ssize_t, version=cython.int, wait_ms=i64, least=i64, most=i64,
               isolation=cython.int, topic=Py_ssize_t, topic_stop=Py_ssize_t, index=i64, epoch=i64, offset=i64,
               partition_most=i64, rack=i64)
cpdef read_fetch(const unsigned char[::1] data)
