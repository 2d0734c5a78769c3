// A processor core as its program sees it: stores, loads, polling, and what each costs.
//
// Used from one simulated thread. Models: write-combining buffers of 64 B that leave the core when full, when another
// line is accessed, by a fence or by an uncached access; uncached stores and loads; polling a cached word (the core
// sleeps until a device writes it, then charges the loop iterations that would have been made, so that the result is
// that of a loop with that period).
//
// Stores in flight: a combined line needs flush_wc_ps from the core to the root complex (flush_wc_far_ps to a device of
// the other socket). Several lines overlap; at most ten are in flight, the number of line fill buffers of a core (Sandy
// Bridge; Intel optimization manual). When the root complex has no room, these fill up and the next store waits. A
// fence stalls the core until every store has reached the root complex. An uncached store waits for the stores in
// flight and stalls the core for store_uc_ps: x86 orders such stores one by one.
//
// Streaming loads from a write-combining mapping (MOVNTDQA; Intel 64 SDM volume 1, 12.10.3): each fetches a line of 64
// B into one of the ten line fill buffers; they overlap, and nothing is cached. A buffer is held from the request until
// load_uc_ps and load_uc_return_ps after the root complex has the answer.
//
// An uncached load needs load_uc_ps in core and uncore before its request is at the root complex, and load_uc_return_ps
// for the answer from there to the core.
//
// Polling: the loop of a poll called at t0 samples the word at t0 + k * poll_ps; the first sample at the time of a
// write or later sees it, and that iteration is charged as well. A sample at the deadline or later does not count,
// except the very first one.
//
// Leaves out: pipelines, caches beyond a cost per access, other cores.
#pragma once

#include "sim/kernel/cause.h"

#include "models/host/memory.h"
#include "models/pcie/root_complex.h"

typedef struct host_core host_core_t;

// Costs in picoseconds; sources are in configs/host/.
struct host_core_config {
    uint64_t store_wc_ps, flush_wc_ps, flush_wc_far_ps /* not less */, store_uc_ps, load_uc_ps, load_uc_return_ps,
        load_ps, device_line_ps, lock_ps, poll_ps, timestamp_ps, call_ps;
    uint64_t copy_bytes_per_us;
};

enum sim_status host_core_create(sim_t *sim, const char *name, const struct host_core_config *config, pcie_rc_t *rc,
                                 host_memory_t *memory, host_core_t **core_out);
void host_core_destroy(host_core_t *core);

// Charges store_wc_ps for each aligned 8 bytes touched.
void host_core_store_wc(host_core_t *core, uint64_t bus_address, const void *data, size_t bytes);
void host_core_fence(host_core_t *core);
// From any other thread: waits until every store that the core has begun is at the root complex, those in its buffers
// included, as after an interrupt of the core.
void host_core_drain(host_core_t *core);
// Naturally aligned, 1, 2, 4 or 8 bytes.
void host_core_store_uc(host_core_t *core, uint64_t bus_address, uint64_t value, unsigned bytes);
// The same; false: answered with an error, *value_out is all ones.
bool host_core_load_uc(host_core_t *core, uint64_t bus_address, unsigned bytes, uint64_t *value_out);
// Streaming loads, after a fence. Charges load_ps for each line. false: a line was answered with an error; its bytes
// are all ones, or the core was abandoned: the others are not loaded.
bool host_core_load_wc(host_core_t *core, uint64_t bus_address, void *data, size_t bytes);

// Waits until (word & mask) == value; false when deadline_ps comes first (SIM_NEVER_PS: no deadline). bus_address is a
// multiple of 8.
bool host_core_poll(host_core_t *core, uint64_t bus_address, uint64_t mask, uint64_t value, uint64_t deadline_ps);

// The program itself polled with cached loads and has paid for them; see host_memory_polled.
void host_core_polled(host_core_t *core, uint64_t bus_address, bool found, uint64_t polled_ps);
// It has found what another thread has left in memory, by the action with this cause.
void host_core_found(host_core_t *core, sim_cause_t left);

// Called from outside the core's thread: the program has ended. Its poll, and every later one, returns false at
// once; a streaming load ends with the lines in flight.
void host_core_abandon(host_core_t *core);

void host_core_spend(host_core_t *core, uint64_t ps, const struct sim_work *work); // on `work`
uint64_t host_core_timestamp_ps(host_core_t *core); // charges timestamp_ps, then reads the time
const struct host_core_config *host_core_config(const host_core_t *core);
