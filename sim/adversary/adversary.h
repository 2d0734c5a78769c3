// An adversary: for one run, it answers the question of components "how much later may this be?" with numbers drawn
// from a seed. What a specification leaves open is then used, within bounds, so that programs that rely on more than is
// promised are found (docs/decisions/0019-adversarial.md).
//
// Where a run has none the pointer is NULL, and every answer is "not at all". Components ask at the place where time is
// spent anyway, and cite the clause that lets them be late; what may not happen (a completion before another of its
// queue) they keep by themselves. Each purpose has a random stream of its own, so that a component that asks more often
// does not change what others are told. A seed first chooses what is at work: each purpose is off, seldom or usual, as
// a mistake often shows only while everything else is on time.
//
// Leaves out: what components do with the answer. Times are picoseconds. The owner destroys it after all that ask.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/kernel/status.h"

typedef struct adversary adversary_t;

enum adversary_purpose {
    ADVERSARY_COMPLETION,
    ADVERSARY_EVENT,
    ADVERSARY_RNR,
    ADVERSARY_ACKNOWLEDGE,
    ADVERSARY_REQUEST,
    ADVERSARY_GAP,
    ADVERSARY_DAMAGE_REQUEST,
    ADVERSARY_DAMAGE_ANSWER,
    ADVERSARY_ARRIVAL,
    ADVERSARY_READ,
    ADVERSARY_MEMORY_WRITE,
    ADVERSARY_MEMORY_READ,
    ADVERSARY_CALL,
    ADVERSARY_WAKE,
    ADVERSARY_PURPOSES
};

// What a purpose does when it is usual. most_ps 0: it has no time, it happens or not.
struct adversary_rule {
    const char *name, *doc;
    uint32_t permille; // of the times that it is asked for
    uint64_t most_ps;
};
extern const struct adversary_rule adversary_rules[ADVERSARY_PURPOSES];

enum sim_status adversary_create(uint64_t seed, adversary_t **adversary_out);
void adversary_destroy(adversary_t *adversary); // NULL: nothing
// How often, in thousandths, with this seed.
uint32_t adversary_permille(const adversary_t *adversary, enum adversary_purpose purpose);
// For tests of one purpose: nothing else happens, and it so often.
void adversary_only(adversary_t *adversary, enum adversary_purpose purpose, uint32_t permille);

// Of an adversary that is there; for the two below.
bool adversary_draw(adversary_t *adversary, enum adversary_purpose purpose);
uint64_t adversary_draw_ps(adversary_t *adversary, enum adversary_purpose purpose, uint64_t most_ps);

// Does it happen?
static inline bool adversary_strikes(adversary_t *adversary, enum adversary_purpose purpose)
{
    return adversary != NULL && adversary_draw(adversary, purpose);
}

// How much later: mostly 0, at most most_ps of its rule.
static inline uint64_t adversary_late_ps(adversary_t *adversary, enum adversary_purpose purpose)
{
    return adversary == NULL ? 0 : adversary_draw_ps(adversary, purpose, adversary_rules[purpose].most_ps);
}

// The same for what has a measure of its own.
static inline uint64_t adversary_late_within_ps(adversary_t *adversary, enum adversary_purpose purpose,
                                                uint64_t most_ps)
{
    return adversary == NULL ? 0 : adversary_draw_ps(adversary, purpose, most_ps);
}
