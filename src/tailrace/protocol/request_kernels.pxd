# C types for request_kernels.py: Cython reads them when it compiles that file; plain Python never sees them.

cimport cython

ctypedef long long i64

@cython.locals(value=cython.int)
cdef int _int16(const unsigned char[::1] data, Py_ssize_t position) noexcept

@cython.locals(high=i64)
cdef i64 _int32(const unsigned char[::1] data, Py_ssize_t position) noexcept

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

@cython.locals(end=Py_ssize_t, position=Py_ssize_t, version=cython.int, size=i64, group=Py_ssize_t,
               group_stop=Py_ssize_t, generation=i64, member=Py_ssize_t, member_stop=Py_ssize_t, instance=Py_ssize_t,
               instance_stop=Py_ssize_t, count=i64, topic=Py_ssize_t, topic_stop=Py_ssize_t, number=i64,
               start=Py_ssize_t)
cpdef read_offset_commit(const unsigned char[::1] data)

@cython.locals(size=i64)
cdef Py_ssize_t _after_commits(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end, i64 number) noexcept

cdef Py_ssize_t _put_varint(unsigned char[::1] out, Py_ssize_t at, i64 value) noexcept

@cython.locals(size=cython.int)
cdef int _zigzag_size(i64 value) noexcept

cdef Py_ssize_t _copy(const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t stop, unsigned char[::1] out,
                      Py_ssize_t at) noexcept

@cython.locals(size=cython.int)
cdef int _length_size(i64 value) noexcept

cdef int _put_int32(unsigned char[::1] data, Py_ssize_t position, i64 value) noexcept

cdef Py_ssize_t _put_length(unsigned char[::1] out, Py_ssize_t at, i64 value) noexcept

@cython.locals(at=Py_ssize_t, delta=i64, key_size=Py_ssize_t, end_size=Py_ssize_t, partition=i64, metadata=i64, size=i64)
cpdef Py_ssize_t encode_commits(const unsigned char[::1] data, Py_ssize_t position, i64 number, i64 partitions,
                                i64 first_delta, const unsigned char[::1] key_start,
                                const unsigned char[::1] value_end, unsigned char[::1] out)

@cython.locals(metadata=i64, stop=Py_ssize_t)
cpdef take_commits(const unsigned char[::1] data, Py_ssize_t position, i64 number, committed_at_ms, i64 record_offset,
                   make, dict known)

@cython.locals(size=i64, topic=Py_ssize_t, topic_stop=Py_ssize_t, position=Py_ssize_t, number=i64, at=Py_ssize_t,
               left=i64, metadata=i64, out="unsigned char[::1]")
cpdef commit_answer(const unsigned char[::1] data, i64 correlation_id, list topics, bint by_id, int error)
