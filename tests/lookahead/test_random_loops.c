// Random loops of polls, each poll by itself and with the look ahead: the same polls at the same times, with the same memory.
#include <string.h>
#include <sys/mman.h>

#include "play.h"
#include "tests/shim/test.h"
#include "tests/support/random_code.h"

enum { LOOPS = 3000 };

static unsigned char *code_of(unsigned number)
{
    static unsigned char *code;
    if (code == NULL) {
        code = mmap(NULL, (size_t)(LOOPS + 2) * LOOP_CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return code + (size_t)number * LOOP_CODE_BYTES;
}

static uint64_t small(struct random_writer *random)
{
    static const uint64_t values[] = {0, 0, 1, 7, 90, 1000, UINT32_MAX - 20, UINT64_MAX - 20};
    return values[random_any(random, sizeof values / sizeof values[0])] + random_any(random, 20);
}

// Several events; the last ones let polls find something, until the loop ends.
static void events_draw(struct random_writer *random, struct play *play)
{
    uint64_t at_ps = 0;
    unsigned found = 0;
    play->event_count = PLAY_EVENTS;
    for (unsigned i = 0; i < PLAY_EVENTS; i++) {
        bool finds =
            PLAY_EVENTS - i == LOOP_RESULTS - found || (found < LOOP_RESULTS - 1 && random_any(random, 4) == 0);
        enum play_kind kind = finds ? PLAY_FINDS : random_any(random, 3) == 0 ? PLAY_WAKES : PLAY_WRITES;
        at_ps += 1 + random_any(random, 1u << (6 + random_any(random, 15)));
        play->events[i] =
            (struct play_event){at_ps, kind, random_any(random, 2 * LOOP_DEVICE_WORDS), random_any(random, 3)};
        found += finds;
    }
}

static void draw(struct random_writer *random, struct play *play)
{
    struct loop_memory *memory = &play->memory;
    memset(memory, 0, sizeof *memory);
    play->alone = random_any(random, 4) != 0;
    for (unsigned i = 0; i < sizeof memory->counters / sizeof memory->counters[0]; i++) {
        memory->counters[i] = small(random);
    }
    for (unsigned i = 0; i < sizeof memory->registers / sizeof memory->registers[0]; i++) {
        memory->registers[i] = small(random);
    }
    memory->deadline_ps = random_any(random, 2) != 0 ? 100 * (uint64_t)random_any(random, 10000) : UINT64_MAX;
    memory->ns = 1e-9;
    memory->limit_s = 1e-9 * random_any(random, 2000);
    events_draw(random, play);
}

static struct play_poll polls[2][PLAY_POLLS];

// The first poll that is not as in the reference; the number of them all: none.
static unsigned first_other(const struct play *reference, const struct play *ahead)
{
    unsigned i = 0, count = reference->count < PLAY_POLLS ? reference->count : PLAY_POLLS;
    while (i < count && (ahead->polls[i].at_ps == 0 ||
                         memcmp(&ahead->polls[i], &reference->polls[i], sizeof ahead->polls[i]) == 0)) {
        i++;
    }
    return i;
}

// Both ways, from the same memory and with the same events. Returns how many polls were carried out with the look ahead.
static unsigned play_both(struct play *reference, random_loop_t loop)
{
    static struct play ahead = {.ahead = true, .polls = polls[1]};
    reference->polls = polls[0];
    memcpy(ahead.events, reference->events, sizeof ahead.events);
    ahead.event_count = reference->event_count;
    ahead.alone = reference->alone;
    ahead.memory = reference->memory;
    memset(ahead.polls, 0, sizeof polls[1]);
    play_loop(reference, loop);
    play_loop(&ahead, loop);
    EXPECT_LT(reference->count, PLAY_POLLS);
    EXPECT_EQ(ahead.count, reference->count);
    EXPECT_EQ(first_other(reference, &ahead), reference->count);
    EXPECT_EQ(ahead.lost, 0u);
    return ahead.carried_out;
}

// Polls that are carried out although they could be told are slow.
TEST(Lookahead, PlaysRandomLoopsAsIfEachPollWereMade)
{
    static struct play play;
    const struct loop_calls calls = play_calls();
    unsigned made = 0, all = 0;
    for (unsigned i = 0; i < LOOPS; i++) {
        struct random_writer random = {NULL, i * UINT64_C(0x9e3779b97f4a7c15) + 77};
        TEST_TRACE("loop %u", i);
        random_loop_t loop = random_loop(code_of(i), i, &calls);
        draw(&random, &play);
        made += play_both(&play, loop);
        all += play.count;
    }
    EXPECT_EQ(all, 1114984u);
    EXPECT_LE(made, 414418u); // as of this writing
}

// Plays a loop of these instructions and a poll: right when the counter in the lower half of its first word wraps. Returns how
// many polls were carried out.
static unsigned wrap_play(unsigned number, uint64_t upper, const unsigned char *body, size_t bytes)
{
    static struct play play = {.alone = true, .event_count = LOOP_RESULTS};
    const struct loop_calls calls = play_calls();
    random_loop_t loop = loop_of(code_of(LOOPS + number), body, bytes, &calls);
    play.memory = (struct loop_memory){.counters = {upper << 32 | 0xffffffeb}, .deadline_ps = UINT64_MAX};
    for (unsigned i = 0; i < LOOP_RESULTS; i++) {
        play.events[i] = (struct play_event){.at_ps = 1000000 * (i + 1), .kind = PLAY_FINDS};
    }
    unsigned made = play_both(&play, loop);
    EXPECT_GE(play.count, 300u);
    return made;
}

TEST(Lookahead, PlaysALoopThatSetsTheOtherHalfOfACountersWord)
{
    static const unsigned char before_it_is_read[] = {0xc7, 0x43, 4, 1, 0, 0, 0,              // movl 1, 4(rbx)
                                                      0x48, 0x8b, 3,                          // mov (rbx), rax
                                                      0x83, 3,    1};                         // addl 1, (rbx)
    static const unsigned char after_it_is_compared[] = {0x48, 0x81, 0x3b, 0, 0x10, 0, 0,     // cmpq 0x1000, (rbx)
                                                         0x76, 4,                             // jbe
                                                         0x49, 0x83, 0xc7, 1,                 // add 1, r15
                                                         0x83, 3,    3,                       // addl 3, (rbx)
                                                         0x48, 0xc7, 0x43, 4, 0,    0, 0, 0}; // movq 0, 4(rbx)
    EXPECT_LE(wrap_play(0, 1, before_it_is_read, sizeof before_it_is_read), 30u);
    EXPECT_GT(wrap_play(1, 0, after_it_is_compared, sizeof after_it_is_compared), 30u); // it is no loop that is known
}
