# C types of record_walk.py, which Cython reads beside it. Every number of the walk fits 64 bits; `byte` is signed, as
# the sign of a zig-zag number is taken by negation.
cimport cython

cpdef walk(bytes data, long long count, bint keys_required)

@cython.locals(
    data_end="long long", byte="long long", size="long long", record_end="long long", offset_delta="long long", start="long long"
)
cpdef slice_records(bytes data, long long position, long long count)

@cython.locals(
    end="long long", byte="long long", size="long long", record_end="long long", delta="long long", offset_delta="long long"
)
cdef (long long, long long) _walk_records(
    bytes data, long long position, long long index, long long count, long long newest, bint keys_required, list without_key
) except *

@cython.locals(count="long long", byte="long long", size="long long")
cdef long long _walk_headers(bytes data, long long position, long long record_end, long long index) except -1

@cython.locals(value="unsigned long long", byte="unsigned long long", shift="int", end="long long")
cdef (long long, long long) _read_varint(bytes data, long long position) noexcept

@cython.locals(value="unsigned long long", byte="unsigned long long", shift="int", end="long long")
cdef (long long, long long) _read_varlong(bytes data, long long position) noexcept
