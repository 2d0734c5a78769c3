// For how many iterations code goes the same way while a counter moves: the bound that the interpreter tells, beside the
// code itself.
#include <string.h>

#include "tests/shim/test.h"
#include "vary_subjects.h"
#include "verbs-shim/world/interpret.h"
#include "verbs-shim/world/interpret_vary.h"

enum { STACK_WORDS = 1024, LOOKED_AT = 3000 };
static const uintptr_t end = 0x1000; // where the function returns to

// Returns how many iterations go the same way, if the counter changes by `step` in each; 0: it is not known.
static uint64_t told(const struct vary_subject *subject, uint64_t *counter, uint64_t step)
{
    static uint64_t stack[STACK_WORDS];
    stack[STACK_WORDS - 9] = end;
    struct interpret_state state = {.rip = (uintptr_t)subject->function};
    state.known = 1u << INTERPRET_RDI | 1u << INTERPRET_RSP | 1u << INTERPRET_RBP | 1u << INTERPRET_RBX;
    state.registers[INTERPRET_RDI] = (uintptr_t)counter;
    state.registers[INTERPRET_RSP] = (uintptr_t)&stack[STACK_WORDS - 9];
    unsigned left = 10000;
    interpret_begin();
    interpret_vary_begin();
    interpret_vary_word((uintptr_t)counter, 0, interpret_linear(step, subject->bytes));
    enum interpret_stop stop = interpret_run(&state, &end, 1, &left);
    uint64_t iterations = interpret_vary_iterations();
    interpret_vary_end();
    return stop == INTERPRET_AT ? iterations : 0;
}

static uint64_t way(const struct vary_subject *subject, uint64_t value)
{
    _Alignas(8) uint64_t counter = subject->bytes == 8 ? value : (uint32_t)value;
    return subject->function(&counter);
}

static void compare(const struct vary_subject *subject, uint64_t first, int64_t step)
{
    _Alignas(8) uint64_t counter = subject->bytes == 8 ? first : (uint32_t)first;
    uint64_t iterations = told(subject, &counter, (uint64_t)step), same = 0, at_first = way(subject, first);
    while (same < LOOKED_AT && way(subject, first + (same + 1) * (uint64_t)step) == at_first) {
        same++;
    }
    TEST_TRACE("%s from %llu by %lld", subject->name, (unsigned long long)first, (long long)step);
    if (same < LOOKED_AT) {
        EXPECT_LE(iterations, same);
    }
    bool wraps = first > INT32_MAX - 1000 && subject->bytes == 4; // of which less is told
    if (subject->exact && !wraps && same > 2 && same < LOOKED_AT) {
        EXPECT_GE(iterations, same - 1); // it is of use
    }
}

TEST(InterpretVary, TellsNoMoreIterationsThanGoTheSameWay)
{
    static const int64_t steps[] = {1, 2, 3, 5, 7, 8, 100, 1000, -1, -3, -8};
    static const uint64_t firsts[] = {0,    1,          5,          8,          99,
                                      100,  101,        500,        992,        1000,
                                      1001, 2147483000, 2147483647, 4294967000, UINT64_C(1000000000000000000)};
    for (const struct vary_subject *subject = vary_subjects; subject->name != NULL; subject++) {
        for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
            for (size_t j = 0; j < sizeof steps / sizeof steps[0]; j++) {
                compare(subject, firsts[i], steps[j]);
            }
        }
    }
}

TEST(InterpretVary, KnowsTheEighthTimeFromEightTimesAsMany)
{
    const struct vary_subject *subject = vary_subjects;
    while (strcmp(subject->name, "every_eighth") != 0) {
        subject++;
    }
    _Alignas(8) uint64_t counter = 3;
    EXPECT_LE(told(subject, &counter, 1), 4u); // to 7
    EXPECT_LE(told(subject, &counter, 4), 1u);
    EXPECT_GE(told(subject, &counter, 8), UINT64_C(100000000));
}

TEST(InterpretVary, StopsWhereAnAddressDependsOnACounter)
{
    const struct vary_subject *subject = vary_subjects;
    while (strcmp(subject->name, "indexed") != 0) {
        subject++;
    }
    _Alignas(8) uint64_t counter = 3;
    EXPECT_EQ(told(subject, &counter, 1), 0u);
}
