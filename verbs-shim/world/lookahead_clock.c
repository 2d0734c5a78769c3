// Clocks in a look ahead (lookahead_internal.h): the functions of clock_calls.c, and the time stamp counter.
#include <string.h>

#include "verbs-shim/attach/rdtsc.h"
#include "verbs-shim/world/clock_calls.h"
#include "verbs-shim/world/lookahead_internal.h"
#include "verbs-shim/world/tsc_jump.h"
#include "verbs-shim/world/tsc_scan.h"
#include "verbs-shim/world/world.h"

// A part of the time stamp counter.
static struct interpret_vary counter(const struct lookahead_run *run, enum interpret_vary_kind kind)
{
    double per_ps = (double)attach_environment()->tsc_hz / 1e12;
    return (struct interpret_vary){.kind = (uint8_t)kind, .bytes = 8, .rate = (double)run->period_ps * per_ps};
}

// A clock's whole units. part: of a unit, that are left out.
static struct interpret_vary rising(const struct lookahead_run *run, double unit_ps, double part)
{
    return interpret_rising((double)run->period_ps / unit_ps, part);
}

// The thread's time, without that of its next poll.
static uint64_t now_ps(const struct lookahead_run *run)
{
    return interpret_now((uintptr_t)run->borders->now_ps) + interpret_load((uintptr_t)run->borders->tail_ps, 8);
}

// The thread's time after a reading of a clock, which it pays for.
static uint64_t clock_read(struct lookahead_run *run)
{
    uint64_t tail_ps = interpret_load((uintptr_t)run->borders->tail_ps, 8) + attach_environment()->clock_read_ps;
    run->readings = now_ps(run) == run->read_ps ? run->readings + 1 : 1;
    interpret_store((uintptr_t)run->borders->tail_ps, 8, tail_ps);
    run->clocks = true;
    return run->read_ps = now_ps(run);
}

// --- functions --------------------------------------------------------------------------------------------------------------

unsigned lookahead_clock_form(uint64_t address)
{
    for (unsigned i = 0; i < WORLD_CLOCK_ENTRIES; i++) {
        if (world_clock_entries[i].address == address) {
            return world_clock_entries[i].form;
        }
    }
    return 0;
}

struct attach_clock lookahead_clock_of(const struct lookahead_run *run)
{
    const uint64_t *registers = run->state.registers;
    unsigned form = lookahead_clock_form(run->state.rip);
    bool first = form != WORLD_CLOCK_TIMESPEC;
    return (struct attach_clock){form, first ? CLOCK_REALTIME : (int32_t)registers[INTERPRET_RDI],
                                 registers[first ? INTERPRET_RDI : INTERPRET_RSI]};
}

bool lookahead_clock_is_known(const struct lookahead_run *run)
{
    const struct attach_clock clock = lookahead_clock_of(run);
    bool second = clock.form != WORLD_CLOCK_TIMESPEC || lookahead_register_is_steady(&run->state, INTERPRET_RSI);
    bool somewhere = clock.to != 0 || clock.form == WORLD_CLOCK_SECONDS;
    return lookahead_register_is_steady(&run->state, INTERPRET_RDI) && second &&
           world_clock_is_simulated(clock.clock) && clock.to % 8 == 0 && somewhere;
}

static void word_put(uint64_t address, uint64_t value, struct interpret_vary vary)
{
    interpret_store(address, 8, value);
    if (interpret_vary_is_on()) {
        interpret_vary_word(address, 0, vary);
        interpret_vary_word(address, 1, (struct interpret_vary){0});
    }
}

// Nothing varies but the part of a second.
uint64_t lookahead_clock_put(struct lookahead_run *run, const struct attach_clock *clock)
{
    const struct timespec time = world_clock_at(clock->clock, now_ps(run));
    bool is_fine = clock->form == WORLD_CLOCK_TIMESPEC;
    const struct interpret_vary steady = {0}, ns = rising(run, WORLD_PS_PER_NS, 1);
    const struct interpret_vary us = rising(run, WORLD_PS_PER_US, (double)(time.tv_nsec % 1000 + 1) / 1000);
    run->clocks = true;
    if (interpret_vary_is_on()) {
        interpret_vary_bound(((double)(WORLD_NS_PER_S - 3) - (double)time.tv_nsec) / (ns.rate + 1e-9));
    }
    if (clock->to != 0) {
        word_put(clock->to, (uint64_t)time.tv_sec, steady);
    }
    if (clock->form != WORLD_CLOCK_SECONDS) {
        word_put(clock->to + 8, (uint64_t)(is_fine ? time.tv_nsec : time.tv_nsec / 1000), is_fine ? ns : us);
    }
    return clock->form == WORLD_CLOCK_SECONDS ? (uint64_t)time.tv_sec : 0;
}

bool lookahead_clock_polls(struct lookahead_run *run)
{
    run->readings = now_ps(run) == run->read_ps ? run->readings : 0;
    return run->borders->clocks_poll && run->readings > WORLD_CLOCK_READS;
}

void lookahead_clock_call(struct lookahead_run *run)
{
    (void)clock_read(run);
    lookahead_return(run);
}

// --- the time stamp counter -------------------------------------------------------------------------------------------------

static void tsc_put(struct lookahead_run *run)
{
    uint64_t tsc = world_tsc_of(clock_read(run));
    run->state.registers[INTERPRET_RAX] = tsc & UINT32_MAX;
    run->state.registers[INTERPRET_RDX] = tsc >> 32;
    run->state.known |= 1u << INTERPRET_RAX | 1u << INTERPRET_RDX;
    if (interpret_vary_is_on()) {
        interpret_vary_register(INTERPRET_RAX, counter(run, INTERPRET_COUNTER_LOW));
        interpret_vary_register(INTERPRET_RDX, counter(run, INTERPRET_COUNTER_HIGH));
    }
}

// An instruction that reads the counter, a breakpoint in its place, or the function of tsc_jump.c.
bool lookahead_tsc(struct lookahead_run *run)
{
    struct interpret_state *state = &run->state;
    uint64_t code;
    if (state->rip == (uintptr_t)world_tsc_entry) {
        uint16_t flags_known = state->flags_known, known = state->known;
        uint32_t vectors_known = state->vectors_known;
        lookahead_return_with(run, 0);
        state->known = known;
        state->flags_known = flags_known;
        state->vectors_known = (uint16_t)vectors_known;
        tsc_put(run);
        return true;
    }
    unsigned bytes = interpret_peek(state->rip, &code) && (code & 0xff) == 0xcc && !world_tsc_scan_is_cpuid(state->rip)
                         ? world_tsc_scan_bytes(state->rip)
                         : rdtsc_instruction_bytes((const unsigned char *)&code);
    if (bytes != 0) {
        tsc_put(run);
        state->registers[INTERPRET_RCX] = bytes == RDTSCP_BYTES ? 0 : state->registers[INTERPRET_RCX];
        state->rip += bytes;
    }
    return bytes != 0;
}
