// Where the interpretation of a look ahead (lookahead_internal.h) meets what is not the program's: its polls and clocks,
// and the kernel.
#include <string.h>

#include "verbs-shim/world/clock_calls.h"
#include "verbs-shim/world/lookahead_internal.h"
#include "verbs-shim/world/tsc_jump.h"
#include "verbs-shim/world/world.h"

#define STORES_MAX_PS (1000 * (uint64_t)WORLD_PS_PER_US) // of a list

// What functions preserve, and the result of a poll that found nothing.
static const uint16_t preserved = 1u << INTERPRET_RBX | 1u << INTERPRET_RBP | 1u << INTERPRET_RSP |
                                  1u << INTERPRET_R12 | 1u << INTERPRET_R13 | 1u << INTERPRET_R14 | 1u << INTERPRET_R15;

uint64_t lookahead_mask(uint8_t bytes)
{
    uint64_t bits = bytes * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201); // bit i in byte i
    uint64_t tops = (((bits & UINT64_C(0x7f7f7f7f7f7f7f7f)) + UINT64_C(0x7f7f7f7f7f7f7f7f)) | bits) >> 7;
    return (tops & UINT64_C(0x0101010101010101)) * 0xff;
}

// --- registers ----------------------------------------------------------------------------------------------------------

static void result_put(struct interpret_state *state, uint64_t result)
{
    state->registers[INTERPRET_RAX] = result;
    state->known = preserved | 1u << INTERPRET_RAX;
    state->flags_known = 0;
    state->vectors_known = 0;
    if (interpret_vary_is_on()) {
        interpret_vary_register(INTERPRET_RAX, (struct interpret_vary){0});
    }
}

bool lookahead_register_is_steady(const struct interpret_state *state, unsigned number)
{
    return (state->known >> number & 1) != 0 &&
           (!interpret_vary_is_on() || interpret_vary_of_register(number).kind == INTERPRET_STEADY);
}

void lookahead_registers(const struct attach_caller *caller, uint64_t registers_out[INTERPRET_REGISTERS])
{
    registers_out[INTERPRET_RBX] = caller->rbx;
    registers_out[INTERPRET_RBP] = caller->rbp;
    registers_out[INTERPRET_R12] = caller->r12;
    registers_out[INTERPRET_R13] = caller->r13;
    registers_out[INTERPRET_R14] = caller->r14;
    registers_out[INTERPRET_R15] = caller->r15;
    registers_out[INTERPRET_RSP] = caller->rsp;
}

uint64_t lookahead_register(const struct attach_caller *caller, unsigned number)
{
    switch (number) {
    case INTERPRET_RBX:
        return caller->rbx;
    case INTERPRET_RBP:
        return caller->rbp;
    case INTERPRET_R12:
        return caller->r12;
    case INTERPRET_R13:
        return caller->r13;
    case INTERPRET_R14:
        return caller->r14;
    case INTERPRET_R15:
        return caller->r15;
    default:
        return caller->rsp;
    }
}

static struct interpret_state state_of(const struct attach_caller *caller)
{
    struct interpret_state state = {.rip = caller->rip};
    lookahead_registers(caller, state.registers);
    result_put(&state, 0);
    return state;
}

void lookahead_return_with(struct lookahead_run *run, uint64_t result)
{
    struct interpret_state *state = &run->state;
    state->rip = interpret_load(state->registers[INTERPRET_RSP], 8);
    state->registers[INTERPRET_RSP] += 8;
    result_put(state, result);
}

void lookahead_return(struct lookahead_run *run)
{
    if (lookahead_clock_form(run->state.rip) != 0) {
        const struct attach_clock clock = lookahead_clock_of(run);
        uint64_t result = lookahead_clock_put(run, &clock);
        lookahead_return_with(run, result);
    } else {
        lookahead_return_with(run, 0);
    }
}

// --- the shim's variables -------------------------------------------------------------------------------------------------

bool lookahead_is_own(const struct attach_borders *borders, uint64_t address)
{
    return address == (uintptr_t)borders->now_ps || address == (uintptr_t)borders->tail_ps ||
           address == ((uintptr_t)borders->found & ~UINT64_C(7)) ||
           address == ((uintptr_t)borders->entry_count & ~UINT64_C(7));
}

bool lookahead_time_is_known(const struct attach_borders *borders)
{
    return atomic_load_explicit(borders->entry_count, memory_order_relaxed) == 0;
}

bool lookahead_reads_clocks(const struct lookahead_run *run)
{
    return run->clocks || interpret_was_read((uintptr_t)run->borders->now_ps); // a library asks for the thread's time
}

struct lookahead_run lookahead_begin(const struct attach_caller *caller, const struct attach_borders *borders,
                                     uint64_t now_ps, uint64_t period_ps, unsigned instructions)
{
    interpret_change((uintptr_t)borders->now_ps, now_ps);
    interpret_store((uintptr_t)borders->tail_ps, 8, 0);
    interpret_store((uintptr_t)borders->found, 1, 0);
    interpret_store((uintptr_t)borders->entry_count, sizeof *borders->entry_count, 0);
    struct lookahead_run run = {
        .state = state_of(caller), .borders = borders, .left = instructions, .period_ps = period_ps, .reason = ""};
    if (borders->clock.form != 0) {
        (void)lookahead_clock_put(&run, &borders->clock);
        run.readings = WORLD_CLOCK_READS + 2;
        run.read_ps = now_ps;
    }
    return run;
}

// --- running --------------------------------------------------------------------------------------------------------------

static bool is_system_call(uint64_t rip)
{
    uint64_t code;
    return interpret_peek(rip, &code) && (code & 0xffff) == 0x050f;
}

enum { BORDERS = 6 + WORLD_CLOCK_ENTRIES + ATTACH_POLL_FUNCTIONS + LOOKAHEAD_LIBRARY_FUNCTIONS };

static unsigned borders_list(const struct attach_borders *borders, uintptr_t addresses_out[BORDERS])
{
    unsigned count = 0;
    addresses_out[count++] = borders->poll;
    addresses_out[count++] = borders->poll_call;
    addresses_out[count++] = borders->kernel_gate;
    addresses_out[count++] = (uintptr_t)world_tsc_entry;
    for (unsigned i = 0; i < WORLD_CLOCK_ENTRIES; i++) {
        addresses_out[count++] = world_clock_entries[i].address;
    }
    for (unsigned i = 0; i < sizeof borders->others / sizeof borders->others[0]; i++) {
        addresses_out[count++] = borders->others[i];
    }
    for (unsigned i = 0; i < borders->function_count; i++) {
        addresses_out[count++] = borders->functions[i].entry;
    }
    for (unsigned i = 0; i < LOOKAHEAD_LIBRARY_FUNCTIONS; i++) {
        addresses_out[count++] = lookahead_library_entries()[i];
    }
    return count;
}

static unsigned effort; // one thread of the process looks ahead at a time

unsigned lookahead_effort(void)
{
    return effort;
}

enum lookahead_stop lookahead_run(struct lookahead_run *run)
{
    effort++;
    uintptr_t addresses[BORDERS];
    unsigned count = borders_list(run->borders, addresses);
    const struct interpret_state *state = &run->state;
    bool known;
    uint64_t result;
    while (true) {
        enum interpret_stop stop = interpret_run(&run->state, addresses, count, &run->left);
        bool call =
            state->rip == run->borders->kernel_gate || (stop == INTERPRET_UNKNOWN && is_system_call(state->rip));
        run->reason = stop == INTERPRET_LIMIT ? "too long" : interpret_reason();
        if (stop == INTERPRET_LIMIT) {
            return LOOKAHEAD_UNKNOWN;
        }
        if (call) {
            if (!lookahead_ask(run)) {
                run->reason = "a system call";
                return lookahead_call_may_poll(state->registers[INTERPRET_RAX]) ? LOOKAHEAD_UNKNOWN : LOOKAHEAD_CALL;
            }
        } else if (lookahead_clock_form(state->rip) != 0) {
            if (!lookahead_clock_is_known(run)) {
                run->reason = "a clock";
                return LOOKAHEAD_UNKNOWN;
            }
            if (lookahead_clock_polls(run)) {
                return LOOKAHEAD_POLL;
            }
            lookahead_clock_call(run);
        } else if (lookahead_library_at(state, &known, &result)) {
            if (!known) {
                run->reason = "a function of the C library";
                return LOOKAHEAD_UNKNOWN;
            }
            lookahead_return_with(run, result);
        } else if (stop == INTERPRET_UNKNOWN || state->rip == (uintptr_t)world_tsc_entry) {
            if (!lookahead_tsc(run)) {
                return LOOKAHEAD_UNKNOWN;
            }
        } else {
            return LOOKAHEAD_POLL;
        }
    }
}

// --- polls ----------------------------------------------------------------------------------------------------------------

static struct attach_caller caller_of(const struct interpret_state *state)
{
    const uint64_t *registers = state->registers;
    return (struct attach_caller){.rbx = registers[INTERPRET_RBX],
                                  .rbp = registers[INTERPRET_RBP],
                                  .r12 = registers[INTERPRET_R12],
                                  .r13 = registers[INTERPRET_R13],
                                  .r14 = registers[INTERPRET_R14],
                                  .r15 = registers[INTERPRET_R15],
                                  .rsp = registers[INTERPRET_RSP] + 8,
                                  .rip = interpret_load(registers[INTERPRET_RSP], 8)};
}

enum attach_left_by lookahead_at(const struct lookahead_run *run)
{
    uint64_t at = run->state.rip;
    return at == run->borders->poll        ? ATTACH_LEFT_POLL
           : at == run->borders->poll_call ? ATTACH_LEFT_CALL
           : lookahead_clock_form(at) != 0 ? ATTACH_LEFT_CLOCK
                                           : ATTACH_LEFT_FUNCTION;
}

// How long the stores take that are in the list is not known: in the meantime nothing is told.
static uint64_t until_known(const struct attach_borders *borders, uint64_t until_ps)
{
    return lookahead_time_is_known(borders) || until_ps == UINT64_MAX ? until_ps
           : until_ps > STORES_MAX_PS                                 ? until_ps - STORES_MAX_PS
                                                                      : 0;
}

// What is polled, and what the thread pays for it, is the same in all iterations.
static bool polls_the_same(const struct lookahead_run *run)
{
    uint64_t at = run->state.rip;
    if (!interpret_vary_is_steady((uintptr_t)run->borders->tail_ps, sizeof *run->borders->tail_ps)) {
        return false;
    }
    bool poll = at == run->borders->poll || at == run->borders->poll_call;
    return lookahead_clock_form(at) != 0 || (lookahead_register_is_steady(&run->state, INTERPRET_RDI) &&
                                             (!poll || lookahead_register_is_steady(&run->state, INTERPRET_RSI)));
}

enum attach_idle lookahead_describe(const struct lookahead_run *run, struct attach_ahead_poll *poll_out)
{
    const struct attach_borders *borders = run->borders;
    const uint64_t *registers = run->state.registers;
    const uint64_t arguments[3] = {registers[INTERPRET_RDI], registers[INTERPRET_RSI], registers[INTERPRET_RDX]};
    uint64_t tail_ps = interpret_load((uintptr_t)borders->tail_ps, 8);
    if (!polls_the_same(run)) {
        return ATTACH_IDLE_UNKNOWN;
    }
    *poll_out =
        (struct attach_ahead_poll){.own_ps = tail_ps, .function = ATTACH_POLL_FUNCTIONS, .until_ps = UINT64_MAX};
    if (interpret_load((uintptr_t)borders->found, 1) != 0) {
        return ATTACH_FINDS;
    }
    if (run->state.rip == borders->poll) {
        poll_out->key = arguments[0];
        poll_out->word = arguments[1];
        poll_out->plain = true;
        return ATTACH_IDLE;
    }
    if (run->state.rip == borders->poll_call) {
        poll_out->key = arguments[1];
        poll_out->own_ps += borders->poll_call_ps;
        return ATTACH_IDLE;
    }
    if (lookahead_clock_form(run->state.rip) != 0) {
        poll_out->key = interpret_load(registers[INTERPRET_RSP], 8);
        poll_out->own_ps += attach_environment()->clock_read_ps;
        return borders->clocks_serve && run->readings == WORLD_CLOCK_READS + 1 ? ATTACH_FINDS : ATTACH_IDLE;
    }
    for (unsigned i = 0; i < borders->function_count; i++) {
        if (run->state.rip == borders->functions[i].entry) {
            const struct attach_caller caller = caller_of(&run->state);
            enum attach_idle idle = borders->functions[i].is_idle(arguments, &caller, &borders->costs, poll_out);
            poll_out->function = i;
            poll_out->plain = true;
            memcpy(poll_out->arguments, arguments, sizeof arguments);
            poll_out->own_ps = tail_ps + poll_out->function_ps;
            uint64_t state;
            if (idle == ATTACH_IDLE && poll_out->state != 0) {
                bool same = interpret_peek(poll_out->state, &state) && interpret_now(poll_out->state) == state;
                idle =
                    same ? idle : ATTACH_FINDS; // the library has told of the program as it is, before it did something
            }
            poll_out->until_ps = until_known(borders, poll_out->until_ps);
            bool ends = interpret_now((uintptr_t)borders->now_ps) + poll_out->own_ps >= poll_out->until_ps;
            return idle == ATTACH_IDLE && ends ? ATTACH_FINDS : idle;
        }
    }
    return ATTACH_FINDS;
}

bool lookahead_still_idle(const struct attach_caller *caller, const struct attach_borders *borders,
                          struct attach_ahead_poll *poll)
{
    struct attach_ahead_poll now;
    if (poll->function >= borders->function_count) {
        return true;
    }
    bool idle =
        borders->functions[poll->function].is_idle(poll->arguments, caller, &borders->costs, &now) == ATTACH_IDLE;
    poll->word = idle ? now.word : 0;
    poll->until_ps = idle ? until_known(borders, now.until_ps) : 0;
    return idle && now.function_ps == poll->function_ps && now.state == poll->state;
}

void lookahead_pass(struct lookahead_run *run, uint64_t own_ps)
{
    const struct attach_borders *borders = run->borders;
    interpret_store((uintptr_t)borders->tail_ps, 8, 0);
    uint64_t now_ps = interpret_now((uintptr_t)borders->now_ps) + own_ps;
    interpret_change((uintptr_t)borders->now_ps, now_ps);
    if (lookahead_clock_form(run->state.rip) != 0) {
        run->read_ps = now_ps;
        run->readings++;
    }
    lookahead_return(run);
}
