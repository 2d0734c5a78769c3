#include "play.h"

#include <string.h>

#include "verbs-shim/attach/ahead.h"
#include "verbs-shim/world/clock_calls.h"
#include "verbs-shim/world/lookahead_internal.h"
#include "verbs-shim/world/tsc_jump.h"
#include "verbs-shim/world/tsc_scan.h"
#include "verbs-shim/world/world.h"

enum { CLOCK_READ_PS = 300, POLL_CALL_PS = 1700, FUNCTION_PS = 500, STATE_PS = 100, WORK_PS = 200000 };

static struct play *now; // is played
static const struct attach_look_ahead_ops *ops;

// --- what the look ahead knows of the process ---------------------------------------------------------------------------

const struct attach_environment *attach_environment(void)
{
    static const struct attach_environment environment = {.clock_read_ps = CLOCK_READ_PS, .tsc_hz = 2600000000u};
    return &environment;
}

void attach_ahead_by(const struct attach_look_ahead_ops *given)
{
    ops = given;
}

void attach_resume(struct attach_caller *caller)
{
    (void)caller; // the poll has put it where it goes on
}

bool world_shared_has(uint64_t address)
{
    return address >= (uintptr_t)&now->memory.flag && address < (uintptr_t)&now->memory.clock;
}

bool world_clock_is_simulated(clockid_t clock)
{
    return clock == CLOCK_MONOTONIC;
}

struct timespec world_clock_at(clockid_t clock, uint64_t now_ps)
{
    (void)clock;
    return (struct timespec){.tv_sec = (time_t)(now_ps / 1000000000000),
                             .tv_nsec = (long)(now_ps % 1000000000000 / 1000)};
}

uint64_t world_tsc_of(uint64_t now_ps)
{
    return now_ps / 1000;
}

// No loop comes to these.
void world_tsc_entry(void)
{
}

unsigned world_tsc_scan_bytes(uintptr_t at)
{
    (void)at;
    return 0;
}

bool world_tsc_scan_is_cpuid(uintptr_t at)
{
    (void)at;
    return false;
}

bool lookahead_ask(struct lookahead_run *run)
{
    (void)run;
    return false;
}

bool lookahead_call_may_poll(uint64_t number)
{
    (void)number;
    return false;
}

void lookahead_library_start(void)
{
}

const uintptr_t *lookahead_library_entries(void)
{
    static const uintptr_t none[LOOKAHEAD_LIBRARY_FUNCTIONS];
    return none;
}

bool lookahead_library_at(const struct interpret_state *state, bool *known_out, uint64_t *result_out)
{
    (void)state, (void)known_out, (void)result_out;
    return false;
}

// --- what the loop calls ------------------------------------------------------------------------------------------------

static void clock_read(int clock, struct timespec *to)
{
    struct loop_memory *memory = &now->memory;
    memory->tail_ps += CLOCK_READ_PS;
    *to = world_clock_at(clock, memory->now_ps + memory->tail_ps);
}

const struct world_clock_entry world_clock_entries[WORLD_CLOCK_ENTRIES] = {
    {(uintptr_t)clock_read, WORLD_CLOCK_TIMESPEC}};

static unsigned next_event;

// What devices have done until then, at a poll, or (not plain) at a call, which cannot say that it has found something. true:
// it has.
static bool devices_run(uint64_t until_ps, bool plain)
{
    bool finds = false;
    while (!finds && next_event < now->event_count && now->events[next_event].at_ps <= until_ps &&
           (plain || now->events[next_event].kind != PLAY_FINDS)) {
        const struct play_event *event = &now->events[next_event++];
        if (event->kind == PLAY_WRITES) {
            memcpy((char *)now->memory.device + 4 * event->half, &event->value, sizeof event->value);
        }
        finds = event->kind == PLAY_FINDS;
    }
    return finds;
}

static uint64_t mixed(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * 0x100000001b3 ^ hash >> 29;
}

// A poll has ended.
static void poll_note(uint64_t key, const struct attach_caller *caller)
{
    const uint64_t registers[] = {caller->rbp, caller->r12, caller->r13, caller->r14, caller->r15};
    const uint64_t *words = (const uint64_t *)&now->memory;
    uint64_t hash = 0xcbf29ce484222325;
    for (unsigned i = 0; i < sizeof registers / sizeof registers[0]; i++) {
        hash = mixed(hash, registers[i]);
    }
    for (unsigned i = 0; i < sizeof now->memory / sizeof words[0]; i++) {
        hash = mixed(hash, words[i]);
    }
    if (now->count < PLAY_POLLS) {
        now->polls[now->count] = (struct play_poll){key, now->memory.now_ps, hash};
    }
    now->count++;
    now->carried_out++;
}

// --- a loop that is known (verbs-shim/attach/empty_polls.c, ahead.c) ------------------------------------------------------

static struct {
    unsigned polls, made;
    struct attach_left_makes makes;
    uint64_t at_ps;
    bool finds;
} once_more;
static unsigned polls_ahead; // that stand for themselves
static uint64_t waited;      // polls that found nothing

extern void play_poll(void);
extern void play_function(void);
extern void play_poll_call(void);
static uint64_t poll_from(uint64_t key, uint64_t word, struct attach_caller *caller) __attribute__((used));
static uint64_t function_from(uint64_t key, uint64_t word, uint64_t unused, struct attach_caller *caller)
    __attribute__((used));
static uint64_t poll_call_from(uint64_t flags, uint64_t key, struct attach_caller *caller) __attribute__((used));
ATTACH_CALLER_ENTRY(play_poll, "rdx", poll_from);
ATTACH_CALLER_ENTRY(play_function, "rcx", function_from);
ATTACH_CALLER_ENTRY(play_poll_call, "rdx", poll_call_from);

// What the library pays for a poll of this word, which is its state.
static uint64_t function_ps(uint64_t word)
{
    return FUNCTION_PS + STATE_PS * (*(const uint64_t *)word % 4); // NOLINT(performance-no-int-to-ptr)
}

static enum attach_idle function_is_idle(const uint64_t arguments[3], const struct attach_caller *caller,
                                         const struct attach_costs *costs, struct attach_ahead_poll *poll_out)
{
    (void)caller, (void)costs;
    poll_out->key = arguments[0];
    poll_out->word = poll_out->state = arguments[1];
    poll_out->function_ps = function_ps(arguments[1]);
    poll_out->until_ps = now->memory.deadline_ps;
    return ATTACH_IDLE;
}

static struct attach_borders borders_of(void)
{
    struct loop_memory *memory = &now->memory;
    static struct attach_poll_function function;
    function = (struct attach_poll_function){(uintptr_t)play_function, function_is_idle};
    return (struct attach_borders){.poll = (uintptr_t)play_poll,
                                   .poll_call = (uintptr_t)play_poll_call,
                                   .poll_call_ps = POLL_CALL_PS,
                                   .functions = &function,
                                   .function_count = 1,
                                   .tail_ps = &memory->tail_ps,
                                   .now_ps = &memory->now_ps,
                                   .found = (bool *)&memory->found,
                                   .entry_count = (_Atomic uint32_t *)&memory->entry_count,
                                   .alone = now->alone,
                                   .waited = waited};
}

// The poll that ends at that time or is the first one behind it.
static struct attach_left_at left_at(const struct attach_ahead *ahead, uint64_t until_ps)
{
    uint64_t period_ps = 0, from_ps = now->memory.now_ps;
    for (unsigned i = 0; i < ahead->count; i++) {
        period_ps += ahead->polls[i].own_ps;
    }
    uint64_t whole = until_ps > from_ps ? (until_ps - from_ps - 1) / period_ps : 0;
    struct attach_left_at at = {.iterations = whole < ahead->iterations ? whole : ahead->iterations};
    at.at_ps = from_ps + at.iterations * period_ps;
    while (at.iterations < ahead->iterations && at.at_ps < until_ps && at.poll < ahead->count) {
        at.at_ps += ahead->polls[at.poll++].own_ps;
    }
    at.iterations += at.poll == ahead->count;
    at.poll = at.poll == ahead->count ? 0 : at.poll;
    return at;
}

// Does the loop read what the device writes?
static bool is_watched(const struct attach_ahead *ahead, const struct play_event *event)
{
    const uint64_t address = (uintptr_t)&now->memory.device[event->half / 2];
    const uint64_t mask = UINT64_C(0xffffffff) << 32 * (event->half % 2);
    bool watched = event->kind != PLAY_WRITES;
    for (unsigned i = 0; i < ahead->word_count; i++) {
        watched = watched || (ahead->words[i].address == address && (ahead->words[i].mask & mask) != 0);
    }
    for (unsigned i = 0; i < ahead->count; i++) {
        watched = watched || ahead->polls[i].word == address;
    }
    return watched;
}

// The loop goes on until a device does what it sees.
static struct attach_left_at loop_run(const struct attach_ahead *ahead, bool *finds_out)
{
    struct attach_left_at at;
    bool seen;
    do {
        uint64_t until_ps = next_event < now->event_count ? now->events[next_event].at_ps : UINT64_MAX;
        at = left_at(ahead, until_ps > now->memory.now_ps ? until_ps : now->memory.now_ps + 1);
        seen = until_ps > at.at_ps || is_watched(ahead, &now->events[next_event]);
        *finds_out =
            devices_run(seen ? at.at_ps : until_ps, ahead->polls[(at.poll > 0 ? at.poll : ahead->count) - 1].plain);
    } while (!seen);
    return at;
}

static void resume(const struct attach_resume *to, uint64_t key, struct attach_caller *caller)
{
    for (uint64_t i = 0; i < to->count; i++) {
        uint64_t *word = (uint64_t *)to->words[i].address; // NOLINT(performance-no-int-to-ptr)
        *word = to->words[i].value;
    }
    // A library's function is entered again, and returns at once.
    bool entered = to->rip == (uintptr_t)play_function;
    const uint64_t *returns_to = (const uint64_t *)to->rsp; // NOLINT(performance-no-int-to-ptr)
    uint64_t at = entered ? *returns_to : to->rip, rsp = to->rsp + (entered ? sizeof *returns_to : 0);
    now->lost += rsp != caller->rsp;
    *caller = (struct attach_caller){to->rbx, to->rbp, to->r12, to->r13, to->r14, to->r15, rsp, at};
    ((uint64_t *)caller->rsp)[-1] = at; // NOLINT(performance-no-int-to-ptr): to where the poll returns
    poll_note(key, caller);
}

// The poll stands for itself.
static void known_forget(const struct attach_ahead *ahead)
{
    static struct attach_resume nowhere;
    const struct attach_borders borders = borders_of();
    struct attach_caller nobody = {0};
    struct attach_left_makes makes;
    enum attach_left_by by;
    (void)ops->left(ahead->known, &nobody, &borders, &(struct attach_left_at){0}, &nowhere, &by, &makes);
}

static bool known_play(const struct attach_ahead *ahead, struct attach_caller *caller)
{
    static struct attach_resume to;
    bool finds;
    const struct attach_left_at at = loop_run(ahead, &finds);
    const struct attach_borders borders = borders_of();
    struct attach_left_makes makes;
    enum attach_left_by by;
    if (at.iterations + at.poll == 0) {
        known_forget(ahead);
        return false;
    }
    now->count += (unsigned)(at.iterations * ahead->count + at.poll) - 1;
    waited += at.iterations * ahead->count + at.poll;
    now->memory.now_ps = at.at_ps;
    switch (ops->left(ahead->known, caller, &borders, &at, &to, &by, &makes)) {
    case ATTACH_LEFT_MAKES:
        once_more.makes = makes;
        once_more.polls = makes.polls;
        once_more.made = 0;
        once_more.at_ps = at.at_ps;
        once_more.finds = finds;
        now->memory.now_ps = makes.from_ps;
        return false;
    case ATTACH_LEFT_ELSEWHERE:
        now->lost += by == ATTACH_LEFT_CLOCK;
        resume(&to, by == ATTACH_LEFT_CALL ? to.rsi : to.rdi, caller);
        return finds;
    default:
        now->lost++;
        return finds;
    }
}

// It makes the loop's last polls once more.
static bool poll_once_more(uint64_t key, const struct attach_caller *caller)
{
    struct loop_memory *memory = &now->memory;
    memory->tail_ps = 0;
    if (--once_more.polls > 0) {
        memory->now_ps += once_more.makes.list[once_more.made++ % once_more.makes.count].own_ps;
        return false;
    }
    ops->made();
    memory->now_ps = once_more.at_ps;
    poll_note(key, caller);
    return once_more.finds;
}

static bool look_ahead(uint64_t key, struct attach_caller *caller)
{
    struct attach_ahead ahead;
    const struct attach_borders borders = borders_of();
    ops->look(caller, key, &borders, &ahead);
    if (ahead.kind == ATTACH_AHEAD_REPEATS && (ahead.steady || now->alone)) {
        return known_play(&ahead, caller);
    }
    if (ahead.kind == ATTACH_AHEAD_REPEATS) {
        known_forget(&ahead);
    } else if (ahead.kind == ATTACH_AHEAD_ENDS) {
        polls_ahead += ahead.count;
    }
    return false;
}

static bool poll_make(uint64_t key, bool plain, struct attach_caller *caller)
{
    struct loop_memory *memory = &now->memory;
    if (once_more.polls > 0) {
        return poll_once_more(key, caller);
    }
    memory->now_ps += memory->tail_ps;
    memory->tail_ps = 0;
    bool finds = devices_run(memory->now_ps, plain);
    poll_note(key, caller);
    waited = finds ? 0 : waited + 1;
    polls_ahead = finds ? 0 : polls_ahead;
    if (finds || !now->ahead) {
        return finds;
    }
    if (polls_ahead > 0) {
        polls_ahead--;
        return false;
    }
    return look_ahead(key, caller);
}

static uint64_t poll_from(uint64_t key, uint64_t word, struct attach_caller *caller)
{
    (void)word;
    return poll_make(key, true, caller);
}

static uint64_t function_from(uint64_t key, uint64_t word, uint64_t unused, struct attach_caller *caller)
{
    struct loop_memory *memory = &now->memory;
    (void)unused;
    if (once_more.polls > 0) {
        return poll_once_more(key, caller);
    }
    memory->tail_ps += function_ps(word);
    if (memory->now_ps + memory->tail_ps >= memory->deadline_ps) {
        memory->deadline_ps += WORK_PS;
        memory->served++;
    }
    return poll_make(key, true, caller);
}

static uint64_t poll_call_from(uint64_t flags, uint64_t key, struct attach_caller *caller)
{
    (void)flags;
    now->memory.tail_ps += POLL_CALL_PS;
    return poll_make(key, false, caller); // of the poll at which it goes on; a call itself has found nothing
}

struct loop_calls play_calls(void)
{
    return (struct loop_calls){(uintptr_t)play_poll, (uintptr_t)play_function, (uintptr_t)play_poll_call,
                               (uintptr_t)clock_read};
}

void play_loop(struct play *play, random_loop_t loop)
{
    if (ops == NULL) {
        world_lookahead_start();
    }
    now = play;
    next_event = polls_ahead = 0;
    waited = 0;
    play->count = play->carried_out = play->lost = 0;
    loop(&play->memory);
}
