#include "vary_subjects.h"

#include <stddef.h>

static volatile uint32_t hundred = 100;
static volatile uint8_t table[4096];

#define SUBJECT(name, type, ...)                                                                                       \
    static uint64_t name(const void *at)                                                                               \
    {                                                                                                                  \
        type c = *(const volatile type *)at;                                                                           \
        __VA_ARGS__                                                                                                    \
    }

SUBJECT(below, uint32_t, return c < 1000 ? 1 : 2;)
SUBJECT(at_most, uint32_t, return c <= 1000 ? 1 : 2;)
SUBJECT(above, uint32_t, return 1000 < c ? 1 : 2;)
SUBJECT(equal, uint32_t, return c == 1000 ? 1 : 2;)
SUBJECT(zero, uint32_t, return c == 0 ? 1 : 2;)
SUBJECT(signed_below, int32_t, return c < 500 ? 1 : 2;)
SUBJECT(below_negative, int32_t, return c < -5 ? 1 : 2;)
SUBJECT(rounded, uint32_t, return (c & -64) == 128 ? 1 : 2;)
SUBJECT(mirrored, int32_t, return c * -3 < -1500 ? 1 : 2;)
SUBJECT(less_one, uint32_t, return c - 1 != 0 ? 1 : 2;)
SUBJECT(negative, int32_t, return c < 0 ? 1 : 2;)
SUBJECT(plus, uint32_t, return c + 7 < 1000 ? 1 : 2;)
SUBJECT(difference, uint32_t, return c - 5 < 990 ? 1 : 2;)
SUBJECT(scaled, uint32_t, return c * 8 < 4000 ? 1 : 2;)
SUBJECT(shifted, uint32_t, return c >> 6 == 3 ? 1 : 2;)
SUBJECT(every_eighth, uint32_t, return (c & 7) == 0 ? 1 : 2;)
SUBJECT(every_third, uint32_t, return c % 3 == 0 ? 1 : 2;)
SUBJECT(hundredth, uint32_t, return c % hundred == 0 ? 1 : 2;)
SUBJECT(after_one, uint32_t, return (c + 1) % hundred == 0 ? 1 : 2;)
SUBJECT(before_twenty, uint32_t, return (c - 20) % hundred < 82 ? 1 : 2;)
SUBJECT(before_one, uint32_t, return (c - 1) % hundred == 3 ? 1 : 2;)
static volatile uint32_t seed = 4294967290u;
SUBJECT(seeded, uint32_t, uint32_t more = seed; __asm__("add %1, %0"
                                                        : "+r"(c)
                                                        : "r"(more)
                                                        : "cc");
        return c % hundred < 95 ? 1 : 2;)
SUBJECT(signed_rest, int32_t, return (c - 20) % (int32_t)hundred == 3 ? 1 : 2;)
SUBJECT(long_rest, uint64_t, uint64_t by = hundred; return c % by == 3 ? 1 : 2;)
SUBJECT(tenth_of_hundred, uint32_t, return c / hundred == 5 ? 1 : 2;)
SUBJECT(sixty_fourths, uint64_t, uint64_t d = c >> 6; __asm__("" : "+r"(d)); return d < 100 ? 1 : 2;)
SUBJECT(between, uint32_t, return c > 99 && c < 900 ? 1 : 2;)
SUBJECT(long_below, uint64_t, return c < UINT64_C(1000000000000000500) ? 1 : 2;)
SUBJECT(long_since, uint64_t, return c - 5 > UINT64_C(1000) ? 1 : 2;)
SUBJECT(widened, int32_t, return (int64_t)c * 3 < 2000 ? 1 : 2;)
SUBJECT(small, uint32_t, return (uint8_t)c < 100 ? 1 : 2;)
SUBJECT(chosen, uint32_t, uint64_t d = c < 600 ? 3 : 4; return d * 2;)
static volatile double scale = 1e-3, begin = 0.1;
SUBJECT(real_below, int32_t, return (double)c * 1e-3 < 1 ? 1 : 2;)
SUBJECT(real_since, int32_t, return c * scale - begin >= 0.5 ? 1 : 2;)
SUBJECT(real_mirrored, int32_t, return 1.0 - c * scale > 0 ? 1 : 2;)
SUBJECT(real_negative, int32_t, return c * -scale / 4 > -0.2 ? 1 : 2;)
SUBJECT(real_whole, int32_t, return (int64_t)(c * scale * 10) > 7 ? 1 : 2;)
SUBJECT(real_sum, int32_t, return c * scale + c / 2.0 <= 600 ? 1 : 2;)
SUBJECT(real_square, int32_t, double d = c * scale; return d * d < 2 ? 1 : 2;)
static volatile double epoch = 1.39e9; // seconds; the next number is 238 ns away
SUBJECT(real_epoch, int32_t, return c * 1e-9 + epoch - epoch < 2e-6 ? 1 : 2;)
SUBJECT(long_tenth, uint64_t, return c / 10 == 50 ? 1 : 2;)
SUBJECT(long_hundredth, uint64_t, return c / 129 == 3 ? 1 : 2;)
SUBJECT(long_part, uint64_t, return c / 257 == 1 ? 1 : 2;)
SUBJECT(carried, uint32_t, uint64_t way; __asm__("cmp $100, %1; inc %1; sbb %0, %0; neg %0"
                                                 : "=&r"(way), "+r"(c)::"cc");
        return way;)
SUBJECT(copied, uint32_t, uint32_t from[4] = {0}, to[4]; from[3] = c; const void *source = from; void *target = to;
        uint64_t count = 4; __asm__ volatile("rep movsl"
                                             : "+S"(source), "+D"(target), "+c"(count)
                                             :
                                             : "memory");
        return to[3] < 100 ? 1 : 2;)
static uint32_t second(const void *at)
{
    return ((const volatile uint32_t *)at)[2];
}
SUBJECT(each, uint32_t, return c < 100 && second(at) < 200 ? 1 : 2;)
SUBJECT(crossed, uint32_t, return c < second(at) ? 1 : 2;)
SUBJECT(distance, uint32_t, return c - second(at) < 20 ? 1 : 2;)
SUBJECT(both_bits, uint32_t, return (c | second(at)) != 0 ? 1 : 2;)
SUBJECT(indexed, uint32_t, return table[c % sizeof table] + 1;)

const struct vary_subject vary_subjects[] = {
    {"below", below, 4, true},
    {"at_most", at_most, 4, true},
    {"above", above, 4, true},
    {"equal", equal, 4, false},
    {"zero", zero, 4, false},
    {"signed_below", signed_below, 4, true},
    {"negative", negative, 4, true},
    {"below_negative", below_negative, 4, false},
    {"rounded", rounded, 4, false},
    {"mirrored", mirrored, 4, false},
    {"less_one", less_one, 4, false},
    {"plus", plus, 4, false},
    {"difference", difference, 4, false},
    {"scaled", scaled, 4, false},
    {"shifted", shifted, 4, false},
    {"real_below", real_below, 4, true},
    {"real_since", real_since, 4, true},
    {"real_mirrored", real_mirrored, 4, true},
    {"real_negative", real_negative, 4, true},
    {"real_whole", real_whole, 4, false},
    {"real_sum", real_sum, 4, false},
    {"real_square", real_square, 4, false},
    {"every_eighth", every_eighth, 4, false},
    {"every_third", every_third, 4, false},
    {"hundredth", hundredth, 4, false},
    {"after_one", after_one, 4, false},
    {"before_twenty", before_twenty, 4, false},
    {"before_one", before_one, 4, false},
    {"seeded", seeded, 4, false},
    {"signed_rest", signed_rest, 4, false},
    {"long_rest", long_rest, 8, false},
    {"tenth_of_hundred", tenth_of_hundred, 4, false},
    {"between", between, 4, true},
    {"long_below", long_below, 8, true},
    {"long_since", long_since, 8, true},
    {"widened", widened, 4, false},
    {"small", small, 4, false},
    {"chosen", chosen, 4, true},
    {"real_epoch", real_epoch, 4, false},
    {"long_tenth", long_tenth, 8, false},
    {"long_hundredth", long_hundredth, 8, false},
    {"long_part", long_part, 8, false},
    {"sixty_fourths", sixty_fourths, 8, false},
    {"carried", carried, 4, false},
    {"copied", copied, 4, false},
    {"indexed", indexed, 4, false},
    {NULL, NULL, 0, false},
};

const struct vary_subject vary_subjects_of_two[] = {
    {"each", each, 4, false},           {"crossed", crossed, 4, false}, {"distance", distance, 4, false},
    {"both_bits", both_bits, 4, false}, {NULL, NULL, 0, false},
};
