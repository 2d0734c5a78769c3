#include "models/host/core.h"

#include <stdlib.h>
#include <string.h>

#include "models/host/write_combining.h"
#include "sim/kernel/cause.h"
#include "sim/kernel/counter.h"

// Line fill buffers, see core.h.
#define IN_FLIGHT_MAX 10u

enum counter {
    WC_RUNS,
    UC_STORES,
    UC_LOADS,
    UC_LOAD_ERRORS,
    WC_LOADS,
    WC_LOAD_ERRORS,
    POLL_TURNS,
    POLL_LOADS,
    POLL_LOAD_BYTES,
    COUNTERS
};

static const struct sim_counter_desc counter_descs[COUNTERS] = {
    [WC_RUNS] = {"wc_writes", "writes", "writes that left write-combining buffers"},
    [UC_STORES] = {"uc_stores", "stores", "uncached stores"},
    [UC_LOADS] = {"uc_loads", "loads", "uncached loads, those of poll_loads left out"},
    [UC_LOAD_ERRORS] = {"uc_load_errors", "loads", "uncached loads answered with an error; they read all ones"},
    [WC_LOADS] = {"wc_loads", "loads", "lines fetched by streaming loads"},
    [WC_LOAD_ERRORS] = {"wc_load_errors", "loads", "lines answered with an error; they read all ones"},
    [POLL_TURNS] = {"poll_turns", "turns", "iterations of polling loops over words in memory"},
    [POLL_LOADS] = {"poll_loads", "turns",
                    "uncached loads from the address of the previous load: iterations of a loop"},
    [POLL_LOAD_BYTES] = {"poll_load_bytes", "bytes", "data fetched by poll_loads, whole DWs"},
};

// What a core spends time on.
static const struct sim_work storing = {"stores", "stores into write-combining buffers", false};
static const struct sim_work stores_in_flight = {"stores", "stores on the way to the root complex", false};
static const struct sim_work loading = {"PCIe", "load between core and root complex", false};
static const struct sim_work loaded = {NULL, "load", true}; // ends what was counted as polling
static const struct sim_work fetching = {"PCIe", "line between root complex and core", false};
static const struct sim_work until_poll = {"polling", "until the next poll", false};
static const struct sim_work last_poll = {"polling", "the poll that sees it", false};
static const struct sim_work clock_reading = {"library", "reading the clock", false};

struct store {
    struct host_run run;
    uint64_t due_ps; // at the root complex
};

struct host_core {
    sim_t *sim;
    const char *name; // lives as long as the simulation: records of causes have it
    struct host_core_config config;
    pcie_rc_t *rc;
    host_memory_t *memory;
    struct host_line line;
    // Stores between core and root complex, a ring.
    struct store in_flight[IN_FLIGHT_MAX];
    unsigned first, count;
    bool refused; // the root complex has no room and will call back
    sim_event_t arrival;
    sim_condition_t arrived; // one has reached the root complex, or a call that stores has ended
    uint64_t begun, ended;   // calls that store
    uint64_t loaded;         // the address of the last access, if that was an uncached load
    unsigned loaded_bytes;   // 0: it was not
    uint64_t polled;         // address of the word while a poll waits for it; 0: none does
    bool abandoned;
    uint64_t counters[COUNTERS];
};

// --- stores in flight ----------------------------------------------------------------------------------------------

static void stores_deliver(host_core_t *core);

static void root_complex_ready(void *ctx)
{
    host_core_t *core = ctx;
    core->refused = false;
    stores_deliver(core);
}

static void stores_deliver(host_core_t *core)
{
    while (core->count != 0 && !core->refused) {
        const struct store *store = &core->in_flight[core->first];
        if (store->due_ps > sim_now_ps(core->sim)) {
            sim_event_schedule_at(core->sim, &core->arrival, store->due_ps);
            return;
        }
        if (!pcie_rc_cpu_write(core->rc, store->run.address, store->run.data, store->run.bytes, root_complex_ready,
                               core)) {
            core->refused = true;
            return;
        }
        core->first = (core->first + 1) % IN_FLIGHT_MAX;
        core->count--;
        sim_condition_signal(core->sim, &core->arrived);
    }
}

static void arrival_run(void *ctx)
{
    host_core_t *core = ctx;
    sim_cause_label(core->sim, core->name, &stores_in_flight);
    stores_deliver(core);
}

static void stores_wait(host_core_t *core, unsigned left)
{
    const struct sim_wait_reason reason = {core->name, "the root complex to take %llu stores", core->count, 0};
    while (core->count > left) {
        (void)sim_condition_wait(core->sim, &core->arrived, SIM_NEVER_PS, &reason);
    }
}

static void store_send(host_core_t *core, const struct host_run *run, uint64_t latency_ps)
{
    stores_wait(core, IN_FLIGHT_MAX - 1);
    core->loaded_bytes = 0;
    struct store *store = &core->in_flight[(core->first + core->count) % IN_FLIGHT_MAX];
    store->run = *run;
    store->due_ps = sim_now_ps(core->sim) + latency_ps;
    core->count++;
    if (core->count == 1) {
        sim_event_schedule_at(core->sim, &core->arrival, store->due_ps);
    }
}

// Additional latency of a store to a device of the other socket.
static uint64_t far_ps(const host_core_t *core, uint64_t bus_address)
{
    bool far = pcie_rc_is_far(core->rc, bus_address);
    return far ? core->config.flush_wc_far_ps - core->config.flush_wc_ps : 0;
}

static void line_flush(host_core_t *core)
{
    struct host_run run;
    while (host_line_take_run(&core->line, &run)) {
        core->counters[WC_RUNS]++;
        store_send(core, &run, core->config.flush_wc_ps + far_ps(core, run.address));
    }
}

// --- creation and destruction --------------------------------------------------------------------------------------

enum sim_status host_core_create(sim_t *sim, const char *name, const struct host_core_config *config, pcie_rc_t *rc,
                                 host_memory_t *memory, host_core_t **core_out)
{
    host_core_t *core = calloc(1, sizeof *core);
    if (core == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    core->name = sim_name_keep(sim, name);
    if (core->name == NULL) {
        free(core);
        return SIM_ERR_NO_MEMORY;
    }
    core->sim = sim;
    core->config = *config;
    core->rc = rc;
    core->memory = memory;
    sim_event_init(&core->arrival, arrival_run, core);
    sim_condition_init(&core->arrived);
    enum sim_status status = sim_counters_register(sim, name, counter_descs, core->counters, COUNTERS);
    if (status != SIM_OK) {
        free(core);
        return status;
    }
    *core_out = core;
    return SIM_OK;
}

void host_core_destroy(host_core_t *core)
{
    if (core == NULL) {
        return;
    }
    sim_event_cancel(core->sim, &core->arrival);
    sim_counters_unregister(core->sim, core->counters);
    free(core);
}

const struct host_core_config *host_core_config(const host_core_t *core)
{
    return &core->config;
}

// --- stores and loads ----------------------------------------------------------------------------------------------

void host_core_store_wc(host_core_t *core, uint64_t bus_address, const void *data, size_t bytes)
{
    const uint8_t *from = data;
    core->begun++;
    while (bytes != 0) {
        if (!host_line_holds(&core->line, bus_address)) {
            line_flush(core);
        }
        size_t taken = host_line_store(&core->line, bus_address, from, bytes);
        uint64_t stores = (bus_address + taken - 1) / 8 - bus_address / 8 + 1;
        // A line is not visible before it leaves, so its stores are charged together.
        host_core_spend(core, stores * core->config.store_wc_ps, &storing);
        if (host_line_full(&core->line)) {
            line_flush(core);
        }
        bus_address += taken;
        from += taken;
        bytes -= taken;
    }
    core->ended++;
    sim_condition_signal(core->sim, &core->arrived);
}

void host_core_drain(host_core_t *core)
{
    const struct sim_wait_reason reason = {core->name, "the end of a store", 0, 0};
    const uint64_t begun = core->begun;
    while (core->ended < begun) {
        (void)sim_condition_wait(core->sim, &core->arrived, SIM_NEVER_PS, &reason);
    }
    host_core_fence(core);
}

void host_core_fence(host_core_t *core)
{
    line_flush(core);
    stores_wait(core, 0);
}

static void check_alignment(const host_core_t *core, uint64_t bus_address, unsigned bytes)
{
    if (bytes == 0 || bytes > 8 || (bytes & (bytes - 1)) != 0 || bus_address % bytes != 0) {
        sim_panic(core->name, "uncached access of %u bytes at 0x%llx", bytes, (unsigned long long)bus_address);
    }
}

void host_core_store_uc(host_core_t *core, uint64_t bus_address, uint64_t value, unsigned bytes)
{
    check_alignment(core, bus_address, bytes);
    core->begun++;
    host_core_fence(core);
    core->counters[UC_STORES]++;
    struct host_run run = {.address = bus_address, .bytes = bytes};
    memcpy(run.data, &value, bytes);
    store_send(core, &run, core->config.store_uc_ps + far_ps(core, bus_address));
    stores_wait(core, 0);
    core->ended++;
    sim_condition_signal(core->sim, &core->arrived);
}

struct load {
    sim_t *sim;
    sim_condition_t answered;
    bool done, good;
    uint64_t value;
};

static void load_answered(void *ctx, enum pcie_cpl_status status, const uint8_t *data, uint32_t bytes)
{
    struct load *load = ctx;
    load->done = true;
    load->good = status == PCIE_CPL_SC;
    if (load->good) {
        memcpy(&load->value, data, bytes);
    }
    sim_condition_signal(load->sim, &load->answered);
}

// The number of polls until a device's word changes follows from the latency of the device, so they are counted apart.
static void load_count(host_core_t *core, uint64_t bus_address, unsigned bytes)
{
    if (core->loaded_bytes == bytes && core->loaded == bus_address) {
        core->counters[POLL_LOADS]++;
        core->counters[POLL_LOAD_BYTES] += bytes < 4 ? 4 : bytes;
    } else {
        core->counters[UC_LOADS]++;
    }
    core->loaded = bus_address;
    core->loaded_bytes = bytes;
}

bool host_core_load_uc(host_core_t *core, uint64_t bus_address, unsigned bytes, uint64_t *value_out)
{
    check_alignment(core, bus_address, bytes);
    host_core_fence(core);
    load_count(core, bus_address, bytes);
    host_core_spend(core, core->config.load_uc_ps, &loading);
    struct load load = {.sim = core->sim};
    sim_condition_init(&load.answered);
    pcie_rc_cpu_read(core->rc, bus_address, bytes, load_answered, &load);
    const struct sim_wait_reason reason = {core->name, "the answer to a load from 0x%llx", bus_address, 0};
    while (!load.done) {
        (void)sim_condition_wait(core->sim, &load.answered, SIM_NEVER_PS, &reason);
    }
    if (!load.good) {
        core->counters[UC_LOAD_ERRORS]++;
        load.value = UINT64_MAX;
    }
    host_core_spend(core, core->config.load_uc_return_ps, &loading);
    sim_cause_mark(core->sim, core->name, &loaded);
    *value_out = load.value;
    return load.good;
}

// --- streaming loads -----------------------------------------------------------------------------------------------

struct stream {
    host_core_t *core;
    sim_condition_t answered;
    bool good;
};

// A line fill buffer: held until its data have come from the root complex to the core.
struct stream_line {
    struct stream *stream;
    uint8_t *data; // NULL: answered
    uint32_t bytes;
    uint64_t free_ps; // once it is answered
};

static void line_answered(void *ctx, enum pcie_cpl_status status, const uint8_t *data, uint32_t bytes)
{
    struct stream_line *line = ctx;
    struct stream *stream = line->stream;
    host_core_t *core = stream->core;
    if (status == PCIE_CPL_SC) {
        memcpy(line->data, data, bytes);
    } else {
        memset(line->data, 0xff, line->bytes);
        core->counters[WC_LOAD_ERRORS]++;
        stream->good = false;
    }
    line->data = NULL;
    line->free_ps = sim_now_ps(core->sim) + core->config.load_uc_ps + core->config.load_uc_return_ps;
    sim_condition_signal(core->sim, &stream->answered);
}

static void line_wait(struct stream *stream, const struct stream_line *line)
{
    host_core_t *core = stream->core;
    const struct sim_wait_reason reason = {core->name, "the answer to a streaming load", 0, 0};
    while (line->data != NULL) {
        (void)sim_condition_wait(core->sim, &stream->answered, SIM_NEVER_PS, &reason);
    }
    uint64_t now_ps = sim_now_ps(core->sim);
    host_core_spend(core, line->free_ps > now_ps ? line->free_ps - now_ps : 0, &fetching);
}

bool host_core_load_wc(host_core_t *core, uint64_t bus_address, void *data, size_t bytes)
{
    struct stream stream = {.core = core, .good = true};
    struct stream_line lines[IN_FLIGHT_MAX] = {{0}};
    uint8_t *to = data;
    sim_condition_init(&stream.answered);
    host_core_fence(core);
    core->loaded_bytes = 0;
    for (unsigned i = 0; bytes != 0 && !core->abandoned; i = (i + 1) % IN_FLIGHT_MAX) { // the oldest is free first
        size_t in_line = HOST_LINE_BYTES - bus_address % HOST_LINE_BYTES;
        size_t taken = bytes < in_line ? bytes : in_line;
        host_core_spend(core, core->config.load_ps, &fetching);
        line_wait(&stream, &lines[i]);
        lines[i] = (struct stream_line){&stream, to, (uint32_t)taken, 0};
        core->counters[WC_LOADS]++;
        pcie_rc_cpu_read(core->rc, bus_address, (uint32_t)taken, line_answered, &lines[i]);
        bus_address += taken;
        to += taken;
        bytes -= taken;
    }
    for (unsigned i = 0; i < IN_FLIGHT_MAX; i++) {
        line_wait(&stream, &lines[i]);
    }
    return stream.good && bytes == 0;
}

// --- polling -------------------------------------------------------------------------------------------------------

static bool word_matches(const host_core_t *core, uint64_t bus_address, uint64_t mask, uint64_t value)
{
    uint64_t word;
    return host_memory_load_word(core->memory, bus_address, &word) && (word & mask) == value;
}

// The first sample, now or later, of a loop that began at start_ps.
static uint64_t next_sample_ps(const host_core_t *core, uint64_t start_ps)
{
    uint64_t now_ps = sim_now_ps(core->sim);
    uint64_t period_ps = core->config.poll_ps;
    if (period_ps == 0) {
        return now_ps;
    }
    return start_ps + (now_ps - start_ps + period_ps - 1) / period_ps * period_ps;
}

static void turns_count(host_core_t *core, uint64_t start_ps)
{
    if (core->config.poll_ps != 0) {
        core->counters[POLL_TURNS] += (sim_now_ps(core->sim) - start_ps) / core->config.poll_ps;
    }
}

bool host_core_poll(host_core_t *core, uint64_t bus_address, uint64_t mask, uint64_t value, uint64_t deadline_ps)
{
    uint64_t start_ps = sim_now_ps(core->sim);
    const struct sim_wait_reason reason = {host_memory_name(core->memory), "word 0x%llx to become 0x%llx", bus_address,
                                           value};
    while (!word_matches(core, bus_address, mask, value)) {
        core->polled = bus_address;
        bool written = !core->abandoned && host_memory_wait_write(core->memory, bus_address, deadline_ps, &reason);
        core->polled = 0;
        if (!written || core->abandoned) {
            turns_count(core, start_ps);
            return false;
        }
        uint64_t sample_ps = next_sample_ps(core, start_ps);
        if (sample_ps >= deadline_ps) {
            sample_ps = deadline_ps;
        }
        host_core_spend(core, sample_ps - sim_now_ps(core->sim), &until_poll);
        if (sample_ps == deadline_ps) {
            turns_count(core, start_ps);
            return false;
        }
    }
    host_core_spend(core, core->config.poll_ps, &last_poll);
    turns_count(core, start_ps);
    return true;
}

void host_core_polled(host_core_t *core, uint64_t bus_address, bool found, uint64_t polled_ps)
{
    host_memory_polled(core->memory, bus_address, found, polled_ps, core->name);
}

void host_core_found(host_core_t *core, sim_cause_t left)
{
    if (left != 0 && sim_causes_recorded(core->sim)) {
        sim_cause_follow(core->sim, left, core->name, &until_poll);
    }
}

void host_core_abandon(host_core_t *core)
{
    core->abandoned = true;
    if (core->polled != 0) {
        host_memory_wake(core->memory, core->polled);
    }
}

// --- time ----------------------------------------------------------------------------------------------------------

void host_core_spend(host_core_t *core, uint64_t ps, const struct sim_work *work)
{
    if (ps != 0) {
        sim_thread_sleep(core->sim, ps);
        sim_cause_label(core->sim, core->name, work);
    }
}

uint64_t host_core_timestamp_ps(host_core_t *core)
{
    host_core_spend(core, core->config.timestamp_ps, &clock_reading);
    sim_cause_clock_read(core->sim);
    return sim_now_ps(core->sim);
}
