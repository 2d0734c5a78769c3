#include "verbs-shim/attach/loop.h"

#include <stddef.h>
#include <string.h>

enum {
    RING = 2 * LOOP_POLLS_MAX,
    FOUND_ENOUGH = 8,       // streaks that ended well, until a loop is trusted
    ITERATIONS_EXACT = 256, // of a streak of a loop that is not trusted
    ITERATIONS_SHARE = 16,
    CLOCK_EXACT =
        16384,         // readings of clocks: of threads that compete for a word at the same pace one gets it at a time
    CLOCK_SHARE = 128, // for a loop that may wait for a time: it is late by less than 1 %
    ITERATION_PS_MIN = 1000,
    PAGES_VALID_MAX = 63
};
static const uint64_t skip_max_ps = 16000000;     // for an unknown loop; a share of a long streak may be more
static const uint64_t skip_known_ps = 1000000000; // for a trusted loop

static struct loop_poll *poll_at(struct loop *loop, unsigned back)
{
    return &loop->polls[(loop->count - 1 - back) % RING];
}

// --- what is known of loops -----------------------------------------------------------------------------------------

static uint64_t key_of(const struct loop_poll *polls, unsigned period)
{
    uint64_t key = period;
    for (unsigned i = 0; i < period; i++) {
        key += polls[i].key; // in any order
    }
    return key;
}

static struct loop_record *record_find(struct loop *loop, uint64_t key)
{
    for (unsigned i = 0; i < LOOP_RECORDS; i++) {
        struct loop_record *record = &loop->records[i];
        if (record->period != 0 && key_of(record->polls, record->period) == key) {
            return record;
        }
    }
    return NULL;
}

// The record of the streak's loop. If it has none, the least recently used record is replaced.
static struct loop_record *record_of_streak(struct loop *loop)
{
    struct loop_poll iteration[LOOP_POLLS_MAX];
    for (unsigned i = 0; i < loop->period; i++) {
        iteration[i] = *poll_at(loop, loop->period - 1 - i);
    }
    struct loop_record *record = record_find(loop, key_of(iteration, loop->period));
    if (record == NULL) {
        record = &loop->records[0];
        for (unsigned i = 1; i < LOOP_RECORDS && record->period != 0; i++) {
            struct loop_record *other = &loop->records[i];
            record = other->period == 0 || loop->uses - other->used > loop->uses - record->used ? other : record;
        }
        *record = (struct loop_record){.period = loop->period};
        memcpy(record->polls, iteration, sizeof iteration[0] * loop->period);
    }
    record->used = ++loop->uses;
    return record;
}

// Do the last polls of the streak form an iteration of a trusted loop that was never given up? Then their costs in the
// loop are known; the first poll's own cost also contains what the thread did before it.
static bool is_trusted_iteration(struct loop *loop, unsigned period)
{
    struct loop_poll iteration[LOOP_POLLS_MAX];
    for (unsigned i = 0; i < period; i++) {
        iteration[i] = *poll_at(loop, i);
    }
    const struct loop_record *record = record_find(loop, key_of(iteration, period));
    if (record == NULL || record->period != period || record->given_up_max != 0 || record->found < FOUND_ENOUGH) {
        return false;
    }
    for (unsigned i = 0; i < period * period; i++) {
        struct loop_poll *poll = poll_at(loop, i / period);
        const struct loop_poll *known = &record->polls[i % period];
        poll->own_ps = poll->key == known->key ? known->own_ps : poll->own_ps;
    }
    return true;
}

// --- what it reads --------------------------------------------------------------------------------------------------

// A loop reads the same pages until one of them is written (a ring's head moves on). So they are learned again after a
// write, and otherwise more and more rarely (exponential backoff).
static bool pages_are_valid(struct loop *loop)
{
    struct loop_record *record = record_of_streak(loop);
    bool valid = record == loop->pages_of && record->pages_valid > 0;
    record->pages_valid -= valid;
    return valid;
}

void loop_pages_learned(struct loop *loop, const struct loop_pages *pages)
{
    if (loop->period == 0) {
        return;
    }
    struct loop_record *record = record_of_streak(loop);
    const struct loop_pages *before = &record->pages;
    bool same = record == loop->pages_of && before->count == pages->count && before->incomplete == pages->incomplete &&
                memcmp(before->list, pages->list, pages->count * sizeof pages->list[0]) == 0 &&
                memcmp(before->polls, pages->polls, pages->count * sizeof pages->polls[0]) == 0;
    record->pages = *pages;
    record->pages_backoff = same ? 2 * record->pages_backoff + 1 : 0;
    record->pages_backoff = record->pages_backoff < PAGES_VALID_MAX ? record->pages_backoff : PAGES_VALID_MAX;
    record->pages_valid = record->pages_backoff;
    loop->pages_of = record;
}

const struct loop_pages *loop_pages(struct loop *loop)
{
    bool known = loop->period != 0 && loop->pages_known && loop->learning == 0;
    return known ? &record_of_streak(loop)->pages : NULL;
}

bool loop_learns(const struct loop *loop)
{
    return loop->learning != 0;
}

// --- the streak -----------------------------------------------------------------------------------------------------

void loop_end(struct loop *loop, bool well)
{
    if (loop->count == 0) {
        return;
    }
    if (loop->period != 0) {
        struct loop_record *record = record_of_streak(loop);
        if (well) {
            record->found += record->found < FOUND_ENOUGH;
            record->found_max = loop->iterations > record->found_max ? loop->iterations : record->found_max;
        } else {
            // The program would perhaps not have made the iterations that were skipped last, without a write.
            uint64_t iterations = loop->iterations - loop->skipped + 1;
            record->given_up_max = iterations > record->given_up_max ? iterations : record->given_up_max;
        }
    } else if (!well) { // the streak ended before its loop was known, as for single polls
        for (unsigned i = 0; i < LOOP_RECORDS; i++) {
            struct loop_record *record = &loop->records[i];
            for (unsigned j = 0; j < record->period; j++) {
                bool same = record->polls[j].key == poll_at(loop, 0)->key;
                record->given_up_max = same && record->given_up_max == 0 ? 1 : record->given_up_max;
            }
        }
    }
    loop->count = loop->period = 0;
    loop->iterations = loop->skipped = 0;
    loop->pause = loop->learning = loop->skips = 0;
    loop->pages_known = false;
}

void loop_pages_doubt(struct loop *loop)
{
    if (loop->period != 0) {
        struct loop_record *record = record_of_streak(loop);
        record->pages_valid = record->pages_backoff = 0;
    }
}

void loop_stored(struct loop *loop)
{
    unsigned period = loop->period;
    loop_pages_doubt(loop);
    loop_end(loop, true);
    loop->pause = 2 * period;
}

// Two equal iterations; for a trusted loop one iteration, and the poll that begins the next.
static bool is_period(struct loop *loop, unsigned period)
{
    bool same = loop->count >= 2 * period;
    for (unsigned i = 0; i < period && same; i++) {
        same = poll_at(loop, i)->key == poll_at(loop, i + period)->key;
    }
    bool again = period == 1 || (loop->count > period && poll_at(loop, 0)->key == poll_at(loop, period)->key);
    return same || (again && is_trusted_iteration(loop, period));
}

static void period_find(struct loop *loop)
{
    if (loop->period != 0 && loop->count > loop->period && poll_at(loop, 0)->key == poll_at(loop, loop->period)->key) {
        loop->iterations += (loop->count - 1) % loop->period == 0;
        return;
    }
    loop->period = 0;
    for (unsigned period = 1; period <= LOOP_POLLS_MAX && loop->period == 0; period++) {
        if (is_period(loop, period)) {
            loop->period = period;
            loop->iterations += loop->count / period;
            loop->pages_known = false;
        }
    }
}

static uint64_t iterations_allowed(struct loop *loop, uint64_t iteration_ps)
{
    const struct loop_record *record = record_of_streak(loop);
    if (poll_at(loop, 0)->clock) {
        return loop->iterations < CLOCK_EXACT ? 0 : loop->iterations / CLOCK_SHARE;
    }
    bool trusted = record->found >= FOUND_ENOUGH;
    uint64_t exact = trusted ? 0 : ITERATIONS_EXACT;
    exact = 2 * record->given_up_max > exact ? 2 * record->given_up_max : exact;
    if (loop->iterations < exact) {
        return 0;
    }
    uint64_t iterations = loop->iterations - exact / 2 + 1, most = skip_max_ps / iteration_ps + 1;
    most = loop->iterations / ITERATIONS_SHARE > most ? loop->iterations / ITERATIONS_SHARE : most;
    iterations = iterations < most ? iterations : most;
    uint64_t known = 2 * record->found_max, known_most = skip_known_ps / iteration_ps + 1;
    known = known < known_most ? known : known_most;
    return trusted && known > iterations ? known : iterations;
}

uint64_t loop_poll_note(struct loop *loop, const struct loop_poll *poll, struct loop_poll iteration_out[LOOP_POLLS_MAX],
                        unsigned *period_out)
{
    loop->skipped = 0;
    loop->count++;
    *poll_at(loop, 0) = *poll;
    period_find(loop);
    *period_out = loop->period;
    if (loop->period == 0) {
        return 0;
    }
    uint64_t iteration_ps = 0;
    for (unsigned i = 0; i < loop->period; i++) { // this poll, and those that followed it the last time
        iteration_out[i] = *poll_at(loop, i == 0 ? 0 : loop->period - i);
        iteration_ps += iteration_out[i].own_ps;
    }
    bool exact = loop->pause > 0 || loop->learning > 0;
    loop->pause -= loop->pause > 0;
    loop->learning -= loop->learning > 0;
    if (exact) {
        return 0;
    }
    uint64_t iterations = iteration_ps < ITERATION_PS_MIN ? 0 : iterations_allowed(loop, iteration_ps);
    if (iterations > 0 && loop->shares && !loop->pages_known) {
        loop->pages_known = true;
        if (!pages_are_valid(loop)) { // one more iteration without a skip
            loop->learning = loop->period;
            return 0;
        }
    }
    return iterations;
}

void loop_skipped(struct loop *loop, uint64_t iterations, bool written)
{
    // The rest of the iteration, and another one: Open MPI's eager RDMA sees its message between two polls, and polls
    // its queues once more before it handles the message.
    loop->pause = written ? 2 * loop->period : loop->pause;
    loop->iterations += iterations;
    loop->skipped = iterations;
    loop->skips += !written && iterations > 0;
    if (!written && iterations > 0 && (loop->skips & (loop->skips - 1)) == 0) {
        loop->pages_known = false; // the loop goes on for long, and may have begun to read other pages
    }
}
