// The interpreter in random code, beside the processor: what it computes, and for how many steps of a counter the code
// goes the same way.
#include <string.h>
#include <sys/mman.h>

#include "interpret_call.h"
#include "tests/support/random_code.h"
#include "tests/shim/test.h"
#include "verbs-shim/world/interpret_vary.h"

enum { FUNCTIONS = 6000, LOOKED_AT = 600, NEAR = 40 };

// Each function has its own addresses: the interpreter keeps what it has decoded.
static unsigned char *code_of(unsigned number)
{
    static unsigned char *code;
    if (code == NULL) {
        code = mmap(NULL, (size_t)2 * FUNCTIONS * RANDOM_CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return code + (size_t)number * RANDOM_CODE_BYTES;
}

static uint64_t random_state;

static void random_begin(void)
{
    random_state = 88172645463325252u;
}

static uint64_t random_next(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static uint64_t random_counter(unsigned bytes)
{
    static const uint64_t borders[] = {
        0, 90, 992, 65530, INT32_MAX - 300, UINT32_MAX - 300, UINT64_C(1) << 60, UINT64_MAX - 300};
    uint64_t value = borders[random_next() % (sizeof borders / sizeof borders[0])] + random_next() % 300;
    return bytes == 8 ? value : (uint32_t)value;
}

// false: it depends on what is not known, as flags that an instruction leaves undefined.
static bool interpret(random_function_t function, const uint64_t *at, uint64_t *result_out)
{
    struct interpret_state state;
    enum interpret_stop stop = interpret_call((uintptr_t)function, (uintptr_t)at, 0, &state);
    *result_out = state.registers[INTERPRET_RAX];
    return stop == INTERPRET_AT && (state.known & 1u << INTERPRET_RAX) != 0;
}

// The processor writes the words behind the counters.
static uint64_t carry_out(random_function_t function, const uint64_t *counters)
{
    uint64_t at[2 + RANDOM_CODE_WORDS] = {counters[0], counters[1]};
    return function(at);
}

// A processor without BMI1 carries out tzcnt, whose first byte is 0xf3, as bsf: other flags.
static bool is_as_on_all(const unsigned char *code)
{
    return __builtin_cpu_supports("bmi") || memchr(code, 0xf3, RANDOM_CODE_BYTES) == NULL;
}

TEST(Interpret, DoesWhatTheProcessorDoesInRandomCode)
{
    unsigned done = 0;
    random_begin();
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        random_function_t function = random_code(code_of(i), i, i % 2 != 0 ? 4 : 8, true);
        const uint64_t at[2 + RANDOM_CODE_WORDS] = {random_counter(8), random_counter(4)};
        uint64_t result;
        interpret_begin();
        if (interpret(function, at, &result)) {
            TEST_TRACE("function %u", i);
            done++;
            if (is_as_on_all(code_of(i))) {
                EXPECT_EQ(result, carry_out(function, at));
            }
        }
    }
    EXPECT_GE(done, 4618u); // as of this writing: the others depend on flags that an instruction leaves undefined
}

struct told {
    uint64_t steps[2], back[2];
};

// What the interpreter tells of both counters; false: it does not know the way.
static bool tell(random_function_t function, const uint64_t *at, unsigned bytes, const uint64_t step[2],
                 struct told *told_out)
{
    uint64_t unused;
    interpret_begin();
    interpret_vary_begin(INTERPRET_QUOTIENTS_FEW);
    for (unsigned i = 0; i < 2; i++) {
        struct interpret_vary vary = interpret_linear(step[i], i == 0 ? bytes : 4);
        vary.source = (uint8_t)(INTERPRET_OTHERS + i);
        interpret_vary_word((uintptr_t)&at[i], 0, vary);
    }
    bool known = interpret(function, at, &unused);
    for (unsigned i = 0; i < 2; i++) {
        told_out->steps[i] = interpret_vary_steps(INTERPRET_OTHERS + i);
        told_out->back[i] = interpret_vary_back(INTERPRET_OTHERS + i);
    }
    interpret_vary_end();
    return known;
}

// Moves counter `which` from one end of what was told to the other, and a bit further for how exact that is.
static uint64_t compare(random_function_t function, const uint64_t *at, unsigned bytes, const uint64_t step[2],
                        const struct told *told, unsigned which)
{
    uint64_t same_at = carry_out(function, at), steps = told->steps[which], back = told->back[which], wrong = 0;
    steps = steps < LOOKED_AT ? steps : (uint64_t)LOOKED_AT;
    back = back < LOOKED_AT ? back : (uint64_t)LOOKED_AT;
    for (uint64_t i = 0; i <= steps + back; i++) {
        uint64_t moved[2] = {at[0], at[1]};
        moved[which] += (i - back) * step[which];
        moved[1 - which] += random_next() % 2 != 0 ? told->steps[1 - which] % NEAR * step[1 - which] : 0;
        moved[0] = bytes == 8 ? moved[0] : (uint32_t)moved[0];
        moved[1] = (uint32_t)moved[1];
        wrong += carry_out(function, moved) != same_at;
    }
    EXPECT_EQ(wrong, 0u);
    return steps + back;
}

// Both counters at once, each within what was told of it. What is told is as much as when this was written: less makes
// waits slow.
TEST(InterpretVary, TellsNoMoreStepsOfRandomCodeThanGoTheSameWay)
{
    static const uint64_t steps[] = {1, 2, 3, 8, 100, (uint64_t)-1, (uint64_t)-8};
    unsigned known = 0;
    uint64_t all = 0;
    random_begin();
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        unsigned bytes = i % 2 != 0 ? 4 : 8;
        random_function_t function = random_code(code_of(FUNCTIONS + i), i, bytes, false);
        const uint64_t at[2 + RANDOM_CODE_WORDS] = {random_counter(bytes), random_counter(4)};
        const uint64_t step[2] = {steps[random_next() % 7], steps[random_next() % 7]};
        struct told told;
        if (tell(function, at, bytes, step, &told)) {
            TEST_TRACE("function %u", i);
            known++;
            all += compare(function, at, bytes, step, &told, 0) + compare(function, at, bytes, step, &told, 1);
        }
    }
    EXPECT_GE(known, 1473u);
    EXPECT_GE(all, 2151782u);
}
