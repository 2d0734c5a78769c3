// Loops without any call that write memory of their own: progress engines that take locks and count (UCX's, while no peer has
// connected). spin.c finds those that only read.
//
// From where the thread is, its instructions are interpreted until they come to the same place of the outermost loop again
// and again. What an iteration leaves changed is the loop's own: counters, and registers that hold some. Once more it is interpreted with these
// unknown. If no branch depends on them, the loop goes on until somebody else writes memory that it reads: then it waits. An
// address may depend on them (a ring of counters). A loop that ends by its own counting has such a branch, and computes.
//
// The thread is stepped to the beginning of an iteration, where it holds no lock that an iteration takes and releases. It
// sleeps there until another thread has run or a device has written, and the next iteration is interpreted.
//
// Leaves out: what the interpreter does (interpret.h). A loop that changes what it reads through addresses that depend on its
// counters, and ends by that, is taken for a wait if it does not do so in 20000 instructions.
#include <string.h>

#include "verbs-shim/world/instruction.h"
#include "verbs-shim/world/interpret_internal.h"
#include "verbs-shim/world/interpret_vary.h"
#include "verbs-shim/world/lookahead_internal.h"
#include "verbs-shim/world/world.h"

enum { INSTRUCTIONS = 20000, HEADS = 64, VISITS = 3, BACKOFF_MAX = 63, WRITTEN_BITS = 1 << 15, TRAP_FLAG = 0x100 };

// Where an iteration begins.
struct head {
    uint64_t rip, rsp;
    unsigned visits;
};

static __thread struct {
    struct head head;
    bool seeking, busy; // busy: what the thread does now is not the program's
    unsigned steps;
    unsigned backoff, skip;            // of searches in vain
    uint8_t written[WRITTEN_BITS / 8]; // while the head was looked for: a bit of each word's address
} spin;

static struct interpret_state state_of(const greg_t *registers)
{
    struct interpret_state state = {.rip = (uint64_t)registers[REG_RIP],
                                    .flags = (uint16_t)registers[REG_EFL],
                                    .known = UINT16_MAX,
                                    .flags_known = INTERPRET_FLAGS};
    for (unsigned i = 0; i < INTERPRET_REGISTERS; i++) {
        state.registers[i] = (uint64_t)registers[world_register_places[i]];
    }
    return state;
}

// One instruction. false: it is not known.
static bool step(struct interpret_state *state)
{
    unsigned left = 1;
    return interpret_run(state, NULL, 0, &left) == INTERPRET_LIMIT && left == 0;
}

static bool is_at(const struct interpret_state *state, const struct head *head)
{
    return state->rip == head->rip && state->registers[INTERPRET_RSP] == head->rsp;
}

// To the head's next visit.
static bool iterate(struct interpret_state *state, const struct head *head)
{
    unsigned left = INSTRUCTIONS;
    bool known = step(state);
    while (known && !is_at(state, head) && --left > 0) {
        known = step(state);
    }
    return known && left > 0;
}

static void visit(struct head heads[HEADS], unsigned *next, const struct interpret_state *state)
{
    for (unsigned i = 0; i < HEADS; i++) {
        if (is_at(state, &heads[i])) {
            heads[i].visits++;
            return;
        }
    }
    heads[(*next)++ % HEADS] = (struct head){state->rip, state->registers[INTERPRET_RSP], 1};
}

static unsigned bit_of(uint64_t address)
{
    return (unsigned)(address / 8 * UINT64_C(0x9e3779b97f4a7c15) >> 40) % WRITTEN_BITS;
}

static void written_note(void)
{
    unsigned count;
    const struct interpret_word *words = interpret_words(&count);
    memset(spin.written, 0, sizeof spin.written);
    for (unsigned i = 0; i < count; i++) {
        unsigned bit = bit_of(words[i].address);
        spin.written[bit / 8] |= (uint8_t)(words[i].since[INTERPRET_BEGINNING].written != 0 ? 1u << bit % 8 : 0);
    }
}

// The last iteration has read a word that it did not write, and others have written: it may be a matter of its counters.
static bool reads_its_own(void)
{
    unsigned count;
    const struct interpret_word *words = interpret_words(&count);
    bool any = false;
    for (unsigned i = 0; i < count && !any; i++) {
        const struct interpret_since *since = &words[i].since[INTERPRET_BASE];
        unsigned bit = bit_of(words[i].address);
        any = since->read != 0 && since->written == 0 && (spin.written[bit / 8] >> bit % 8 & 1) != 0;
    }
    return any;
}

// The target of a jump backwards to which the program comes again and again, with the stack highest. false: none.
static bool head_find(struct interpret_state state, struct head *head_out)
{
    struct head heads[HEADS] = {{0}};
    unsigned next = 0;
    interpret_begin();
    for (unsigned i = 0; i < INSTRUCTIONS; i++) {
        uint64_t before = state.rip;
        if (!step(&state)) {
            return false;
        }
        if (state.rip <= before) {
            visit(heads, &next, &state);
        }
    }
    written_note();
    *head_out = (struct head){0};
    for (unsigned i = 0; i < HEADS; i++) {
        bool higher = heads[i].rsp > head_out->rsp;
        *head_out = heads[i].visits >= VISITS && higher ? heads[i] : *head_out;
    }
    return head_out->visits != 0;
}

// What the last iteration has changed is not known in the next one.
static void own_forget(const struct interpret_state *before, const struct interpret_state *after)
{
    static const struct interpret_vary any = {.kind = INTERPRET_ANY, .bytes = 4};
    unsigned count;
    const struct interpret_word *words = interpret_words(&count);
    interpret_vary_begin(INTERPRET_QUOTIENTS_FEW);
    interpret_vary_loose();
    for (unsigned i = 0; i < INTERPRET_REGISTERS; i++) {
        if (before->registers[i] != after->registers[i]) {
            interpret_vary_register(i, any);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        const struct interpret_since *since = &words[i].since[INTERPRET_BASE];
        if (((words[i].now ^ since->value) & lookahead_mask(since->written)) != 0) {
            interpret_vary_word(words[i].address, 0, any);
            interpret_vary_word(words[i].address, 1, any);
        }
    }
}

// Does the loop that begins there go on for ever if nobody else writes?
static bool goes_on(const struct interpret_state *at_head, const struct head *head)
{
    struct interpret_state state = *at_head;
    state.flags_known = 0; // of the iteration before: no branch may depend on them
    state.vectors_known = 0;
    interpret_rebase();
    if (!iterate(&state, head) || reads_its_own()) {
        return false;
    }
    own_forget(at_head, &state);
    state.flags_known = 0;
    state.vectors_known = 0;
    bool same_way = iterate(&state, head);
    interpret_vary_end();
    return same_way;
}

bool world_spin_loop_begin(greg_t *registers)
{
    if (spin.skip > 0) {
        spin.skip--;
        return false;
    }
    spin.busy = true;
    struct interpret_state state = state_of(registers);
    bool found = head_find(state, &spin.head);
    interpret_begin();
    found = found && (is_at(&state, &spin.head) || iterate(&state, &spin.head)) && goes_on(&state, &spin.head);
    spin.backoff = found ? 0 : spin.backoff < BACKOFF_MAX ? 2 * spin.backoff + 1 : spin.backoff;
    spin.skip = spin.backoff;
    spin.seeking = found;
    spin.steps = 0;
    spin.busy = false;
    return found;
}

// It does not see its signals here: after one it runs.
static void wait(const greg_t *registers)
{
    unsigned interrupts = attach_interrupts();
    struct interpret_state state;
    do {
        if (attach_poll_words(NULL, 0) != ATTACH_WOKEN_DEADLINE) {
            attach_progress();
        }
        state = state_of(registers);
        interpret_begin();
    } while (attach_interrupts() == interrupts && goes_on(&state, &spin.head));
}

// A handler of the program may have left the way to the head by a jump.
bool world_spin_loop_busy(const greg_t *registers)
{
    spin.seeking = spin.seeking && (spin.busy || (registers[REG_EFL] & TRAP_FLAG) != 0);
    return spin.seeking || spin.busy;
}

enum world_spin_seek world_spin_loop_stepped(greg_t *registers)
{
    if (!spin.seeking) {
        return WORLD_SPIN_NONE;
    }
    bool there = (uint64_t)registers[REG_RIP] == spin.head.rip && (uint64_t)registers[REG_RSP] == spin.head.rsp;
    if (!there && ++spin.steps < INSTRUCTIONS) {
        return WORLD_SPIN_ON;
    }
    spin.seeking = false;
    if (there) {
        spin.busy = true;
        wait(registers);
        spin.busy = false;
    }
    return WORLD_SPIN_OVER;
}
