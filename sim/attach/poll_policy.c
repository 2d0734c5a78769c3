#include "sim/attach/poll_policy.h"

#include <string.h>

// For a region: the count of unrelated writes from which it no longer counts as read, how much a used write subtracts
// from the count, and its lower limit.
enum { UNRELATED_ENOUGH = 16, USED_WEIGHT = 64, UNRELATED_LEAST = -64 };
// A thread that only polls and finds nothing may also have written to shared memory. A loop notices this late, by at
// most an eighth of the time that it has waited.
enum { OTHERS_SHARE = 8 };
static const uint64_t iteration_max_ps = UINT64_C(1000000000), skip_max_ps = UINT64_C(1000000000000);

struct poll_loop poll_loop_of(const struct attach_args_poll *args, uint64_t own_ps, uint64_t least_ps)
{
    const struct attach_polled *polled = &args->polled;
    struct poll_loop loop = {.iteration_ps = args->iteration_ps, .flags = args->flags, .hit = ATTACH_POLLS_MAX};
    if (polled->word_count != 0) {
        loop.iteration_ps = own_ps;
        loop.word_count = polled->word_count <= ATTACH_RANGES_MAX ? polled->word_count : 0;
        memcpy(loop.words, polled->words, loop.word_count * sizeof loop.words[0]);
        loop.any_pinned = polled->any_pinned != 0 || loop.word_count == 0;
    } else {
        loop.poll_count = polled->poll_count <= ATTACH_POLLS_MAX ? polled->poll_count : 0;
        memcpy(loop.polls, polled->polls, loop.poll_count * sizeof loop.polls[0]);
        loop.any_pinned = loop.poll_count == 0;
    }
    loop.iteration_ps = loop.iteration_ps > least_ps ? loop.iteration_ps : least_ps;
    loop.iteration_ps = loop.iteration_ps < iteration_max_ps ? loop.iteration_ps : iteration_max_ps;
    for (unsigned i = 0; i < loop.poll_count; i++) {
        loop.any_pinned = loop.any_pinned || loop.polls[i].bus_address == 0;
        loop.polls[i].after_ps %= loop.iteration_ps;
    }
    return loop;
}

void poll_loop_continue(struct poll_loop *loop, const struct poll_loop *before, bool goes_on, bool new_memory,
                        uint64_t now_ps)
{
    loop->others = before->others || new_memory;
    loop->poll_seen = goes_on && before->poll_seen && before->region_polls != 0;
    loop->region = before->region;
    loop->region_polls = goes_on ? before->region_polls : 0;
    loop->began_ps = goes_on ? before->began_ps : now_ps;
    loop->others_ps = goes_on ? before->others_ps : now_ps;
}

// --- what is written ------------------------------------------------------------------------------------------------

static bool word_hit(const struct poll_loop *loop, const struct poll_write *write)
{
    bool hit = false;
    for (unsigned i = 0; i < loop->word_count && !hit; i++) {
        const struct attach_word *word = &loop->words[i];
        hit = (word->pinned != 0) == write->pinned &&
              (word->address - write->address < write->bytes || write->address - word->address < word->bytes);
    }
    return hit;
}

static bool poll_hit(struct poll_loop *loop, const struct poll_write *write)
{
    for (unsigned i = 0; i < loop->poll_count; i++) {
        if (loop->polls[i].bus_address - write->address < write->bytes) {
            loop->hit = loop->seen ? loop->hit : i; // the first write decides
            return true;
        }
    }
    return false;
}

static bool sees(struct poll_loop *loop, const struct poll_write *write)
{
    if (loop->word_count != 0) {
        return word_hit(loop, write) || (loop->any_pinned && write->pinned && !write->ignored);
    }
    if (write->pinned && poll_hit(loop, write)) {
        loop->poll_seen = true;
        return true;
    }
    if (write->ignored) {
        return false;
    }
    const struct poll_region *region = write->region;
    bool same = region != NULL && loop->region_polls != 0 && loop->region.number == region->number;
    if (region != NULL && !same) {
        loop->region = *region;
        loop->region_polls = 2 * loop->poll_count + 1; // as in loop_skipped (verbs-shim/attach/loop.c)
    }
    return region == NULL || write->unrelated < UNRELATED_ENOUGH || (write->pinned && loop->any_pinned);
}

static bool is_own(const struct poll_loop *loop, const struct poll_write *write)
{
    uint64_t word = loop->poll_count != 0 ? loop->polls[0].bus_address : 0;
    return word == 0 ? write->event : write->pinned && word - write->address < write->bytes;
}

bool poll_loop_sees(struct poll_loop *loop, const struct poll_write *write)
{
    bool seen = sees(loop, write);
    loop->own = loop->own || (seen && is_own(loop, write));
    loop->seen = loop->seen || seen;
    return seen;
}

bool poll_loop_others(struct poll_loop *loop, bool polled_empty, uint64_t now_ps)
{
    if (polled_empty && (now_ps - loop->others_ps) * OTHERS_SHARE < now_ps - loop->began_ps) {
        return false;
    }
    loop->others_ps = now_ps;
    return true;
}

// --- unrelated writes -----------------------------------------------------------------------------------------------

// A write is unrelated if the loop has polled everything since then and goes on. If one of the loop's polls names what
// was written, the thread may act because of that poll, so nothing is learned about the region.
enum poll_outcome poll_loop_outcome(struct poll_loop *loop, bool goes_on)
{
    if (loop->region_polls == 0 || (goes_on && --loop->region_polls != 0)) {
        return POLL_OUTCOME_NONE;
    }
    loop->region_polls = 0;
    return goes_on ? POLL_OUTCOME_UNRELATED : loop->poll_seen ? POLL_OUTCOME_NONE : POLL_OUTCOME_USED;
}

int poll_region_note(int unrelated, enum poll_outcome outcome)
{
    switch (outcome) {
    case POLL_OUTCOME_UNRELATED:
        return unrelated + (unrelated < UNRELATED_ENOUGH);
    case POLL_OUTCOME_USED:
        return unrelated > UNRELATED_LEAST ? unrelated - USED_WEIGHT : unrelated;
    case POLL_OUTCOME_NONE:
        break;
    }
    return unrelated;
}

// --- fast-forward ---------------------------------------------------------------------------------------------------

uint64_t poll_loop_end_ps(const struct poll_loop *loop, uint64_t start_ps, uint64_t iterations)
{
    uint64_t most = skip_max_ps / loop->iteration_ps;
    // Nothing else ends a loop over words.
    return loop->word_count != 0 ? UINT64_MAX
                                 : start_ps + (iterations < most ? iterations : most) * loop->iteration_ps;
}

// Start of the iteration whose poll `hit` sees what came at now_ps. Iterations begin at start_ps.
static uint64_t iteration_seen_ps(const struct poll_loop *loop, unsigned hit, uint64_t start_ps, uint64_t now_ps)
{
    uint64_t after_ps = hit < loop->poll_count ? loop->polls[hit].after_ps : 0, elapsed_ps = now_ps - start_ps;
    uint64_t iterations =
        elapsed_ps <= after_ps ? 0 : (elapsed_ps - after_ps + loop->iteration_ps - 1) / loop->iteration_ps;
    return start_ps + iterations * loop->iteration_ps;
}

// The earliest poll after which a changed page is read.
static unsigned stored_hit(const struct poll_loop *loop, uint64_t start_ps, uint64_t now_ps)
{
    unsigned hit = ATTACH_POLLS_MAX;
    uint64_t first_ps = UINT64_MAX;
    for (unsigned poll = 0; poll < loop->poll_count; poll++) {
        uint64_t read_ps = iteration_seen_ps(loop, poll, start_ps, now_ps) + loop->polls[poll].after_ps;
        if ((loop->stored >> poll & 1) != 0 && read_ps < first_ps) {
            first_ps = read_ps;
            hit = poll;
        }
    }
    return hit;
}

uint64_t poll_loop_leave(struct poll_loop *loop, uint64_t start_ps, uint64_t now_ps, bool notified)
{
    if (!notified) {
        loop->hit = ATTACH_POLLS_MAX;
    } else if (!loop->seen && loop->stored != 0) {
        loop->hit = stored_hit(loop, start_ps, now_ps);
    }
    uint64_t seen_ps = now_ps > start_ps ? iteration_seen_ps(loop, loop->hit, start_ps, now_ps) : start_ps;
    loop->skipped = (seen_ps - start_ps) / loop->iteration_ps;
    return seen_ps;
}
