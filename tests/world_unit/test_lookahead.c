// Loops of polls that are known again: with which values of what varies, and what would have to vary for two loops to be one.
// What a loop reads is told as the interpreter does; the program and its polls are test doubles.
#include <string.h>

#include "tests/shim/test.h"
#include "verbs-shim/world/lookahead_internal.h"

enum { STACK = 0x10000, PLACE = 3 };

static uint64_t now_ps = 1000, tail_ps;
static bool found;
static _Atomic uint32_t entry_count;
static const struct attach_borders borders = {
    .now_ps = &now_ps, .tail_ps = &tail_ps, .found = &found, .entry_count = &entry_count, .alone = true};
static uint64_t words[4]; // of the program

// --- doubles of lookahead_poll.c and lookahead_vary.c -------------------------------------------------------------------------

uint64_t lookahead_register(const struct attach_caller *caller, unsigned number)
{
    return number == INTERPRET_RBX ? caller->rbx : number == INTERPRET_RBP ? caller->rbp : 0;
}

bool lookahead_still_idle(const struct attach_caller *caller, const struct attach_borders *of,
                          struct attach_ahead_poll *poll)
{
    (void)caller, (void)of, (void)poll;
    return true;
}

uint64_t lookahead_mask(uint8_t bytes)
{
    return bytes == 0xff ? UINT64_MAX : bytes == 0x0f ? UINT32_MAX : bytes == 0xf0 ? ~(uint64_t)UINT32_MAX : 0;
}

bool lookahead_is_own(const struct attach_borders *of, uint64_t address)
{
    return address == (uintptr_t)of->now_ps;
}

bool lookahead_time_is_known(const struct attach_borders *of)
{
    return of == &borders;
}

bool lookahead_is_input(const struct interpret_word *word, enum interpret_point point, uint64_t stack)
{
    (void)stack;
    return word->since[point].read != 0;
}

uint64_t lookahead_iterations(const struct attach_ahead *ahead, uint64_t from_ps, uint64_t until_ps,
                              uint64_t iteration_ps)
{
    (void)ahead, (void)from_ps, (void)until_ps, (void)iteration_ps;
    return UINT64_MAX;
}

// --- loops ----------------------------------------------------------------------------------------------------------------

static const struct attach_caller caller = {.rbx = 5, .rbp = 7, .rsp = STACK, .rip = 0x4000};

static struct lookahead_counter counter_at(const void *word, uint64_t step, uint64_t counted)
{
    uint64_t address = (uintptr_t)word & ~UINT64_C(7);
    struct lookahead_counter counter = {
        .address = address, .half = (uintptr_t)word % 8 / 4, .bytes = 4, .step = step, .counted = counted};
    counter.first = lookahead_counter_value(&counter, *(const uint64_t *)address); // NOLINT(performance-no-int-to-ptr)
    return counter;
}

static uint64_t known_for(const struct attach_caller *from)
{
    uint64_t iterations = 0;
    return lookahead_known_find(PLACE, from, &borders, &iterations) != NULL ? iterations : 0;
}

// Keeps a loop that reads all words, each in halves.
static struct attach_known *loop_keep(const struct attach_caller *from, const struct lookahead_varies *varies)
{
    struct attach_ahead ahead = {.kind = ATTACH_AHEAD_REPEATS, .count = 1, .polls = {{.own_ps = 10, .key = 1}}};
    (void)known_for(from); // a look that finds none
    struct attach_known *loop = lookahead_known_free(PLACE);
    loop->varies = *varies;
    loop->bounds = (struct lookahead_bounds){0};
    interpret_begin();
    for (unsigned i = 0; i < 2 * sizeof words / sizeof words[0]; i++) {
        (void)interpret_load((uintptr_t)words + 4 * (uint64_t)i, 4);
    }
    EXPECT_TRUE(lookahead_known_keep(loop, from, &ahead, &borders));
    return loop;
}

static void begin(void)
{
    lookahead_known_forget(PLACE);
    memset(words, 0, sizeof words);
}

TEST(Lookahead, KnowsALoopWithTheWordsThatItHadAlone)
{
    begin();
    (void)loop_keep(&caller, &(struct lookahead_varies){0});
    EXPECT_EQ(known_for(&caller), UINT64_MAX);
    words[2] ^= UINT64_C(1) << 40;
    EXPECT_EQ(known_for(&caller), 0u);
    words[2] = 0;
    struct attach_caller other = caller;
    other.rbx++;
    EXPECT_EQ(known_for(&other), 0u);
}

// For how many iterations the loop is known with this value of words[1].
struct row {
    uint64_t value, left;
};

static void known_expect(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        words[1] = rows[i].value;
        TEST_TRACE("%llu", (unsigned long long)rows[i].value);
        EXPECT_EQ(known_for(&caller), rows[i].left);
    }
}

TEST(Lookahead, KnowsACounterOnBothSidesOfWhereItBegan)
{
    begin();
    words[1] = 100;
    struct lookahead_varies varies = {.counter_count = 1, .counters = {counter_at(&words[1], 4, 10)}};
    varies.counters[0].back = 2;
    (void)loop_keep(&caller, &varies);
    static const struct row rows[] = {{100, 10}, {104, 9}, {136, 1}, {140, 0}, {96, 11}, {92, 12}, {88, 0}, {102, 0}};
    known_expect(rows, sizeof rows / sizeof rows[0]);
}

TEST(Lookahead, KnowsACounterModuloWhatItIsDividedBy)
{
    begin();
    words[1] = 203;
    struct lookahead_varies varies = {.counter_count = 1, .counters = {counter_at(&words[1], 1, 90)}};
    varies.counters[0].modulus = 100;
    (void)loop_keep(&caller, &varies);
    static const struct row rows[] = {
        {203, 90}, {3, 90}, {4, 89}, {1092, 1}, {1093, 0}, {2, 0}, {INTERPRET_MODULAR_MAX, 0}};
    known_expect(rows, sizeof rows / sizeof rows[0]);
}

// Counters that move together have moved by as many iterations; apart, each is where it is.
TEST(Lookahead, CountersAreApartIfNothingDependsOnBoth)
{
    for (unsigned apart = 0; apart < 2; apart++) {
        begin();
        const struct lookahead_varies varies = {
            .counter_count = 2,
            .counters = {counter_at(&words[0], 1, 50), counter_at(&words[1], 2, 40)},
            .apart = apart != 0};
        (void)loop_keep(&caller, &varies);
        words[0] = 3;
        words[1] = 6;
        EXPECT_EQ(known_for(&caller), 37u);
        words[1] = 10;
        EXPECT_EQ(known_for(&caller), apart ? 35u : 0u);
    }
}

// The second one differs in a word and in a register: with their values between both it may be the same loop.
TEST(Lookahead, TwoLoopsTellWhatMayHaveOtherValues)
{
    begin();
    words[2] = UINT64_C(9) << 32;
    struct attach_known *first = loop_keep(&caller, &(struct lookahead_varies){0});
    struct attach_caller other = caller;
    other.rbp = 70;
    words[2] = UINT64_C(12) << 32;
    struct attach_known *second = loop_keep(&other, &(struct lookahead_varies){0});
    struct lookahead_varies wider;
    EXPECT_EQ((uintptr_t)lookahead_known_near(second, &wider), (uintptr_t)first);
    EXPECT_EQ(wider.range_count, 2u);
    EXPECT_EQ(wider.ranges[0].address, 0u);
    EXPECT_EQ(wider.ranges[0].number, INTERPRET_RBP);
    EXPECT_EQ(wider.ranges[0].other, 7u);
    EXPECT_EQ(wider.ranges[1].address, (uintptr_t)&words[2]);
    EXPECT_EQ(wider.ranges[1].half, 1u);
    EXPECT_EQ(wider.ranges[1].first, 12u);
    EXPECT_EQ(wider.ranges[1].other, 9u);
    EXPECT_FALSE(lookahead_is_known_with_others(&wider));
    // What the interpretation would tell: the register may be anything, the word from 9 to 15.
    wider.ranges[0].counted = wider.ranges[0].back = INT64_MAX;
    wider.ranges[1].counted = wider.ranges[1].back = 3;
    EXPECT_TRUE(lookahead_is_known_with_others(&wider));
    second->varies = wider;
    lookahead_known_widened(second, first);
    first->ahead.count = 0;
    for (uint64_t value = 5; value < 20; value++) {
        words[2] = value << 32;
        other.rbp = value * UINT64_C(0x9e3779b97f4a7c15);
        EXPECT_EQ(known_for(&other), value >= 9 && value <= 15 ? UINT64_MAX : 0);
    }
    words[2] = UINT64_C(10) << 32 | 1; // its other half
    EXPECT_EQ(known_for(&other), 0u);
}

TEST(Lookahead, TwoLoopsTellByWhatACounterIsDivided)
{
    begin();
    words[0] = 103;
    const struct lookahead_varies varies = {.counter_count = 1, .counters = {counter_at(&words[0], 1, 90)}};
    (void)loop_keep(&caller, &varies);
    words[0] = 403;
    const struct lookahead_varies later = {.counter_count = 1, .counters = {counter_at(&words[0], 1, 90)}};
    struct attach_known *second = loop_keep(&caller, &later);
    struct lookahead_varies wider;
    EXPECT_NOT_NULL(lookahead_known_near(second, &wider));
    EXPECT_EQ(wider.counters[0].modulus, 300u);
    lookahead_narrow(&wider);
    EXPECT_FALSE(lookahead_is_wide(&wider));
}

// Another place of the program, or polls of another cost: another loop.
TEST(Lookahead, OtherLoopsAreNotCompared)
{
    begin();
    struct attach_known *first = loop_keep(&caller, &(struct lookahead_varies){0});
    words[2] = 1;
    struct attach_known *second = loop_keep(&caller, &(struct lookahead_varies){0});
    struct lookahead_varies wider;
    EXPECT_EQ((uintptr_t)lookahead_known_near(second, &wider), (uintptr_t)first);
    first->ahead.polls[0].own_ps++;
    EXPECT_NULL(lookahead_known_near(second, &wider));
    first->ahead.polls[0].own_ps--;
    first->words[0].address += 8;
    EXPECT_NULL(lookahead_known_near(second, &wider));
}
