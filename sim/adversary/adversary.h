// An adversary: for one run, it answers components that ask how much later an action may happen, with numbers drawn
// from a seed. So it uses, within bounds, what a specification leaves open, and finds programs that rely on more than
// the specification promises (docs/decisions/0019-adversarial.md).
//
// In a run without an adversary the pointer is NULL, and every answer is "no delay". Components ask at the point where
// time is spent anyway, and cite the clause that allows a delay; they themselves prevent what must not happen (a
// completion before an earlier one of its queue). Each purpose has a random stream of its own, so that a component that
// asks more often does not change the answers to others. A seed first chooses which purposes are active: each is off,
// seldom or usual, because a mistake often shows only while everything else is on time.
//
// Leaves out: the use of the answer by components. Times are picoseconds. The owner destroys it after all components
// that ask.
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

// The effect of a purpose at its usual rate. most_ps 0: it has no duration, it happens or not.
struct adversary_rule {
    const char *name, *doc;
    uint32_t permille; // of the requests
    uint64_t most_ps;
};
extern const struct adversary_rule adversary_rules[ADVERSARY_PURPOSES];

enum sim_status adversary_create(uint64_t seed, adversary_t **adversary_out);
void adversary_destroy(adversary_t *adversary); // adversary may be NULL
// The rate with this seed, in thousandths.
uint32_t adversary_permille(const adversary_t *adversary, enum adversary_purpose purpose);
// For tests of one purpose: only this purpose happens, at the given rate.
void adversary_only(adversary_t *adversary, enum adversary_purpose purpose, uint32_t permille);

// adversary must not be NULL; used by the functions below.
bool adversary_draw(adversary_t *adversary, enum adversary_purpose purpose);
uint64_t adversary_draw_ps(adversary_t *adversary, enum adversary_purpose purpose, uint64_t most_ps);

// Does it happen?
static inline bool adversary_strikes(adversary_t *adversary, enum adversary_purpose purpose)
{
    return adversary != NULL && adversary_draw(adversary, purpose);
}

// The delay: mostly 0, at most most_ps of its rule.
static inline uint64_t adversary_late_ps(adversary_t *adversary, enum adversary_purpose purpose)
{
    return adversary == NULL ? 0 : adversary_draw_ps(adversary, purpose, adversary_rules[purpose].most_ps);
}

// The same for a caller with a maximum of its own.
static inline uint64_t adversary_late_within_ps(adversary_t *adversary, enum adversary_purpose purpose,
                                                uint64_t most_ps)
{
    return adversary == NULL ? 0 : adversary_draw_ps(adversary, purpose, most_ps);
}
