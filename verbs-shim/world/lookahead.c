// Looks ahead from an empty poll (verbs-shim/attach/ahead.h). The program is interpreted from the poll's return on, and
// further polls are taken to find nothing. A poll at the same place with the same registers, and with the same contents
// of all memory that was read before it was written, means that the program repeats what was interpreted, until somebody
// changes what it reads (lookahead_cycle.c). A loop that was found is remembered (lookahead_known.c).
#include "verbs-shim/world/lookahead_internal.h"
#include "verbs-shim/world/world.h"

enum {
    POLLS_FIRST = 8,
    POLLS_MAX = 1 << 30,
    FEW_POLLS = 16,
    UNKNOWN_FIRST = 4,
    SEARCHES_MAX = 15,
    VAIN_MAX = 31,
    ENDS_MAX = 1023,
    WIDER_MAX = 255,
    ENOUGH_POLLS = 64
};

// --- looking ------------------------------------------------------------------------------------------------------------

// What is known of a poll. wanted: how many polls are worth looking ahead of: four times as many if it came to them without
// an event, half as many if an event came soon. What was in vain is tried more and more rarely (exponential backoff).
struct backoff {
    unsigned length, skips;
};
static struct site {
    uint64_t wanted;
    struct lookahead_candidate cycle; // with which counters it was found to repeat the last time
    uint64_t told;                    // of how many polls the last search told
    bool timed;                       // its loop reads clocks
    unsigned unknown;
    unsigned lead;            // polls after which a loop began the last time; 0: it did not
    struct backoff leads;     // of finding that out again
    struct backoff searches;  // of a search for a better cycle than the last one
    struct backoff aperiodic; // of looks that came to no cycle
    struct backoff wider;     // of finding the other values with which a loop does the same
    struct backoff vain;      // of looks that told nothing of use
    unsigned looks_in_vain;
    struct backoff ends; // and of those that told that this poll is the last one
} sites[LOOKAHEAD_SITES];

// Whose time that is has just left a loop: it makes a poll or two before it does something else, which stand for themselves.
static const uint64_t *has_left;

// Polls by their keys. Which of them has which place follows from the order in which they came: keys are other ones where
// memory is laid out otherwise.
static struct {
    uint64_t key, used; // used: when, in looks; 0: never
} places[LOOKAHEAD_SITES];

// That of the poll that was not met for longest, and in whose loops no thread is. LOOKAHEAD_SITES: threads are in all.
static unsigned place_free(void)
{
    unsigned oldest = LOOKAHEAD_SITES;
    for (unsigned i = 0; i < LOOKAHEAD_SITES; i++) {
        bool older = oldest == LOOKAHEAD_SITES || places[i].used < places[oldest].used;
        oldest = older && !lookahead_known_is_used(i) ? i : oldest;
    }
    return oldest;
}

// LOOKAHEAD_SITES: it has none.
static unsigned place_of(uint64_t key)
{
    static uint64_t looks;
    unsigned place = 0;
    while (place < LOOKAHEAD_SITES && (places[place].used == 0 || places[place].key != key)) {
        place++;
    }
    if (place == LOOKAHEAD_SITES && (place = place_free()) < LOOKAHEAD_SITES) {
        places[place].key = key;
        sites[place] = (struct site){.wanted = POLLS_FIRST, .told = UINT64_MAX};
        lookahead_known_forget(place);
    }
    if (place < LOOKAHEAD_SITES) {
        places[place].used = ++looks;
    }
    return place;
}

static bool skips(struct backoff *backoff)
{
    bool any = backoff->skips > 0;
    backoff->skips -= any;
    return any;
}

// The next time it skips twice as many. None at first: the first time in vain may be the end of a loop.
static void backs_off(struct backoff *backoff, unsigned most)
{
    backoff->skips = backoff->length;
    backoff->length = backoff->length < most ? 2 * backoff->length + 1 : backoff->length;
}

static void polls_more(struct site *site)
{
    if (site->wanted < POLLS_MAX) {
        site->wanted *= 4;
    }
}

static void polls_were(struct site *site, uint64_t made, uint64_t known)
{
    if (made >= known) {
        polls_more(site);
    } else if (made < site->wanted / 4) {
        site->wanted /= 2;
    }
}

static void stands_for_itself(struct attach_ahead *ahead, uint64_t polls)
{
    attach_ahead_begin(ahead, ATTACH_AHEAD_ENDS);
    ahead->count = (unsigned)polls;
}

// Of a loop that does something else every eighth time, a short cycle tells little, and a longer one all.
static uint64_t enough_polls(const struct site *site, uint64_t wanted)
{
    uint64_t enough = site->told / 2 < ENOUGH_POLLS ? site->told / 2 : ENOUGH_POLLS;
    enough = enough < FEW_POLLS ? FEW_POLLS : enough;
    return wanted < enough ? wanted : enough;
}

static void searched(struct site *site, const struct attach_ahead *ahead, const struct lookahead_candidate *found)
{
    bool repeats = ahead->kind == ATTACH_AHEAD_REPEATS;
    site->told = repeats ? lookahead_told(ahead) : site->told;
    if (repeats && found->polls == site->cycle.polls) {
        backs_off(&site->searches, SEARCHES_MAX);
    } else {
        site->searches = (struct backoff){0};
    }
    if (repeats) {
        site->aperiodic.length /= 2;
        site->cycle = *found;
    } else if (ahead->count < ATTACH_AHEAD_POLLS) {
        site->aperiodic.length = 0;
    } else {
        backs_off(&site->aperiodic, SEARCHES_MAX);
    }
}

static void cycle_find(const struct attach_caller *caller, uint64_t key, const struct attach_borders *borders,
                       struct site *site, struct attach_ahead *ahead, struct attach_known *known)
{
    static bool led; // the last look has led here
    led = !led && site->lead != 0 && skips(&site->leads);
    if (led) {
        stands_for_itself(ahead, site->lead);
        return;
    }
    // A wait lasts as long again as it has.
    uint64_t polls = site->wanted > borders->waited ? site->wanted : borders->waited;
    const struct lookahead_wanted wanted = {polls, enough_polls(site, polls)};
    if (site->cycle.polls != 0 && lookahead_cycle_again(caller, borders, &site->cycle, ahead, known)) {
        uint64_t told = lookahead_told(ahead);
        if (told >= wanted.enough) {
            return;
        }
        if (skips(&site->searches)) {
            if (told < FEW_POLLS) {
                stands_for_itself(ahead, told);
            }
            return;
        }
    }
    if (skips(&site->aperiodic)) {
        stands_for_itself(ahead, ATTACH_AHEAD_POLLS);
        return;
    }
    struct lookahead_candidate found;
    if (lookahead_cycle(caller, key, borders, &wanted, ahead, known, &found)) {
        site->lead = ahead->count;
        backs_off(&site->leads, SEARCHES_MAX);
    } else {
        site->lead = site->leads.length = 0;
    }
    searched(site, ahead, &found);
    bool unsteady = ahead->kind == ATTACH_AHEAD_REPEATS && !ahead->steady;
    if (unsteady || ahead->kind == ATTACH_AHEAD_UNKNOWN) {
        backs_off(&site->vain, VAIN_MAX);
        site->vain.skips = site->vain.length; // also the first time
        // Looks are in step with no cycle of the program.
        site->vain.skips -= site->vain.skips > 2 ? site->looks_in_vain++ % 3 : 0;
    } else {
        site->vain.length = 0;
    }
    if (ahead->kind == ATTACH_AHEAD_ENDS && ahead->count == 0) {
        backs_off(&site->ends, ENDS_MAX);
    } else {
        site->ends.length = 0;
    }
    // Once only, the dynamic linker may look for a function.
    if (ahead->kind == ATTACH_AHEAD_UNKNOWN && site->unknown < UNKNOWN_FIRST) {
        site->unknown++;
        ahead->kind = ATTACH_AHEAD_ENDS;
    }
}

// The loop was found and kept. It may have been known already, but for other values of what it compares.
static void widen(const struct attach_caller *caller, const struct attach_borders *borders, struct site *site,
                  struct attach_known *known)
{
    struct lookahead_candidate wider = {.polls = known->ahead.count};
    bool may = !known->bounds.asked && !skips(&site->wider);
    struct attach_known *other = may ? lookahead_known_near(known, &wider.varies) : NULL;
    if (other == NULL) {
        return;
    }
    for (unsigned i = 0; i < known->ahead.count; i++) {
        wider.period_ps += known->ahead.polls[i].own_ps;
    }
    const struct lookahead_varies varies = known->varies;
    const struct lookahead_bounds bounds = known->bounds;
    struct attach_ahead ahead;
    known->varies = wider.varies;
    if (lookahead_vary(caller, borders, wider.polls, wider.period_ps, &ahead, known) &&
        lookahead_is_known_with_others(&known->varies)) {
        lookahead_known_widened(known, other);
        site->cycle = wider;
        site->wider.length = 0;
    } else {
        known->varies = varies;
        known->bounds = bounds;
        backs_off(&site->wider, WIDER_MAX);
    }
}

static void look(const struct attach_caller *caller, uint64_t key, const struct attach_borders *borders,
                 struct attach_ahead *ahead_out)
{
    uint64_t iterations;
    unsigned place = place_of(key);
    if (place == LOOKAHEAD_SITES) {
        attach_ahead_begin(ahead_out, ATTACH_AHEAD_UNKNOWN);
        return;
    }
    struct attach_known *known = lookahead_known_find(place, caller, borders, &iterations);
    if (known != NULL) {
        lookahead_known_enter(known, iterations, ahead_out);
        return;
    }
    struct site *site = &sites[place];
    bool unknown_time = site->timed && !lookahead_time_is_known(borders); // the next poll will tell
    if (unknown_time || skips(&site->ends)) {                             // a poll may always stand for itself
        stands_for_itself(ahead_out, 0);
        return;
    }
    if (has_left == borders->now_ps) {
        has_left = NULL;
        stands_for_itself(ahead_out, 1);
        return;
    }
    known = skips(&site->vain) ? NULL : lookahead_known_free(place);
    if (known == NULL) {
        attach_ahead_begin(ahead_out, ATTACH_AHEAD_UNKNOWN);
        return;
    }
    cycle_find(caller, key, borders, site, ahead_out, known);
    if (ahead_out->kind == ATTACH_AHEAD_REPEATS) {
        site->timed = known->bounds.timed;
        if (site->timed && !lookahead_time_is_known(borders)) {
            stands_for_itself(ahead_out, 0);
            return;
        }
        if (lookahead_known_keep(known, caller, ahead_out, borders)) {
            widen(caller, borders, site, known);
            lookahead_known_enter(known, ahead_out->iterations, ahead_out);
        } else {
            ahead_out->kind = ATTACH_AHEAD_UNKNOWN;
            ahead_out->reason = "too many words";
        }
    }
}

static enum attach_left_how leave(struct attach_known *known, struct attach_caller *caller,
                                  const struct attach_borders *borders, const struct attach_left_at *at,
                                  struct attach_resume *resume_out, enum attach_left_by *by_out,
                                  struct attach_left_makes *makes_out)
{
    lookahead_known_leave(known);
    if (at->poll > known->ahead.count) {
        return ATTACH_LEFT_HERE;
    }
    struct site *site = &sites[known->place];
    bool is_long = known->given > POLLS_MAX;
    polls_were(site, at->iterations * known->ahead.count + at->poll,
               is_long ? UINT64_MAX : known->given * known->ahead.count);
    has_left = borders->now_ps;
    return lookahead_leave(known, caller, borders, at, resume_out, by_out, makes_out);
}

// --- from outside ---------------------------------------------------------------------------------------------------------

// A thread that computes for long is examined (spin.c): not while it looks ahead, as it takes the time of the machine.
static bool runs;

bool world_lookahead_runs(void)
{
    return runs;
}

static void look_ahead(const struct attach_caller *caller, uint64_t key, const struct attach_borders *borders,
                       struct attach_ahead *ahead_out)
{
    runs = true;
    unsigned before = lookahead_effort();
    look(caller, key, borders, ahead_out);
    ahead_out->effort = lookahead_effort() - before;
    runs = false;
}

static enum attach_left_how left(struct attach_known *known, struct attach_caller *caller,
                                 const struct attach_borders *borders, const struct attach_left_at *at,
                                 struct attach_resume *resume_out, enum attach_left_by *by_out,
                                 struct attach_left_makes *makes_out)
{
    runs = true;
    enum attach_left_how how = leave(known, caller, borders, at, resume_out, by_out, makes_out);
    runs = false;
    return how;
}

void world_lookahead_start(void)
{
    static const struct attach_look_ahead_ops ops = {look_ahead, left, lookahead_words_give_back,
                                                     lookahead_words_differ};
    lookahead_library_start();
    attach_ahead_by(&ops);
}
