#include "sim/attach/known_loop.h"

#include <string.h>

#include "sim/attach/poll_policy.h"

// Of an iteration, far above what costs of a scenario make of one; nothing overflows with it.
static const uint64_t iteration_max_ps = UINT64_C(1000000000000), ahead_max_ps = UINT64_C(1000000000000);
// A program of the outside changes what the kernel answers without a word: it is asked again after this time.
static const uint64_t outside_max_ps = UINT64_C(1000000000);

// Bits of the pages of a range.
static uint64_t pages_of(uint64_t address, uint64_t bytes)
{
    enum { PAGE_BYTES = 4096, PAGES_MAX = 64 };
    uint64_t page = address / PAGE_BYTES, count = (address % PAGE_BYTES + bytes + PAGE_BYTES - 1) / PAGE_BYTES,
             bits = 0;
    for (uint64_t i = 0; i < count && i < PAGES_MAX; i++) {
        bits |= UINT64_C(1) << ((page + i) * UINT64_C(0x9e3779b97f4a7c15) >> 58);
    }
    return count > PAGES_MAX ? UINT64_MAX : bits;
}

static void pages_note(struct known_loop *loop)
{
    loop->pages[0] = loop->pages[1] = 0;
    for (unsigned i = 0; i < loop->word_count; i++) {
        const struct attach_loop_word *word = &loop->words[i];
        loop->pages[0] |= pages_of(word->address, sizeof word->value);
        loop->pages[1] |= word->bus_address != 0 ? pages_of(word->bus_address, sizeof word->value) : 0;
    }
    for (unsigned i = 0; i < loop->poll_count; i++) {
        loop->pages[1] |= pages_of(loop->polls[i].bus_address, 1);
    }
}

void known_loop_take(struct known_loop *loop, const struct attach_args_poll *args, const struct attach_slot *slot)
{
    uint64_t iteration_ps = args->iteration_ps < iteration_max_ps ? args->iteration_ps : iteration_max_ps;
    uint32_t polls = slot->loop_poll_count, words = slot->loop_word_count;
    loop->on = true;
    loop->outside = (args->flags & ATTACH_WAIT_OUTSIDE) != 0;
    loop->started = false;
    loop->iteration_ps = iteration_ps + (iteration_ps == 0 || args->iterations == 0); // behind the last of all polls
    loop->poll_count = polls != 0 && polls <= sizeof loop->polls / sizeof loop->polls[0] ? polls : 1;
    memcpy(loop->polls, slot->loop_polls, loop->poll_count * sizeof loop->polls[0]);
    for (unsigned i = 0; i < loop->poll_count; i++) {
        loop->polls[i].after_ps %= loop->iteration_ps;
    }
    loop->word_count = words <= ATTACH_LOOP_WORDS ? words : 0;
    memcpy(loop->words, slot->loop_words, loop->word_count * sizeof loop->words[0]);
    pages_note(loop);
    loop->changes = slot->loop_changes;
    loop->sees = loop->early = loop->own = false;
    loop->seen_ps = UINT64_MAX;
    loop->hit = 0;
}

void known_loop_start(struct known_loop *loop, uint64_t now_ps, uint64_t iterations)
{
    uint64_t most = (loop->outside ? outside_max_ps : ahead_max_ps) / loop->iteration_ps;
    loop->start_ps = now_ps;
    loop->started = true;
    loop->hit = iterations == 0 ? loop->poll_count - 1 : 0;
    loop->seen_ps =
        now_ps + loop->polls[loop->hit].after_ps + (iterations < most ? iterations : most) * loop->iteration_ps;
    if (loop->sees) {
        loop->seen_ps = now_ps;
        loop->hit = 0;
    }
}

void known_loop_sees(struct known_loop *loop, uint64_t now_ps)
{
    loop->sees = loop->sees || !loop->started;
    for (unsigned i = 0; i < loop->poll_count && loop->started; i++) {
        uint64_t first_ps = loop->start_ps + loop->polls[i].after_ps;
        uint64_t late_ps = now_ps > first_ps ? now_ps - first_ps : 0;
        uint64_t at_ps = first_ps + (late_ps + loop->iteration_ps - 1) / loop->iteration_ps * loop->iteration_ps;
        loop->sees = loop->sees || at_ps <= loop->seen_ps;
        if (at_ps < loop->seen_ps) {
            loop->seen_ps = at_ps;
            loop->hit = i;
        }
    }
}

bool known_loop_woken(struct known_loop *loop, uint64_t now_ps)
{
    if (loop->outside) {
        known_loop_sees(loop, now_ps);
    }
    return loop->outside;
}

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a - b < b_bytes || b - a < a_bytes;
}

bool known_loop_changes(const struct known_loop *loop, uint64_t address, uint64_t bytes)
{
    bool changes = loop->changes.count > ATTACH_LOOP_CHANGES;
    for (unsigned i = 0; i < loop->changes.count && !changes; i++) {
        changes = overlap(loop->changes.addresses[i], sizeof(uint64_t), address, bytes);
    }
    return changes;
}

static bool may_poll(const struct attach_iteration_poll *poll, const struct poll_write *write)
{
    bool named = write->pinned && poll->bus_address - write->address < write->bytes;
    return named || (poll->bus_address == 0 && write->event); // a poll without a word
}

bool known_loop_written(struct known_loop *loop, const struct poll_write *write, uint64_t now_ps)
{
    bool sees = false;
    if (!write->event && (loop->pages[write->pinned] & pages_of(write->address, write->bytes)) == 0) {
        return false;
    }
    for (unsigned i = 0; i < loop->poll_count && !sees; i++) {
        sees = may_poll(&loop->polls[i], write);
    }
    for (unsigned i = 0; i < loop->word_count && !sees; i++) {
        const struct attach_loop_word *word = &loop->words[i];
        uint64_t address = write->pinned ? word->bus_address : word->address;
        sees = address != 0 && overlap(write->address, write->bytes, address, sizeof word->value);
    }
    if (sees) {
        known_loop_sees(loop, now_ps);
        loop->own = loop->own || may_poll(&loop->polls[loop->hit], write);
    }
    return sees;
}

bool known_loop_catch_up(struct known_loop *loop, uint64_t now_ps)
{
    if (!loop->started || loop->sees) {
        loop->early = loop->started && loop->seen_ps >= now_ps && loop->seen_ps > loop->start_ps;
        return loop->early;
    }
    for (unsigned i = 0; i < loop->poll_count; i++) {
        uint64_t first_ps = loop->start_ps + loop->polls[i].after_ps;
        uint64_t at_ps = first_ps < now_ps ? now_ps - 1 - (now_ps - 1 - first_ps) % loop->iteration_ps : 0;
        if (first_ps < now_ps && (!loop->sees || at_ps > loop->seen_ps)) {
            loop->sees = true;
            loop->seen_ps = at_ps;
            loop->hit = i;
        }
    }
    return loop->sees;
}

uint64_t known_loop_iterations(const struct known_loop *loop)
{
    return (loop->seen_ps - loop->start_ps) / loop->iteration_ps;
}
