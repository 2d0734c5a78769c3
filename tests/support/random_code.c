#include "tests/support/random_code.h"

#include <stddef.h>
#include <string.h>

enum { RAX, RCX, RDX, REGISTERS, R8 = 8, RDI = 7 };
enum { STEPS = 6, BRANCHES = 3, WIDE = 0x48 };

unsigned random_any(struct random_writer *to, unsigned count)
{
    to->seed ^= to->seed << 13;
    to->seed ^= to->seed >> 7;
    to->seed ^= to->seed << 17;
    return (unsigned)(to->seed >> 11) % count;
}

void random_put(struct random_writer *to, size_t count, const unsigned char *bytes)
{
    memcpy(to->at, bytes, count);
    to->at += count;
}

void random_put_number(struct random_writer *to, int32_t number)
{
    memcpy(to->at, &number, sizeof number);
    to->at += sizeof number;
}

// Borders, signs, masks, and numbers of counters.
static int32_t any_number(struct random_writer *to)
{
    static const int32_t numbers[] = {0,    1,    2,     3,         7,  8,  63, 64,  100,   255,      256,
                                      1000, 4095, 65535, INT32_MAX, -1, -2, -8, -64, -1000, INT32_MIN};
    unsigned which = random_any(to, sizeof numbers / sizeof numbers[0] + 8);
    return which < sizeof numbers / sizeof numbers[0] ? numbers[which] : (int32_t)random_any(to, 2000) - 500;
}

static bool wide(struct random_writer *to)
{
    bool is = random_any(to, 2) != 0;
    if (is) {
        PUT(to, WIDE);
    }
    return is;
}

static unsigned char pair(unsigned mode, unsigned reg, unsigned rm)
{
    return (unsigned char)(mode << 6 | reg << 3 | rm);
}

static void arithmetic(struct random_writer *to)
{
    static const unsigned char kinds[] = {0, 1, 2, 3, 4, 5, 6, 7}; // add or adc sbb and sub xor cmp
    unsigned kind = kinds[random_any(to, sizeof kinds)], reg = random_any(to, REGISTERS);
    (void)wide(to);
    if (random_any(to, 3) == 0) {
        PUT(to, (unsigned char)(kind * 8 + 1), pair(3, random_any(to, REGISTERS), reg));
    } else {
        PUT(to, 0x81, pair(3, kind, reg));
        random_put_number(to, any_number(to));
    }
}

static void shift(struct random_writer *to)
{
    static const unsigned char kinds[] = {4, 5, 7}; // shl shr sar
    unsigned kind = kinds[random_any(to, sizeof kinds)];
    (void)wide(to);
    PUT(to, 0xc1, pair(3, kind, random_any(to, REGISTERS)), (unsigned char)random_any(to, 34));
}

static void multiply(struct random_writer *to)
{
    (void)wide(to);
    PUT(to, 0x69, pair(3, random_any(to, REGISTERS), random_any(to, REGISTERS)));
    random_put_number(to, any_number(to));
}

static void one_operand(struct random_writer *to)
{
    unsigned reg = random_any(to, REGISTERS), kind = random_any(to, 4);
    (void)wide(to);
    PUT(to, (unsigned char)(kind < 2 ? 0xf7 : 0xff), pair(3, kind < 2 ? 2 + kind : kind - 2, reg)); // not neg inc dec
}

static void address(struct random_writer *to)
{
    PUT(to, WIDE, 0x8d, pair(1, random_any(to, REGISTERS), 4),
        pair(random_any(to, 4), random_any(to, REGISTERS), random_any(to, REGISTERS)),
        (unsigned char)random_any(to, 128));
}

static void move(struct random_writer *to)
{
    static const unsigned char extending[] = {0xb6, 0xb7, 0xbe, 0xbf}; // movzx movsx of 1 and 2 bytes
    unsigned kind = random_any(to, 6);
    unsigned char registers = pair(3, random_any(to, REGISTERS), random_any(to, REGISTERS));
    if (kind < 4) {
        PUT(to, 0x0f, extending[kind], registers);
    } else if (kind == 4) {
        PUT(to, WIDE, 0x63, registers); // movsxd
    } else {
        (void)wide(to);
        PUT(to, 0x89, registers);
    }
}

// Of all sizes, at any offset: parts of what was stored are read.
static void memory(struct random_writer *to)
{
    bool stores = random_any(to, 2) != 0;
    unsigned size = random_any(to, 4), reg = random_any(to, REGISTERS);
    unsigned char at = (unsigned char)(16 + random_any(to, 24));
    if (size == 1) {
        PUT(to, 0x66);
    } else if (size == 3) {
        PUT(to, WIDE);
    }
    PUT(to, (unsigned char)((stores ? 0x89 : 0x8b) - (size == 0)), pair(1, reg, RDI), at);
}

// By rcx: most divisors are none of a counter, and the quotient has room.
static void divide(struct random_writer *to)
{
    static const int32_t divisors[] = {1, 2, 3, 10, 64, 100, 129, 1000};
    bool is_signed = random_any(to, 3) == 0, is_wide;
    PUT(to, 0xb9);
    random_put_number(to, divisors[random_any(to, sizeof divisors / sizeof divisors[0])]);
    if (!is_signed) {
        PUT(to, 0x31, 0xd2); // xor edx, edx
    }
    is_wide = wide(to);
    if (is_signed) {
        PUT(to, 0x99); // cdq, cqo
    }
    if (is_signed && is_wide) {
        PUT(to, WIDE);
    }
    PUT(to, 0xf7, pair(3, is_signed ? 7 : 6, RCX));
}

// mul or imul of rax, into rdx:rax; imul of two registers; cdqe.
static void multiply_registers(struct random_writer *to)
{
    unsigned kind = random_any(to, 4);
    (void)wide(to);
    if (kind < 2) {
        PUT(to, 0xf7, pair(3, 4 + kind, random_any(to, REGISTERS)));
    } else if (kind == 2) {
        PUT(to, 0x0f, 0xaf, pair(3, random_any(to, REGISTERS), random_any(to, REGISTERS)));
    } else {
        PUT(to, 0x98);
    }
}

static void bits(struct random_writer *to)
{
    unsigned kind = random_any(to, 4), first = random_any(to, REGISTERS), second = random_any(to, REGISTERS);
    unsigned char which = (unsigned char)random_any(to, 64);
    if (kind == 3 && which % 2 != 0) {
        PUT(to, 0xf3); // tzcnt
    }
    (void)wide(to);
    if (kind == 0) {
        PUT(to, 0x0f, 0xba, pair(3, 4 + which % 4, first), which); // bt bts btr btc
    } else if (kind == 1) {
        PUT(to, 0x0f, (unsigned char)(0xc8 + first)); // bswap
    } else if (kind == 2) {
        PUT(to, 0xc1, pair(3, which % 2, first), which); // rol ror
    } else {
        PUT(to, 0x0f, 0xbc, pair(3, first, second));
    }
}

static void exchange(struct random_writer *to)
{
    unsigned kind = random_any(to, 4), first = random_any(to, REGISTERS), second = random_any(to, REGISTERS);
    unsigned char at = (unsigned char)(16 + random_any(to, 24));
    if (kind == 0) {
        PUT(to, (unsigned char)(0x50 + first), (unsigned char)(0x58 + second)); // push, pop
        return;
    }
    (void)wide(to);
    if (kind == 1) {
        PUT(to, 0x87, pair(3, first, second));
    } else if (kind == 2) {
        PUT(to, 0x0f, 0xc1, pair(1, first, RDI), at); // xadd
    } else {
        PUT(to, 0x0f, 0xb1, pair(1, first, RDI), at); // cmpxchg
    }
}

// An operand in memory, of a single byte or of 4 and 8.
static void memory_operand(struct random_writer *to)
{
    unsigned kind = random_any(to, 8), reg = random_any(to, REGISTERS);
    unsigned char at = (unsigned char)(16 + random_any(to, 24));
    (void)wide(to);
    if (random_any(to, 2) != 0) {
        PUT(to, (unsigned char)(kind * 8 + (random_any(to, 2) != 0 ? 1 : 3)), pair(1, reg, RDI), at);
    } else {
        PUT(to, 0x0f, kind % 2 != 0 ? 0xb6 : 0xbe, pair(1, reg, RDI), at);
    }
}

// Copies 8 or 16 bytes through a vector.
static void vector_copy(struct random_writer *to)
{
    unsigned char from = (unsigned char)(16 + random_any(to, 24)), at = (unsigned char)(16 + random_any(to, 24));
    switch (random_any(to, 3)) {
    case 0:
        PUT(to, 0xf3, 0x0f, 0x6f, pair(1, 0, RDI), from); // movdqu
        break;
    case 1:
        PUT(to, 0x0f, 0x10, pair(1, 0, RDI), from); // movups
        break;
    default:
        PUT(to, 0xf3, 0x0f, 0x7e, pair(1, 0, RDI), from); // movq
    }
    if (random_any(to, 2) != 0) {
        PUT(to, 0xf3, 0x0f, 0x7f, pair(1, 0, RDI), at); // movdqu
    } else {
        PUT(to, 0x66, 0x0f, 0xd6, pair(1, 0, RDI), at); // movq
    }
}

enum { VECTORS = 3 };

static void real_number(struct random_writer *to)
{
    static const double numbers[] = {1e-9, 0.25, 3, 1e6, -1.5, 1e15};
    const double *number = &numbers[random_any(to, sizeof numbers / sizeof numbers[0])];
    PUT(to, WIDE, 0xb8); // mov ..., rax
    random_put(to, sizeof *number, (const unsigned char *)number);
    PUT(to, 0x66, WIDE, 0x0f, 0x6e, pair(3, random_any(to, VECTORS), RAX)); // movq
}

// From a register or a counter.
static void real_convert(struct random_writer *to)
{
    unsigned vector = random_any(to, VECTORS), kind = random_any(to, 4);
    PUT(to, 0xf2);
    (void)(kind != 3 && wide(to)); // of the second counter 4 bytes are read
    PUT(to, 0x0f, 0x2a);
    if (kind < 2) {
        PUT(to, pair(3, vector, random_any(to, REGISTERS)));
    } else {
        PUT(to, pair(1, vector, RDI), kind == 2 ? 0 : 8);
    }
}

static void real_compute(struct random_writer *to)
{
    static const unsigned char kinds[] = {0x58, 0x58, 0x5c, 0x5c, 0x59, 0x5e}; // addsd subsd mulsd divsd
    unsigned char kind = kinds[random_any(to, sizeof kinds)];
    PUT(to, 0xf2, 0x0f, kind, pair(3, random_any(to, VECTORS), random_any(to, VECTORS)));
}

static void real_move(struct random_writer *to)
{
    unsigned vector = random_any(to, VECTORS);
    unsigned char at = (unsigned char)(16 + 8 * random_any(to, 4));
    switch (random_any(to, 4)) {
    case 0:
        PUT(to, 0x66, 0x0f, 0x28, pair(3, vector, random_any(to, VECTORS))); // movapd
        break;
    case 1:
        PUT(to, 0xf2, 0x0f, 0x11, pair(1, vector, RDI), at); // movsd
        break;
    case 2:
        PUT(to, 0xf2, 0x0f, 0x10, pair(1, vector, RDI), at);
        break;
    default:
        PUT(to, 0xf2);
        (void)wide(to);
        PUT(to, 0x0f, 0x2c, pair(3, random_any(to, REGISTERS), vector)); // cvttsd2si
    }
}

// Its result is in the flags.
static void real_compare(struct random_writer *to)
{
    PUT(to, 0x66, 0x0f, (unsigned char)(0x2e + random_any(to, 2)),
        pair(3, random_any(to, VECTORS), random_any(to, VECTORS))); // ucomisd comisd
}

static void choose(struct random_writer *to)
{
    unsigned char condition = (unsigned char)random_any(to, 16);
    if (random_any(to, 2) != 0) {
        PUT(to, 0x0f, (unsigned char)(0x90 + condition), pair(3, 0, random_any(to, REGISTERS)));
    } else {
        (void)wide(to);
        PUT(to, 0x0f, (unsigned char)(0x40 + condition), pair(3, random_any(to, REGISTERS), random_any(to, REGISTERS)));
    }
}

static void branch(struct random_writer *to, unsigned number)
{
    unsigned reg = random_any(to, REGISTERS), kind = random_any(to, 3);
    if (kind == 0) {
        (void)wide(to);
        PUT(to, 0x85, pair(3, reg, reg)); // test
    } else if (kind == 1) {
        (void)wide(to);
        PUT(to, 0x81, pair(3, 7, reg)); // cmp
        random_put_number(to, any_number(to));
    } // else by the flags as they are
    PUT(to, (unsigned char)(0x70 + random_any(to, 16)), 4, 0x49, 0x83, pair(3, 1, R8 - 8),
        (unsigned char)(1u << number));
}

void random_vectors_clear(struct random_writer *to)
{
    PUT(to, 0x0f, 0x57, 0xc0, 0x0f, 0x57, 0xc9, 0x0f, 0x57, 0xd2); // xorps
}

void random_step(struct random_writer *to)
{
    static void (*const steps[])(struct random_writer *) = {arithmetic,
                                                            arithmetic,
                                                            shift,
                                                            multiply,
                                                            one_operand,
                                                            address,
                                                            move,
                                                            memory,
                                                            memory,
                                                            memory,
                                                            divide,
                                                            choose,
                                                            multiply_registers,
                                                            bits,
                                                            exchange,
                                                            memory_operand,
                                                            vector_copy,
                                                            real_number,
                                                            real_convert,
                                                            real_convert,
                                                            real_compute,
                                                            real_compute,
                                                            real_move,
                                                            real_compare};
    steps[random_any(to, sizeof steps / sizeof steps[0])](to);
}

random_function_t random_code(unsigned char code[RANDOM_CODE_BYTES], uint64_t seed, unsigned counter_bytes, bool values)
{
    struct random_writer to = {code, seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    PUT(&to, 0x45, 0x31, 0xc0); // xor r8, r8
    random_vectors_clear(&to);
    if (counter_bytes == 8) {
        PUT(&to, WIDE);
    }
    PUT(&to, 0x8b, pair(0, RAX, RDI), 0xb9);
    random_put_number(&to, any_number(&to));
    PUT(&to, 0x8b, pair(1, RDX, RDI), 8, 0x39, pair(3, RCX, RAX));
    for (unsigned i = 0; i < BRANCHES; i++) {
        for (unsigned left = random_any(&to, STEPS); left > 0; left--) {
            random_step(&to);
        }
        branch(&to, i);
    }
    for (unsigned reg = 0; reg < REGISTERS && values; reg++) {
        PUT(&to, 0x4d, 0x69, pair(3, R8 - 8, R8 - 8), 0x35, 0, 0, 0, 0x49, 0x01, pair(3, reg, R8 - 8)); // imul, add
    }
    PUT(&to, 0x4c, 0x89, 0xc0, 0xc3); // mov r8, rax; ret
    return (random_function_t)(uintptr_t)code;
}
