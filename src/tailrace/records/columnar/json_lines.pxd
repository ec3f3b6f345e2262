# C types for json_lines.py: Cython reads them when it compiles that file; plain Python never sees them.

cimport cython

ctypedef long long i64

cdef int _MAX_DEPTH
cdef int _EMPTY
cdef int _NO_OBJECT
cdef int _UNFINISHED
cdef int _TRAILING
cdef int _CONTROL
cdef int _NOT_UTF8
cdef int _DEEP

@cython.locals(rows=i64, row=i64, used=i64, start=i64, stop=i64, size=i64)
cpdef i64 join_lines(const unsigned char[::1] data, const int[::1] ends, unsigned char[::1] out, unsigned char[::1] faults)

cdef bint _is_space(int char) noexcept nogil

@cython.locals(first=cython.int, second=cython.int, low=cython.int, high=cython.int, more=cython.int, size=cython.int)
cdef int _utf8_size(const unsigned char[::1] data, i64 position, i64 stop) noexcept nogil

@cython.locals(position=i64, begin=i64, depth=cython.int, in_string=cython.bint, char=cython.int, size=i64, more=i64)
cdef i64 _copy_value(const unsigned char[::1] data, i64 start, i64 stop, unsigned char[::1] out, i64 used) noexcept nogil
