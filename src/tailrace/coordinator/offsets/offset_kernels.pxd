# C types for offset_kernels.py: Cython reads them when it compiles that file; plain Python never sees them.

cimport cython

ctypedef long long i64

@cython.locals(value=cython.int)
cdef int _int16(const unsigned char[::1] data, Py_ssize_t position) noexcept

@cython.locals(high=i64)
cdef i64 _int32(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef i64 _int64(const unsigned char[::1] data, Py_ssize_t position) noexcept

@cython.locals(value=i64, shift=cython.int, byte=i64)
cdef (i64, Py_ssize_t) _length(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(low32=i64, raw=i64, shift=cython.int, byte=i64, value=i64)
cdef (i64, Py_ssize_t) _varint(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(size=cython.int)
cdef int _length_size(i64 value) noexcept

cdef Py_ssize_t _put_length(unsigned char[::1] out, Py_ssize_t at, i64 value) noexcept

cdef Py_ssize_t _put_int16(unsigned char[::1] out, Py_ssize_t at, int value) noexcept

cdef int _put_int32(unsigned char[::1] data, Py_ssize_t position, i64 value) noexcept

cdef Py_ssize_t _put_int64(unsigned char[::1] out, Py_ssize_t at, i64 value) noexcept

cdef Py_ssize_t _copy(bytes data, Py_ssize_t start, Py_ssize_t stop, unsigned char[::1] out, Py_ssize_t at) noexcept

@cython.locals(size=cython.int)
cdef int _zigzag_size(i64 value) noexcept

cdef Py_ssize_t _put_zigzag(unsigned char[::1] out, Py_ssize_t at, i64 value) noexcept

cdef i64 _value_size(i64 metadata_size, i64 tags_size, bint expires) noexcept

cdef i64 _body_size(i64 delta, i64 key_size, i64 value_size) noexcept

@cython.locals(total=i64, key_size=i64, tags_size=i64, metadata=bytes, size=i64)
cpdef Py_ssize_t offsets_size(list partitions, i64 delta, bytes names, bytes tags, bint expires) except -1

@cython.locals(key_size=i64, tags_size=i64, index=i64, offset=i64, leader_epoch=i64, metadata=bytes, timestamp_ms=i64,
               length=i64, value_size=i64)
cpdef Py_ssize_t encode_offsets(list partitions, i64 delta, bytes names, bytes tags, bint expires, i64 expire_ms,
                                i64 now_ms, unsigned char[::1] out, Py_ssize_t at) except -1

cdef _text(bytes chunk)

@cython.final
cdef class OffsetReplay:
    cdef object _make, _known_of, _remove, _group, _topic
    cdef bytes _names
    cdef dict _known

    @cython.locals(data="const unsigned char[::1]", end=Py_ssize_t, position=Py_ssize_t, taken=i64, size=i64, stop=Py_ssize_t, delta=i64,
                   key=Py_ssize_t, key_stop=Py_ssize_t, value=Py_ssize_t, value_stop=Py_ssize_t)
    cpdef Py_ssize_t take_payload(self, bytes payload, i64 count, i64 base_offset) except -1

    @cython.locals(size=Py_ssize_t, record=bytes)
    cpdef bint take(self, bytes key, bytes value, i64 record_offset) except -1

    @cython.locals(names_stop=Py_ssize_t, partition=i64)
    cdef bint _take(self, bytes record, const unsigned char[::1] data, Py_ssize_t key, Py_ssize_t key_stop, Py_ssize_t value, Py_ssize_t value_stop,
                    i64 record_offset) except -1

    @cython.locals(names=bytes, size=Py_ssize_t, index=Py_ssize_t)
    cdef bint _is_named(self, const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t stop) noexcept

    @cython.locals(group_stop=Py_ssize_t, names_stop=Py_ssize_t)
    cdef bint _read_names(self, bytes record, const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t stop) except -1

    @cython.locals(version=cython.int, offset=i64, leader_epoch=i64, expire_ms=i64, after=Py_ssize_t, size=i64)
    cdef _read_value(self, bytes record, const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t stop, bint is_legacy, i64 record_offset)
