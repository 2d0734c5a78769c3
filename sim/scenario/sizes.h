// Units of the limits in the tables of keys: bytes and picoseconds.
#pragma once

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define GIB (1ull << 30)

#define NS 1000ull
#define US (1000 * NS)
#define MS (1000 * US)
#define S  (1000 * MS)
