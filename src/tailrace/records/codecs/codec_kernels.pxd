# C types for codec_kernels.py: Cython reads them when it compiles that file; plain Python never sees them.
#
# See `records/kernels.pxd` for the rules.

cimport cython

ctypedef long long i64
ctypedef unsigned long long u64

cdef u64 _load32(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef int _snappy_literal(bytearray out, bytes block, Py_ssize_t start, Py_ssize_t stop) except -1

cdef int _snappy_copy(bytearray out, Py_ssize_t distance, Py_ssize_t size) except -1

@cython.locals(data="const unsigned char[::1]", slots="unsigned short[::1]", end=Py_ssize_t, low32=u64, out=bytearray,
               size=Py_ssize_t, mask=Py_ssize_t, emitted=Py_ssize_t, position=Py_ssize_t, candidate=Py_ssize_t,
               limit=Py_ssize_t, skip=Py_ssize_t, step=Py_ssize_t, found=bint, word=u64, slot=u64, start=Py_ssize_t,
               distance=Py_ssize_t)
cpdef bytes snappy_compress(bytes block)

@cython.locals(end=Py_ssize_t, position=Py_ssize_t, low32=u64, frame_magic=u64, magic=u64, bound=i64, size=i64,
               flags=cython.int, is_single=bint, is_last=bint, kind=cython.int)
cpdef i64 zstd_size_bound(const unsigned char[::1] view) except? -2

@cython.locals(end=Py_ssize_t, position=Py_ssize_t, low32=u64, prime1=u64, prime2=u64,
               prime3=u64, prime4=u64, prime5=u64, a=u64, b=u64, c=u64, d=u64, total=u64)
cpdef u64 xxh32(const unsigned char[::1] view) except? 1
