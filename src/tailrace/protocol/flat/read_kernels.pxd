# C types for read_kernels.py: Cython reads them when it compiles that file; plain Python never sees them.

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

@cython.locals(size=i64, start=Py_ssize_t)
cdef (Py_ssize_t, Py_ssize_t) _string(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(size=cython.int)
cdef _client_id(frame, const unsigned char[::1] data)

cdef (Py_ssize_t, Py_ssize_t) _topic_place(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end,
                                     bint by_id) noexcept

cdef _identity(frame, Py_ssize_t start, Py_ssize_t stop, bint by_id)

@cython.locals(data="const unsigned char[::1]", end=Py_ssize_t, position=Py_ssize_t, version=cython.int, size=i64,
               start=Py_ssize_t, acks=cython.int, timeout_ms=i64)
cpdef read_flat_produce(frame, i64 elements_max)

cpdef bint is_plain(const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t stop) except -1

@cython.locals(count=i64, start=Py_ssize_t, stop=Py_ssize_t, number=i64, index=i64, size=i64, topics=list,
               partitions=list, asked=i64, plain_bytes=i64)
cdef _produced_topics(frame, const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end, bint by_id, i64 left)

@cython.locals(data="const unsigned char[::1]", end=Py_ssize_t, position=Py_ssize_t, version=cython.int,
               replica_id=i64, replica_epoch=i64, first=Py_ssize_t, start=Py_ssize_t, stop=Py_ssize_t,
               isolation=cython.int, asked=i64, wait_ms=i64, least=i64, most=i64,
               session=i64, epoch=i64, topics=list, forgotten=list)
cpdef read_flat_fetch(frame, i64 elements_max)

@cython.locals(by_id=bint, kind=cython.int, count=i64, start=Py_ssize_t, stop=Py_ssize_t, number=i64, topics=list,
               forgotten=list, partitions=list)
cdef _fetched_topics(frame, const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end, int version, i64 left)

cdef Py_ssize_t _fetched_partitions(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end, int version,
                                    i64 number, list into) except -2

cdef Py_ssize_t _indexes(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end, i64 number,
                         list into) except -2

@cython.locals(count=cython.int, previous=cython.int, tag=cython.int, size=cython.int)
cdef Py_ssize_t _after_tags(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end, int version) noexcept

@cython.locals(data="const unsigned char[::1]", end=Py_ssize_t, position=Py_ssize_t, version=cython.int,
               group=Py_ssize_t, group_stop=Py_ssize_t, generation=i64, member=Py_ssize_t, member_stop=Py_ssize_t,
               instance=Py_ssize_t, instance_stop=Py_ssize_t, text=bytes)
cpdef read_flat_offset_commit(frame, i64 elements_max)

@cython.locals(count=i64, start=Py_ssize_t, stop=Py_ssize_t, number=i64, topics=list, partitions=list)
cdef _committed_topics(bytes text, const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end, bint by_id, i64 left)

@cython.locals(index=i64, offset=i64, leader_epoch=i64, start=Py_ssize_t, stop=Py_ssize_t, metadata=bytes)
cdef Py_ssize_t _committed_partitions(bytes text, const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end,
                                      i64 number, list into) except -2
