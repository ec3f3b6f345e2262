# C types for kernels.py: Cython reads them when it compiles that file; plain Python never sees them.
#
# `view` types are const unsigned char[::1]: any contiguous buffer, read-only or not. What reads a varint hands back a
# C pair and reports a broken one by the position -1, so that no exception has to be looked for after every byte.
# Unsigned 64-bit locals hold what is masked; everything else is signed and cannot overflow.

cimport cython

ctypedef long long i64
ctypedef unsigned long long u64

@cython.locals(low32=u64, raw=u64, byte=u64, shift=cython.int, value=i64)
cdef (i64, Py_ssize_t) _varint(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(raw=u64, byte=u64, shift=cython.int, value=i64)
cdef (i64, Py_ssize_t) _varlong(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(negative=bint, folded=u64, size=Py_ssize_t)
cdef Py_ssize_t _varint_size(i64 value) noexcept

@cython.locals(negative=bint, folded=u64)
cdef int _append_varint(bytearray out, i64 value) except -1

@cython.locals(last=i64)
cdef i64 _add(i64 a, i64 b) noexcept

@cython.locals(last=i64)
cdef i64 _subtract(i64 a, i64 b) noexcept

cdef int _check_count(i64 count) except -1

@cython.locals(data="const unsigned char[::1]", end=Py_ssize_t, position=Py_ssize_t, start=Py_ssize_t,
               stop=Py_ssize_t, index=i64, size=i64, length=i64, timestamp_delta=i64, offset_delta=i64,
               header_count=i64, attributes=cython.int, records=list, found=list)
cpdef list decode_records(bytes payload, i64 count)

@cython.locals(end=Py_ssize_t, position=Py_ssize_t, start=Py_ssize_t, size=i64, found=i64)
cpdef tuple whole_records(const unsigned char[::1] data, i64 count, i64 index, i64 passed)

@cython.locals(key_size=Py_ssize_t, value_size=Py_ssize_t, size=Py_ssize_t)
cpdef encode_record(bytearray out, i64 offset_delta, i64 timestamp_delta, key, value, headers)

@cython.locals(end=Py_ssize_t, position=Py_ssize_t, start=Py_ssize_t, index=i64, size=i64, timestamp_delta=i64,
               offset_delta=i64, timestamp=i64, offset=i64)
cpdef find_record(const unsigned char[::1] data, i64 count, i64 base_offset, i64 base_timestamp, i64 min_offset,
                  i64 min_timestamp)

@cython.locals(data="const unsigned char[::1]", flags="const unsigned char[::1]", end=Py_ssize_t,
               position=Py_ssize_t, start=Py_ssize_t, stop=Py_ssize_t, index=i64, size=i64, length=i64,
               timestamp_delta=i64, offset_delta=i64, timestamp=i64, header_count=i64, out=bytearray, body=bytearray,
               kept=i64, largest=i64, fixed=bint, fixed_timestamp=i64, based=bint, base=i64, name=bytes)
cpdef tuple rewrite_records(bytes payload, i64 count, keep, i64 base_timestamp, append_time, new_base_timestamp)
