#include "random_loop.h"

#include <stddef.h>
#include <string.h>

#include "tests/support/random_code.h"

// rbx has the address of the memory, r12 to r15 and rbp are the loop's own.
enum { RAX, RCX, RDX, RBX, RBP = 5, RDI = 7 };
enum { ELEMENTS = 7, DEPTH = 2, OUTS = 64, WIDE = 0x48 };
enum { FRAME_BYTES = 40, FRAME_WORDS = 4 }; // of its own on the stack
enum { JB = 2, JE = 4, JNE = 5 };           // conditions of jumps
#define AT(member) ((int32_t)offsetof(struct loop_memory, member))

struct loop_writer {
    struct random_writer to;
    const struct loop_calls *calls;
    unsigned depth;
    int32_t first_key;
    const unsigned char *poll_helper; // a function that polls; NULL: the loop does
    unsigned char *outs[OUTS];        // where jumps to the end have their distances
    unsigned out_count;
};

// An instruction whose operand in memory has a distance of 4 bytes from rbx. opcode: without prefixes.
static void put_at(struct random_writer *to, bool wide, unsigned char opcode, unsigned reg, int32_t at)
{
    if (wide) {
        PUT(to, WIDE);
    }
    PUT(to, opcode, (unsigned char)(2 << 6 | reg << 3 | RBX));
    random_put_number(to, at);
}

static int32_t any_counter_word(struct random_writer *to)
{
    static const int32_t words[] = {AT(counters[0]), AT(counters[0]) + 4, AT(counters[0]), AT(counters[0]) + 4,
                                    AT(counters[1]), AT(scratch[0]),      AT(scratch[5])};
    return words[random_any(to, sizeof words / sizeof words[0])];
}

static int32_t small_step(struct random_writer *to)
{
    static const int32_t steps[] = {1, 1, 1, -1, 2, 3, 8, -8, 100};
    return steps[random_any(to, sizeof steps / sizeof steps[0])];
}

static int32_t limit(struct random_writer *to)
{
    static const int32_t limits[] = {0, 1, 2, 5, 8, 20, 50, 100, 333, 1000, -1, -20, 4096};
    return limits[random_any(to, sizeof limits / sizeof limits[0])];
}

static void add_number(struct random_writer *to, bool wide, int32_t at, int32_t number)
{
    put_at(to, wide, 0x81, 0, at);
    random_put_number(to, number);
}

// One of the loop's own words on the stack, as the operand of an instruction. opcode: without prefixes.
static void put_on_stack(struct random_writer *to, unsigned char opcode, unsigned reg)
{
    PUT(to, WIDE, opcode, (unsigned char)(1 << 6 | reg << 3 | 4), 0x24,
        (unsigned char)(8 * random_any(to, FRAME_WORDS)));
}

// A distance that is filled in later.
static unsigned char *jump_put(struct random_writer *to, unsigned condition)
{
    PUT(to, 0x0f, (unsigned char)(0x80 + condition));
    random_put_number(to, 0);
    return to->at - 4;
}

static void jump_to(unsigned char *distance, const unsigned char *target)
{
    int32_t bytes = (int32_t)(target - (distance + 4));
    memcpy(distance, &bytes, sizeof bytes);
}

// --- elements: each is a part of an iteration ---------------------------------------------------------------------------

static void call(struct random_writer *to, uintptr_t function)
{
    PUT(to, WIDE, 0xb8);
    random_put(to, sizeof function, (const unsigned char *)&function);
    PUT(to, 0xff, 0xd0);       // call *rax
    PUT(to, WIDE, 0x89, 0xdf); // mov rbx, rdi
}

static void spend(struct loop_writer *loop)
{
    add_number(&loop->to, true, AT(tail_ps), 100 * (int32_t)(1 + random_any(&loop->to, 30)));
}

static void poll(struct loop_writer *loop)
{
    struct random_writer *to = &loop->to;
    spend(loop);
    PUT(to, 0xbf);
    random_put_number(to, loop->first_key + (int32_t)random_any(to, 3));
    put_at(to, true, 0x8d, 6, AT(device[0]) + 8 * (int32_t)random_any(to, LOOP_DEVICE_WORDS));
    if (loop->poll_helper != NULL) {
        PUT(to, 0xe8); // call
        random_put_number(to, 0);
        jump_to(to->at - 4, loop->poll_helper);
    } else {
        call(to, random_any(to, 2) != 0 ? loop->calls->poll : loop->calls->function);
    }
    PUT(to, 0x85, 0xc0); // test eax, eax
    loop->outs[loop->out_count++] = jump_put(to, JNE);
}

// A call of the system that polls, whose result says nothing.
static void poll_call(struct loop_writer *loop)
{
    struct random_writer *to = &loop->to;
    if (loop->poll_helper != NULL) { // all polls are made at one height of the stack
        poll(loop);
        return;
    }
    PUT(to, 0xbe);
    random_put_number(to, loop->first_key + 3);
    call(to, loop->calls->poll_call);
}

static void count(struct loop_writer *loop)
{
    struct random_writer *to = &loop->to;
    int32_t step = small_step(to);
    unsigned kind = random_any(to, 8);
    if (kind == 0) {
        PUT(to, 0xf0); // lock
    }
    if (kind < 4) {
        add_number(to, random_any(to, 2) != 0, any_counter_word(to), step);
    } else if (kind == 4) {
        put_on_stack(to, 0x83, 0);
        PUT(to, (unsigned char)step);
    } else {
        // add step, r12...r15, or their lower halves
        PUT(to, kind == 7 ? 0x41 : 0x49, 0x83, (unsigned char)(0xc4 + random_any(to, 4)), (unsigned char)step);
    }
}

// --- decisions: each returns the distance of the jump that is made in one of the cases ----------------------------------

static unsigned char *jump_any(struct random_writer *to)
{
    return jump_put(to, random_any(to, 16));
}

static unsigned char *jump_if_zero_or_not(struct random_writer *to)
{
    return jump_put(to, JE + random_any(to, 2));
}

static unsigned char *by_register_mask(struct random_writer *to)
{
    PUT(to, 0x41, 0xf7, (unsigned char)(0xc4 + random_any(to, 4))); // test r12d...
    random_put_number(to, (1 << random_any(to, 6)) - 1);
    return jump_put(to, JNE);
}

static unsigned char *by_word_mask(struct random_writer *to)
{
    put_at(to, false, 0xf7, 0, any_counter_word(to));
    random_put_number(to, (1 << random_any(to, 6)) - 1);
    return jump_if_zero_or_not(to);
}

static unsigned char *by_register(struct random_writer *to)
{
    PUT(to, 0x49, 0x81, (unsigned char)(0xfc + random_any(to, 4))); // cmp r12...
    random_put_number(to, limit(to));
    return jump_any(to);
}

static unsigned char *by_word(struct random_writer *to)
{
    put_at(to, random_any(to, 2) != 0, 0x81, 7, any_counter_word(to));
    random_put_number(to, limit(to));
    return jump_any(to);
}

static unsigned char *by_stack(struct random_writer *to)
{
    put_on_stack(to, 0x81, 7);
    random_put_number(to, limit(to));
    return jump_any(to);
}

static unsigned char *by_device(struct random_writer *to)
{
    put_at(to, random_any(to, 2) != 0, 0x83, 7, AT(device[0]) + 8 * (int32_t)random_any(to, LOOP_DEVICE_WORDS));
    PUT(to, 0);
    return jump_if_zero_or_not(to);
}

// A counter modulo a number.
static unsigned char *by_remainder(struct random_writer *to)
{
    static const int32_t divisors[] = {2, 3, 7, 10, 64, 100};
    bool is_wide = random_any(to, 2) != 0;
    put_at(to, is_wide, 0x8b, RAX, any_counter_word(to));
    PUT(to, 0x31, 0xd2, 0xb9); // xor edx, edx; mov ..., ecx
    random_put_number(to, divisors[random_any(to, sizeof divisors / sizeof divisors[0])]);
    if (is_wide) {
        PUT(to, WIDE);
    }
    PUT(to, 0xf7, 0xf1, 0x85, 0xd2); // div ecx; test edx, edx
    return jump_if_zero_or_not(to);
}

// Four words in turn, by a counter in rax.
static void turn_take(struct random_writer *to)
{
    put_at(to, false, 0x8b, RAX, any_counter_word(to));
    PUT(to, 0x83, 0xe0, LOOP_DEVICE_WORDS - 1); // and eax
}

static unsigned char *by_device_in_turn(struct random_writer *to)
{
    turn_take(to);
    PUT(to, 0x83, 2 << 6 | 7 << 3 | 4, 3 << 6 | RAX << 3 | RBX); // cmp 0, device(rbx, rax, 8)
    random_put_number(to, AT(device[0]));
    PUT(to, 0);
    return jump_if_zero_or_not(to);
}

static unsigned char *by_time(struct random_writer *to)
{
    put_at(to, true, 0x81, 7, AT(clock[1]));
    random_put_number(to, (int32_t)random_any(to, 2000));
    return jump_any(to);
}

static unsigned char *by_time_passed(struct random_writer *to)
{
    put_at(to, true, 0x8b, RAX, AT(clock[1]));
    put_at(to, true, 0x2b, RAX, AT(since));
    PUT(to, WIDE, 0x3d); // cmp rax
    random_put_number(to, (int32_t)random_any(to, 300));
    return jump_any(to);
}

static void real_put(struct random_writer *to, unsigned char prefix, unsigned char opcode, unsigned reg, int32_t at)
{
    PUT(to, prefix, 0x0f, opcode, (unsigned char)(2 << 6 | reg << 3 | RBX));
    random_put_number(to, at);
}

// The time in seconds, in xmm0, as MPI_Wtime computes it.
static void seconds_take(struct random_writer *to)
{
    PUT(to, 0xf2, WIDE, 0x0f, 0x2a, 2 << 6 | 0 << 3 | RBX); // cvtsi2sd
    random_put_number(to, AT(clock[0]));
    PUT(to, 0xf2, WIDE, 0x0f, 0x2a, 2 << 6 | 1 << 3 | RBX);
    random_put_number(to, AT(clock[1]));
    real_put(to, 0xf2, 0x59, 1, AT(ns)); // mulsd
    PUT(to, 0xf2, 0x0f, 0x58, 0xc1);     // addsd
}

static unsigned char *by_seconds_passed(struct random_writer *to)
{
    static const unsigned char conditions[] = {2, 3, 6, 7}; // jb jae jbe ja
    seconds_take(to);
    real_put(to, 0xf2, 0x5c, 0, AT(since_s)); // subsd
    real_put(to, 0x66, 0x2f, 0, AT(limit_s)); // comisd
    return jump_put(to, conditions[random_any(to, sizeof conditions)]);
}

static unsigned char *decide(struct loop_writer *loop)
{
    static unsigned char *(*const decisions[])(struct random_writer *) = {
        by_register_mask, by_word_mask, by_register,       by_word, by_stack,       by_device,
        by_remainder,     by_remainder, by_device_in_turn, by_time, by_time_passed, by_seconds_passed};
    return decisions[random_any(&loop->to, sizeof decisions / sizeof decisions[0])](&loop->to);
}

// --- what is set, to a constant or to the time --------------------------------------------------------------------------

static void set_since(struct random_writer *to)
{
    put_at(to, true, 0x8b, RAX, AT(clock[1]));
    put_at(to, true, 0x89, RAX, AT(since));
}

static void set_since_seconds(struct random_writer *to)
{
    seconds_take(to);
    real_put(to, 0xf2, 0x11, 0, AT(since_s)); // movsd
}

static void set_on_stack(struct random_writer *to)
{
    put_on_stack(to, 0xc7, 0);
    random_put_number(to, 0);
}

static void set_register(struct random_writer *to)
{
    static const unsigned char registers[] = {0xe4, 0xed, 0xf6, 0xff};
    PUT(to, 0x4d, 0x31, registers[random_any(to, sizeof registers)]); // xor r12, r12...
}

static void set_word(struct random_writer *to)
{
    put_at(to, random_any(to, 2) != 0, 0xc7, 0, random_any(to, 2) != 0 ? AT(flag) : any_counter_word(to));
    random_put_number(to, (int32_t)random_any(to, 3));
}

static void set_in_turn(struct random_writer *to)
{
    turn_take(to);
    PUT(to, 0xc7, 2 << 6 | 0 << 3 | 4, 3 << 6 | RAX << 3 | RBX); // mov ..., turns(rbx, rax, 8)
    random_put_number(to, AT(turns[0]));
    random_put_number(to, (int32_t)random_any(to, 3));
}

static void set(struct loop_writer *loop)
{
    static void (*const sets[])(struct random_writer *) = {set_since,         set_on_stack, set_register, set_register,
                                                           set_word,          set_word,     set_word,     set_word,
                                                           set_since_seconds, set_in_turn};
    sets[random_any(&loop->to, sizeof sets / sizeof sets[0])](&loop->to);
}

// --- other elements -----------------------------------------------------------------------------------------------------

static void compute(struct loop_writer *loop)
{
    struct random_writer *to = &loop->to;
    put_at(to, random_any(to, 2) != 0, 0x8b, RAX, any_counter_word(to));
    put_at(to, random_any(to, 2) != 0, 0x8b, RCX, AT(device[0]) + 4 * (int32_t)random_any(to, 2 * LOOP_DEVICE_WORDS));
    PUT(to, 0x4c, 0x89, (unsigned char)(0xe0 + 8 * random_any(to, 4) + RDX)); // mov r12..., rdx
    random_vectors_clear(to);
    for (unsigned left = random_any(to, 4); left > 0; left--) {
        random_step(to);
    }
    if (random_any(to, 4) == 0) {
        put_at(to, random_any(to, 2) != 0, 0x89, random_any(to, 3), any_counter_word(to));
    }
}

static void clock_read(struct loop_writer *loop)
{
    struct random_writer *to = &loop->to;
    PUT(to, 0xbf);
    random_put_number(to, 1); // CLOCK_MONOTONIC
    put_at(to, true, 0x8d, 6, AT(clock[0]));
    call(to, loop->calls->clock);
}

// Words below and above the end of the stack, in a frame that is gone at the next poll.
static void frame(struct loop_writer *loop)
{
    struct random_writer *to = &loop->to;
    PUT(to, WIDE, 0x83, 0xec, 0x18, 0x4c, 0x89, 0x64, 0x24, 8); // sub 0x18, rsp; mov r12, 8(rsp)
    PUT(to, 0x4c, 0x89, 0x6c, 0x24, 0xf0);                      // mov r13, -16(rsp)
    PUT(to, WIDE, 0x03, 0x44, 0x24, 8, WIDE, 0x8b, 0x4c, 0x24, 0xf0, WIDE, 0x83, 0xc4, 0x18); // add, mov, add
}

static void element(struct loop_writer *loop);

static void conditional(struct loop_writer *loop)
{
    unsigned char *over = decide(loop);
    loop->depth++;
    for (unsigned left = 1 + random_any(&loop->to, 2); left > 0; left--) {
        element(loop);
    }
    loop->depth--;
    jump_to(over, loop->to.at);
}

static void element(struct loop_writer *loop)
{
    static void (*const elements[])(struct loop_writer *) = {poll,        count,       count,     count, conditional,
                                                             conditional, conditional, set,       set,   compute,
                                                             spend,       clock_read,  poll_call, frame};
    unsigned which = random_any(&loop->to, sizeof elements / sizeof elements[0]);
    if (elements[which] == conditional && loop->depth == DEPTH) {
        count(loop);
    } else {
        elements[which](loop);
    }
}

// --- the whole function -------------------------------------------------------------------------------------------------

static void registers_move(struct random_writer *to, bool out)
{
    for (unsigned i = 0; i < 4; i++) {
        PUT(to, 0x4c, out ? 0x89 : 0x8b, (unsigned char)(2 << 6 | (4 + i) << 3 | RBX));
        random_put_number(to, AT(registers[0]) + 8 * (int32_t)i);
    }
    put_at(to, true, out ? 0x89 : 0x8b, RBP, AT(registers[4]));
}

static void begin(struct random_writer *to)
{
    PUT(to, 0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57); // push rbx, rbp, r12 ... r15
    PUT(to, WIDE, 0x83, 0xec, FRAME_BYTES);                              // sub FRAME_BYTES, rsp
    PUT(to, WIDE, 0x89, 0xfb);                                           // mov rdi, rbx
    registers_move(to, false);
    for (int i = 0; i < FRAME_WORDS; i++) {
        PUT(to, WIDE, 0xc7, 0x44, 0x24, (unsigned char)(8 * i)); // mov i, 8 * i(rsp)
        random_put_number(to, i);
    }
}

// Saves rdi in a frame of its own.
static void poll_helper_put(struct loop_writer *loop)
{
    struct random_writer *to = &loop->to;
    loop->poll_helper = to->at;
    PUT(to, 0x55, WIDE, 0x83, 0xec, 32, WIDE, 0x89, 0x7c, 0x24, 8); // push rbp; sub 32, rsp; mov rdi, 8(rsp)
    call(to, loop->calls->poll);
    PUT(to, WIDE, 0x83, 0xc4, 32, 0x5d, 0xc3);
}

static void end(struct random_writer *to)
{
    registers_move(to, true);
    PUT(to, WIDE, 0x83, 0xc4, FRAME_BYTES);
    PUT(to, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3);
}

// Where an iteration begins.
static const unsigned char *loop_begin(struct loop_writer *loop, unsigned char **entry_out)
{
    *entry_out = loop->to.at;
    begin(&loop->to);
    return loop->to.at;
}

static void loop_end(struct loop_writer *loop, const unsigned char *top, bool counts)
{
    struct random_writer *to = &loop->to;
    PUT(to, 0xe9);
    random_put_number(to, 0);
    jump_to(to->at - 4, top);
    for (unsigned i = 0; i < loop->out_count; i++) {
        jump_to(loop->outs[i], to->at);
    }
    if (counts) {
        count(loop);
    }
    add_number(to, true, AT(found_count), 1);
    put_at(to, true, 0x81, 7, AT(found_count));
    random_put_number(to, LOOP_RESULTS);
    jump_to(jump_put(to, JB), top);
    end(to);
}

random_loop_t random_loop(unsigned char code[LOOP_CODE_BYTES], uint64_t seed, const struct loop_calls *calls)
{
    struct loop_writer loop = {.to = {code, seed * UINT64_C(0x9e3779b97f4a7c15) + 1}, .calls = calls};
    unsigned char *entry;
    loop.first_key = seed % 4 == 0 ? 4 * (int32_t)seed : 0; // or those of other loops
    if (random_any(&loop.to, 3) == 0) {
        poll_helper_put(&loop);
    }
    const unsigned char *top = loop_begin(&loop, &entry);
    unsigned before = random_any(&loop.to, ELEMENTS), after = random_any(&loop.to, ELEMENTS - before);
    for (unsigned i = 0; i < before; i++) {
        element(&loop);
    }
    poll(&loop);
    for (unsigned i = 0; i < after; i++) {
        element(&loop);
    }
    loop_end(&loop, top, random_any(&loop.to, 2) != 0);
    return (random_loop_t)(uintptr_t)entry;
}

random_loop_t loop_of(unsigned char code[LOOP_CODE_BYTES], const unsigned char *body, size_t bytes,
                      const struct loop_calls *calls)
{
    struct loop_writer loop = {.to = {code, 1}, .calls = calls};
    unsigned char *entry;
    const unsigned char *top = loop_begin(&loop, &entry);
    random_put(&loop.to, bytes, body);
    poll(&loop);
    loop_end(&loop, top, false);
    return (random_loop_t)(uintptr_t)entry;
}
