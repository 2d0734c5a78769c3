// For how many iterations code goes the same way while a counter moves: the bound that the interpreter tells, beside the
// code itself.
#include <string.h>

#include "interpret_call.h"
#include "tests/shim/test.h"
#include "vary_subjects.h"
#include "verbs-shim/world/interpret_vary.h"

enum { LOOKED_AT = 3000 };

static const struct vary_subject *subject_in(const struct vary_subject *subject, const char *name)
{
    while (strcmp(subject->name, name) != 0) {
        subject++;
    }
    return subject;
}

static const struct vary_subject *subject_of(const char *name)
{
    return subject_in(vary_subjects, name);
}

// What is told of a source: to how many steps from here on, and to how many before, the way is the same.
struct told {
    bool known;
    uint64_t steps, back;
};

static double quotients = INTERPRET_QUOTIENTS_FEW; // of interpret_vary_begin

// Of the sources of counter[0] and counter[1].
static struct told told_of(const struct vary_subject *subject, uint64_t *counter, const struct interpret_vary vary[2],
                           unsigned source)
{
    struct interpret_state state;
    interpret_begin();
    interpret_vary_begin(quotients);
    for (unsigned i = 0; i < 2 && vary[i].kind != INTERPRET_STEADY; i++) {
        interpret_vary_word((uintptr_t)&counter[i], 0, vary[i]);
    }
    enum interpret_stop stop = interpret_call((uintptr_t)subject->function, (uintptr_t)counter, 0, &state);
    const struct told told = {stop == INTERPRET_AT, interpret_vary_steps(source), interpret_vary_back(source)};
    interpret_vary_end();
    return told;
}

static struct interpret_vary linear(const struct vary_subject *subject, uint64_t step, unsigned source)
{
    struct interpret_vary vary = interpret_linear(step, subject->bytes);
    vary.source = (uint8_t)source;
    return vary;
}

// Returns how many iterations go the same way, if the counter changes by `step` in each; 0: it is not known.
static uint64_t told(const struct vary_subject *subject, uint64_t *counter, uint64_t step)
{
    const struct interpret_vary vary[2] = {linear(subject, step, INTERPRET_COUNTERS)};
    const struct told told = told_of(subject, counter, vary, INTERPRET_COUNTERS);
    return told.known ? told.steps : 0;
}

static uint64_t way(const struct vary_subject *subject, uint64_t value)
{
    _Alignas(8) uint64_t counter = subject->bytes == 8 ? value : (uint32_t)value;
    return subject->function(&counter);
}

// As a value that stays in all iterations, and may be another one: to both sides.
static void compare_other(const struct vary_subject *subject, uint64_t first, int64_t step)
{
    _Alignas(8) uint64_t counter = subject->bytes == 8 ? first : (uint32_t)first;
    const struct interpret_vary vary[2] = {linear(subject, (uint64_t)step, INTERPRET_OTHERS)};
    const struct told told = told_of(subject, &counter, vary, INTERPRET_OTHERS);
    uint64_t at_first = way(subject, first);
    for (uint64_t i = 0; told.known && i <= LOOKED_AT; i++) {
        if (i <= told.steps) {
            EXPECT_EQ(way(subject, first + i * (uint64_t)step), at_first);
        }
        if (i <= told.back) {
            EXPECT_EQ(way(subject, first - i * (uint64_t)step), at_first);
        }
    }
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
    compare_other(subject, first, step);
    bool wraps = first > INT32_MAX - 1000 && subject->bytes == 4; // of which less is told
    if (subject->exact && !wraps && same > 2 && same < LOOKED_AT) {
        EXPECT_GE(iterations, same - 1); // it is of use
    }
}

TEST(InterpretVary, TellsNoMoreIterationsThanGoTheSameWay)
{
    static const int64_t steps[] = {1, 2, 3, 5, 7, 8, 100, 1000, -1, -3, -8};
    static const uint64_t firsts[] = {0,
                                      1,
                                      5,
                                      8,
                                      99,
                                      100,
                                      101,
                                      500,
                                      992,
                                      1000,
                                      1001,
                                      2147483000,
                                      2147483647,
                                      4294967000,
                                      UINT64_C(1000000000000000000),
                                      UINT64_MAX - 20};
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
    const struct vary_subject *subject = subject_of("every_eighth");
    _Alignas(8) uint64_t counter = 3;
    EXPECT_LE(told(subject, &counter, 1), 4u); // to 7
    EXPECT_LE(told(subject, &counter, 4), 1u);
    EXPECT_GE(told(subject, &counter, 8), UINT64_C(100000000));
}

TEST(InterpretVary, StopsWhereAnAddressDependsOnACounter)
{
    const struct vary_subject *subject = subject_of("indexed");
    _Alignas(8) uint64_t counter = 3;
    EXPECT_EQ(told(subject, &counter, 1), 0u);
}

// A value that is compared may be any up to the border, and no other.
TEST(InterpretVary, AnotherValueGoesToTheBorder)
{
    _Alignas(8) uint64_t counter = 997;
    const struct vary_subject *subject = subject_of("below");
    const struct interpret_vary vary[2] = {linear(subject, 1, INTERPRET_OTHERS)};
    struct told told = told_of(subject, &counter, vary, INTERPRET_OTHERS);
    EXPECT_TRUE(told.known);
    EXPECT_EQ(told.steps, 2u);
    EXPECT_EQ(told.back, 997u);
    counter = 1000;
    told = told_of(subject, &counter, vary, INTERPRET_OTHERS);
    EXPECT_EQ(told.back, 0u);
}

static void modulus_compare(const struct vary_subject *subject, uint64_t first, uint32_t modulus)
{
    _Alignas(8) uint64_t counter = first;
    struct interpret_vary vary[2] = {linear(subject, 1, INTERPRET_COUNTERS)};
    vary[0].modulus = modulus;
    const struct told told = told_of(subject, &counter, vary, INTERPRET_COUNTERS);
    TEST_TRACE("%s from %llu modulo %u", subject->name, (unsigned long long)first, modulus);
    for (uint64_t value = first % modulus; told.known && value < 40 * (uint64_t)modulus; value += modulus) {
        for (uint64_t i = 0; i <= told.steps && i < 2 * modulus; i++) {
            EXPECT_EQ(way(subject, value + i), way(subject, first));
        }
    }
}

TEST(InterpretVary, AModulusHoldsForAllMultiples)
{
    static const uint32_t moduli[] = {3, 8, 64, 100, 129, 256, 300, 4096};
    for (const struct vary_subject *subject = vary_subjects; subject->name != NULL; subject++) {
        for (size_t i = 0; i < sizeof moduli / sizeof moduli[0]; i++) {
            for (uint64_t first = 0; first < 400; first += 7) {
                modulus_compare(subject, first, moduli[i]);
            }
        }
    }
    _Alignas(8) uint64_t counter = 203;
    struct interpret_vary vary[2] = {linear(subject_of("hundredth"), 1, INTERPRET_COUNTERS)};
    vary[0].modulus = 300;
    struct told told = told_of(subject_of("hundredth"), &counter, vary, INTERPRET_COUNTERS);
    EXPECT_TRUE(told.known);
    EXPECT_EQ(told.steps, 96u);
    told = told_of(subject_of("after_one"), &counter, vary, INTERPRET_COUNTERS);
    EXPECT_TRUE(told.known);
    EXPECT_EQ(told.steps, 95u);
}

// Two values that move for themselves: each is bounded alone, and where both are compared nothing is known.
TEST(InterpretVary, SourcesAreBoundedAlone)
{
    _Alignas(8) uint64_t counters[2] = {90, 150};
    const struct vary_subject *subject = subject_in(vary_subjects_of_two, "each");
    const struct interpret_vary vary[2] = {linear(subject, 1, INTERPRET_OTHERS),
                                           linear(subject, 1, INTERPRET_OTHERS + 1)};
    EXPECT_EQ(told_of(subject, counters, vary, INTERPRET_OTHERS).steps, 9u);
    EXPECT_EQ(told_of(subject, counters, vary, INTERPRET_OTHERS + 1).steps, 49u);
    static const char *const of_both[] = {"crossed", "distance", "both_bits"};
    for (size_t i = 0; i < sizeof of_both / sizeof of_both[0]; i++) {
        EXPECT_FALSE(told_of(subject_in(vary_subjects_of_two, of_both[i]), counters, vary, INTERPRET_OTHERS).known);
    }
}

// Two values that move together keep their distance.
TEST(InterpretVary, ValuesThatMoveTogetherAreComparedOnceForAll)
{
    _Alignas(8) uint64_t counters[2] = {90, 150};
    const struct vary_subject *subject = subject_in(vary_subjects_of_two, "crossed");
    const struct interpret_vary together[2] = {linear(subject, 3, INTERPRET_COUNTERS),
                                               linear(subject, 3, INTERPRET_COUNTERS)};
    struct told told = told_of(subject, counters, together, INTERPRET_COUNTERS);
    EXPECT_TRUE(told.known);
    EXPECT_EQ(told.steps, ((1u << 31) - 1 - 150) / 3); // to where the larger one wraps as a signed number
    EXPECT_EQ(told.back, 30u);
    const struct interpret_vary faster[2] = {linear(subject, 3, INTERPRET_COUNTERS),
                                             linear(subject, 2, INTERPRET_COUNTERS)};
    EXPECT_FALSE(told_of(subject, counters, faster, INTERPRET_COUNTERS).known);
}

// A quotient that is only compared with a limit moves on below it; one that stays for long bounds the iterations.
TEST(InterpretVary, AQuotientThatSoonChangesMayMove)
{
    _Alignas(8) uint64_t counter = 1000;
    const struct vary_subject *subject = subject_of("sixty_fourths");
    EXPECT_EQ(told(subject, &counter, 1), 23u);
    EXPECT_FALSE(interpret_vary_moved_quotients(1));
    quotients = 100;
    uint64_t steps = told(subject, &counter, 1);
    EXPECT_TRUE(interpret_vary_moved_quotients(20));
    EXPECT_FALSE(interpret_vary_moved_quotients(25));
    quotients = INTERPRET_QUOTIENTS_FEW;
    EXPECT_GT(steps, 5300u);
    EXPECT_LE(steps, 5399u);
}
