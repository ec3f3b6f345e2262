# C types for column_encoder.py: Cython reads them when it compiles that file; plain Python never sees them.

cimport cython
from libc.string cimport memcpy

ctypedef long long i64
ctypedef unsigned long long u64
ctypedef const unsigned char* bytes_t
ctypedef unsigned char* out_t

cdef bint _NATIVE
cdef i64 _HEADER_ROOM
cdef i64 _LENGTH_MAX
cdef i64 _MICROS
cdef i64 _OUTSIDE

cdef inline bytes_t _source_address(const unsigned char[::1] view) noexcept:
    return &view[0]

cdef inline out_t _target_address(unsigned char[::1] view) noexcept:
    return &view[0]

cdef inline void _copy_bytes(out_t target, Py_ssize_t at, bytes_t source, Py_ssize_t start, Py_ssize_t size) noexcept:
    memcpy(target + at, source + start, size)


cdef class Column:
    cdef bint _has_validity
    cdef const unsigned char[::1] validity
    cdef readonly Py_ssize_t first
    cdef readonly Py_ssize_t rows

    @cython.final
    @cython.locals(at=Py_ssize_t)
    cdef bint _is_there(self, Py_ssize_t row) noexcept


cdef class SpanColumn(Column):
    cdef const int[::1] ends
    cdef i64 size

    @cython.final
    cdef i64 _start(self, Py_ssize_t row) noexcept
    @cython.final
    @cython.locals(start=i64, end=i64)
    cdef i64 _length(self, Py_ssize_t row) noexcept


@cython.final
cdef class BytesInput(SpanColumn):
    cdef object _kept
    cdef bytes_t data


@cython.final
cdef class IntInput(Column):
    cdef int width
    cdef const int[::1] ints
    cdef const i64[::1] longs

    cdef i64 _get(self, Py_ssize_t row) noexcept


@cython.final
cdef class HeadersInput(SpanColumn):
    cdef BytesInput names
    cdef BytesInput contents


@cython.final
cdef class OpenBatch:
    cdef readonly i64 room
    cdef readonly bytearray buffer
    cdef readonly i64 size
    cdef readonly i64 count
    cdef readonly i64 base_offset
    cdef readonly i64 last_offset
    cdef readonly i64 base_timestamp
    cdef readonly i64 max_timestamp
    cdef out_t _out

    cpdef restart(self)
    cdef int _point(self) except -1
    @cython.locals(room=i64)
    cdef int _reserve(self, i64 size) except -1
    @cython.locals(negative=bint, folded=u64, at=Py_ssize_t)
    cdef void _put_varint(self, i64 value) noexcept
    @cython.locals(start=Py_ssize_t)
    cdef void _put_bytes(self, BytesInput column, Py_ssize_t row, i64 length) noexcept


@cython.locals(negative=bint, folded=u64, size=Py_ssize_t)
cdef Py_ssize_t _varint_size(i64 value) noexcept

cdef i64 _sized(i64 length) noexcept

@cython.locals(count=i64, size=i64, at=Py_ssize_t, end=Py_ssize_t, length=i64)
cdef i64 _headers_size(HeadersInput headers, Py_ssize_t row) noexcept

@cython.locals(count=i64, at=Py_ssize_t, end=Py_ssize_t)
cdef void _put_headers(OpenBatch batch, HeadersInput headers, Py_ssize_t row) noexcept

cdef u64 _byte(bytes_t data, Py_ssize_t position) noexcept

@cython.locals(low32=u64, m=u64, h=u64, k=u64, position=Py_ssize_t, tail=Py_ssize_t, left=i64)
cdef u64 _murmur2(bytes_t data, Py_ssize_t start, i64 length) noexcept

@cython.locals(low64=u64, prime=u64, h=u64, k=u64, position=Py_ssize_t, end=Py_ssize_t)
cdef u64 _digest(bytes_t data, Py_ssize_t start, i64 length, u64 seed) noexcept

@cython.locals(out="int[::1]", topic_counts="const int[::1]", topic_firsts="const int[::1]",
               topic_keyless="const int[::1]", topic=i64, known=i64, row=Py_ssize_t, count=i64, length=i64, chosen=i64)
cpdef Py_ssize_t choose_batches(targets, Py_ssize_t rows, BytesInput keys, IntInput partitions, IntInput topics, counts,
                                firsts, keyless) except -2


@cython.final
cdef class RowEncoder:
    cdef readonly i64 limit
    cdef readonly i64 rows
    cdef readonly u64 digest

    @cython.locals(low64=u64, chosen="const int[::1]", row=Py_ssize_t, number=i64, batch=OpenBatch, timestamp=i64, key_length=i64,
                   value_length=i64, delta=i64, offset=i64, place=i64, size=i64, headers_size=i64, seed=u64)
    cpdef Py_ssize_t encode_rows(self, list batches, targets, BytesInput keys, BytesInput values, HeadersInput headers,
                                 IntInput times, i64 now_ms, Py_ssize_t start, Py_ssize_t end,
                                 IntInput offsets=*) except -2
