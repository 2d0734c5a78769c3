// Functions that are carried out by the processor and by the interpreter. Compiled twice, with and without optimisation:
// compilers then choose other instructions.
#include "interpret_subjects.h"

#include <string.h>

#define FUNCTION(name) static uint64_t name(uint64_t a, uint64_t b)

static struct pair {
    uint64_t first, second;
    uint32_t counts[6];
    char text[24];
} pairs[4];

typedef uint32_t words4 __attribute__((vector_size(16)));
typedef uint16_t words8 __attribute__((vector_size(16)));

FUNCTION(shuffles)
{
    words4 four = {(uint32_t)a, (uint32_t)b, (uint32_t)(a >> 32), (uint32_t)(b >> 32)};
    words8 eight = (words8)four;
    four += __builtin_shuffle(four, (words4){2, 0, 3, 1});
    eight = __builtin_shuffle(eight, (words8){3, 1, 0, 2, 4, 5, 6, 7});
    four += (words4)__builtin_shuffle(eight, (words8){0, 1, 2, 3, 7, 4, 4, 5});
    return ((uint64_t)four[0] << 32 | four[1]) ^ ((uint64_t)four[2] << 32 | four[3]);
}
FUNCTION(sums)
{
    return a + 3 * b - (a << 7) + (b >> 9) - (uint64_t)((int64_t)a >> 5);
}
FUNCTION(narrow)
{
    int8_t c = (int8_t)a;
    int16_t s = (int16_t)b;
    uint8_t u = (uint8_t)(a >> 8);
    int32_t i = (int32_t)(a ^ b);
    return (uint64_t)(int64_t)(c * s) + (uint64_t)(u + (uint8_t)c) + (uint64_t)(int64_t)(i / 7) + (uint32_t)i % 11;
}
FUNCTION(products)
{
    unsigned __int128 wide = (unsigned __int128)a * b;
    __int128 low = (__int128)(int64_t)a * (int32_t)b;
    return (uint64_t)(wide >> 64) ^ (uint64_t)wide ^ (uint64_t)(low >> 64);
}
FUNCTION(quotients)
{
    int64_t by = (int64_t)(b | 1);
    return a / (b | 1) + a % (b | 1) + (uint64_t)((int64_t)a / 1000) + (uint64_t)((int64_t)(a >> 1) % by) +
           a / 1000000000u;
}
FUNCTION(comparisons)
{
    uint64_t bits = 0;
    bits |= (a < b) | (a <= b) << 1 | ((int64_t)a < (int64_t)b) << 2 | ((int64_t)a <= (int64_t)b) << 3;
    bits |=
        (uint64_t)(a == b) << 4 | (uint64_t)((int32_t)a > (int32_t)b) << 5 | (uint64_t)((int8_t)a >= (int8_t)b) << 6;
    bits |= (uint64_t)((uint16_t)a > (uint16_t)b) << 7 | (uint64_t)(((a & b) & 0x8000) != 0) << 8;
    return (int64_t)(a - b) < 0 ? bits : bits + ((int64_t)a < 0 ? a : b);
}
FUNCTION(loops)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < (a & 31); i++) {
        sum = i % 3 == 0 ? sum + b : sum ^ (b >> i);
        if ((sum & 7) == 5) {
            sum--;
        }
    }
    return sum;
}
FUNCTION(rotations)
{
    unsigned n = (unsigned)b & 63;
    uint64_t r = n == 0 ? a : (a << n | a >> (64 - n));
    uint32_t half = (uint32_t)a, m = (uint32_t)b & 31;
    return r + (m == 0 ? half : (half >> m | half << (32 - m))) + __builtin_bswap64(b) + __builtin_bswap32((uint32_t)a);
}
FUNCTION(bits)
{
    uint64_t c = a | 1;
    return (unsigned)__builtin_ctzll(c << 3) + (unsigned)__builtin_clzll(c) + ((a >> (b & 63)) & 1) +
           (a | UINT64_C(1) << (b & 63)) - (a & ~(UINT64_C(1) << (b & 31)));
}
FUNCTION(structures)
{
    struct pair *p = &pairs[a & 3], copy = {0};
    p->first = a;
    p->second += b;
    p->counts[b % 6]++;
    copy = *p;
    pairs[(a + 1) & 3] = copy;
    struct pair zero = {.second = copy.second};
    zero.counts[3] = copy.counts[b % 6];
    return copy.first + zero.second + zero.counts[3] + zero.counts[1];
}
FUNCTION(words)
{
    unsigned char bytes[16];
    for (unsigned i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)((i < 8 ? a : b) >> 8 * (i % 8));
    }
    uint64_t odd;
    uint16_t two;
    memcpy(&odd, bytes + 3, sizeof odd);
    memcpy(&two, bytes + 7, sizeof two);
    return odd + two;
}
FUNCTION(atomics)
{
    static uint64_t word;
    static uint32_t flag;
    uint64_t before = __atomic_fetch_add(&word, a, __ATOMIC_SEQ_CST), wanted = before + a;
    uint32_t had = __atomic_exchange_n(&flag, (uint32_t)b, __ATOMIC_SEQ_CST);
    int done = __atomic_compare_exchange_n(&word, &wanted, b, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    int not_done = __atomic_compare_exchange_n(&word, &wanted, a, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    __atomic_or_fetch(&flag, 1, __ATOMIC_SEQ_CST);
    return before + had + (unsigned)done * 2 + (unsigned)not_done + wanted + flag;
}

static __attribute__((noinline)) uint64_t deep(uint64_t n, uint64_t b)
{
    return n == 0 ? b : deep(n - 1, b * 3) + n;
}
static uint64_t (*volatile through)(uint64_t n, uint64_t b) = deep;
FUNCTION(calls)
{
    return through(a & 15, b) + deep(b & 7, a);
}

FUNCTION(choices)
{
    switch (a & 15) {
    case 0:
        return b + 1;
    case 1:
        return b * 5;
    case 2:
        return b ^ 77;
    case 3:
        return b >> 3;
    case 5:
        return b - a;
    case 7:
        return ~b;
    case 8:
        return -b;
    case 11:
        return a;
    default:
        return 9;
    }
}
FUNCTION(carries)
{
    unsigned __int128 wide = (unsigned __int128)a << 64 | b, other = (unsigned __int128)b << 64 | a;
    wide += other;
    wide -= a;
    return (uint64_t)(wide >> 64) + (uint64_t)wide + (wide > other);
}
FUNCTION(reals)
{
    double x = (double)(int64_t)(a >> 12), y = (double)(int32_t)b, z = x * 1e-9 + y / 3 - 0.25;
    return (uint64_t)(int64_t)z + (uint64_t)(z < x) * 2 + (uint64_t)(y >= z) * 4 + (uint64_t)(int32_t)(y / 2);
}
static __thread uint64_t of_thread;
FUNCTION(threads)
{
    return of_thread = of_thread * 3 + a + b;
}

// Both words at once, as lists of free elements do it; equal or not.
FUNCTION(double_words)
{
    static _Alignas(16) uint64_t list[2];
    uint64_t low = list[0] + (a & 1), high = list[1] + (a >> 1 & 1);
    uint8_t equal;
    __asm__ volatile("cmpxchg16b %1\n\tsete %0"
                     : "=q"(equal), "+m"(list), "+a"(low), "+d"(high)
                     : "b"(a), "c"(b)
                     : "cc", "memory");
    return low * 3 + high * 5 + equal + list[0] * 7 + list[1] * 11;
}
// The result is the carry's, whatever the register has.
FUNCTION(borrowed)
{
    uint64_t mask;
    __asm__("cmp %2, %1\n\tsbb %0, %0" : "=r"(mask) : "r"(a), "r"(b) : "cc");
    return mask;
}

const struct interpret_subject TABLE[] = {
    {"sums", sums},           {"shuffles", shuffles},         {"narrow", narrow},     {"products", products},
    {"quotients", quotients}, {"comparisons", comparisons},   {"loops", loops},       {"rotations", rotations},
    {"bits", bits},           {"structures", structures},     {"words", words},       {"atomics", atomics},
    {"calls", calls},         {"choices", choices},           {"carries", carries},   {"reals", reals},
    {"threads", threads},     {"double_words", double_words}, {"borrowed", borrowed}, {NULL, NULL}};
