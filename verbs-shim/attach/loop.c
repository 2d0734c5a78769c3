#include "verbs-shim/attach/loop.h"

#include <stddef.h>
#include <string.h>

enum {
    RING = 2 * LOOP_LOOKS_MAX,
    FOUND_ENOUGH = 8,  // rows that ended well, until a loop is trusted
    TURNS_EXACT = 256, // of a row of a loop that is not
    TURNS_SHARE = 16,
    TURN_PS_MIN = 1000
};
static const uint64_t skip_max_ps = 16000000;     // of a loop of which nothing is known; but for a share of a long row
static const uint64_t skip_known_ps = 1000000000; // of one that is trusted

static struct loop_look *look_at(struct loop *loop, unsigned back)
{
    return &loop->looks[(loop->count - 1 - back) % RING];
}

// --- what is known of loops -----------------------------------------------------------------------------------------

static uint64_t key_of(const struct loop_look *looks, unsigned period)
{
    uint64_t key = period;
    for (unsigned i = 0; i < period; i++) {
        key += looks[i].key; // in whatever order
    }
    return key;
}

static struct loop_record *record_find(struct loop *loop, uint64_t key)
{
    for (unsigned i = 0; i < LOOP_RECORDS; i++) {
        struct loop_record *record = &loop->records[i];
        if (record->period != 0 && key_of(record->looks, record->period) == key) {
            return record;
        }
    }
    return NULL;
}

// Of the row's loop; the one that was used longest ago makes room.
static struct loop_record *record_of_row(struct loop *loop)
{
    struct loop_look turn[LOOP_LOOKS_MAX];
    for (unsigned i = 0; i < loop->period; i++) {
        turn[i] = *look_at(loop, loop->period - 1 - i);
    }
    struct loop_record *record = record_find(loop, key_of(turn, loop->period));
    if (record == NULL) {
        record = &loop->records[0];
        for (unsigned i = 1; i < LOOP_RECORDS && record->period != 0; i++) {
            struct loop_record *other = &loop->records[i];
            record = other->period == 0 || loop->uses - other->used > loop->uses - record->used ? other : record;
        }
        *record = (struct loop_record){.period = loop->period};
        memcpy(record->looks, turn, sizeof turn[0] * loop->period);
    }
    record->used = ++loop->uses;
    return record;
}

// Are the last looks of the row a turn of a loop that was always waited in to its end? Then what they cost in it is
// known: before the first one the thread has done something else.
static bool is_trusted_turn(struct loop *loop, unsigned period)
{
    struct loop_look turn[LOOP_LOOKS_MAX];
    for (unsigned i = 0; i < period; i++) {
        turn[i] = *look_at(loop, i);
    }
    const struct loop_record *record = record_find(loop, key_of(turn, period));
    if (record == NULL || record->period != period || record->vain_max != 0 || record->found < FOUND_ENOUGH) {
        return false;
    }
    for (unsigned i = 0; i < period * period; i++) {
        struct loop_look *look = look_at(loop, i / period);
        const struct loop_look *known = &record->looks[i % period];
        look->own_ps = look->key == known->key ? known->own_ps : look->own_ps;
    }
    return true;
}

// --- the row --------------------------------------------------------------------------------------------------------

void loop_end(struct loop *loop, bool well)
{
    if (loop->count == 0) {
        return;
    }
    if (loop->period != 0) {
        struct loop_record *record = record_of_row(loop);
        if (well) {
            record->found += record->found < FOUND_ENOUGH;
            record->found_max = loop->turns > record->found_max ? loop->turns : record->found_max;
        } else {
            // What was skipped in vain last was perhaps not the program's.
            uint64_t turns = loop->turns - loop->skipped + 1;
            record->vain_max = turns > record->vain_max ? turns : record->vain_max;
        }
    } else if (!well) { // it was left before it was known: as single looks are
        for (unsigned i = 0; i < LOOP_RECORDS; i++) {
            struct loop_record *record = &loop->records[i];
            for (unsigned j = 0; j < record->period; j++) {
                bool same = record->looks[j].key == look_at(loop, 0)->key;
                record->vain_max = same && record->vain_max == 0 ? 1 : record->vain_max;
            }
        }
    }
    loop->count = loop->period = 0;
    loop->turns = loop->skipped = 0;
    loop->pause = 0;
}

// Two turns that are the same; of a loop that is trusted one, and the look that begins the next.
static bool is_period(struct loop *loop, unsigned period)
{
    bool same = loop->count >= 2 * period;
    for (unsigned i = 0; i < period && same; i++) {
        same = look_at(loop, i)->key == look_at(loop, i + period)->key;
    }
    bool again = period == 1 || (loop->count > period && look_at(loop, 0)->key == look_at(loop, period)->key);
    return same || (again && is_trusted_turn(loop, period));
}

static void period_find(struct loop *loop)
{
    if (loop->period != 0 && loop->count > loop->period && look_at(loop, 0)->key == look_at(loop, loop->period)->key) {
        loop->turns += (loop->count - 1) % loop->period == 0;
        return;
    }
    loop->period = 0;
    for (unsigned period = 1; period <= LOOP_LOOKS_MAX && loop->period == 0; period++) {
        if (is_period(loop, period)) {
            loop->period = period;
            loop->turns += loop->count / period;
        }
    }
}

static uint64_t turns_allowed(struct loop *loop, uint64_t turn_ps)
{
    const struct loop_record *record = record_of_row(loop);
    bool trusted = record->found >= FOUND_ENOUGH;
    uint64_t exact = trusted ? 0 : TURNS_EXACT;
    exact = 2 * record->vain_max > exact ? 2 * record->vain_max : exact;
    if (loop->turns < exact) {
        return 0;
    }
    uint64_t turns = loop->turns - exact / 2 + 1, most = skip_max_ps / turn_ps + 1;
    most = loop->turns / TURNS_SHARE > most ? loop->turns / TURNS_SHARE : most;
    turns = turns < most ? turns : most;
    uint64_t known = 2 * record->found_max, known_most = skip_known_ps / turn_ps + 1;
    known = known < known_most ? known : known_most;
    return trusted && known > turns ? known : turns;
}

uint64_t loop_look(struct loop *loop, const struct loop_look *look, struct loop_look turn_out[LOOP_LOOKS_MAX],
                   unsigned *period_out)
{
    loop->skipped = 0;
    loop->count++;
    *look_at(loop, 0) = *look;
    period_find(loop);
    *period_out = loop->period;
    if (loop->period == 0) {
        return 0;
    }
    uint64_t turn_ps = 0;
    for (unsigned i = 0; i < loop->period; i++) { // this one, and those that followed it the last time
        turn_out[i] = *look_at(loop, i == 0 ? 0 : loop->period - i);
        turn_ps += turn_out[i].own_ps;
    }
    if (loop->pause > 0) {
        loop->pause--;
        return 0;
    }
    return turn_ps < TURN_PS_MIN ? 0 : turns_allowed(loop, turn_ps);
}

void loop_skipped(struct loop *loop, uint64_t turns, bool told)
{
    // The rest of the turn, and another one: Open MPI's eager RDMA sees its message between two looks, and looks at its
    // queues once more before it does something about it.
    loop->pause = told ? 2 * loop->period : loop->pause;
    loop->turns += turns;
    loop->skipped = turns;
}
