// Target of the accesses to registers and internal memory, one request at a time, and source of their completions.
#include <string.h>

#include "models/peach2/twin_internal.h"

enum { OFFSET_MASK = 0x1ffff, REGISTER_BYTES = 4096, REGISTER_READ_DWORDS = 16 };

enum region { REGION_REGISTER, REGION_MEMORY, REGION_NOTHING };

static enum region region_of(uint32_t offset)
{
    if (offset < REGISTER_BYTES) {
        return REGION_REGISTER;
    }
    bool memory = offset / TWIN_MEMORY_BYTES == PEACH2_MEMORY_BASE / TWIN_MEMORY_BYTES;
    return memory ? REGION_MEMORY : REGION_NOTHING;
}

static uint32_t offset_of(const pcie_tlp_t *tlp)
{
    return (uint32_t)tlp->address & OFFSET_MASK & ~3u;
}

static void local_plan(peach2_twin_t *twin, uint64_t floor)
{
    struct twin_local *local = &twin->local;
    uint64_t next = local->write_next < local->sample_edge ? local->write_next : local->sample_edge;
    if (local->free_from != TWIN_NEVER) {
        floor = twin_later(floor, local->free_from);
        for (unsigned left = twin->offered[TWIN_LOCAL]; left != 0; left &= left - 1) {
            uint64_t edge = twin_later(twin->offers[__builtin_ctz(left)].from, floor);
            next = edge < next ? edge : next;
        }
    }
    twin_event_set(twin, &local->event, next);
}

void twin_local_offered(peach2_twin_t *twin, uint64_t from)
{
    if (twin->local.free_from != TWIN_NEVER) {
        twin_event_by(twin, &twin->local.event, twin_later(from, twin->local.free_from));
    }
}

// --- writes ---------------------------------------------------------------------------------------------------------

static uint8_t enable_of(const pcie_tlp_t *tlp, uint32_t dword)
{
    return dword == 0 ? tlp->first_be : dword == tlp->dwords - 1u ? tlp->last_be : 0xf;
}

static uint8_t *memory_at(peach2_twin_t *twin, uint32_t offset)
{
    return &twin->memory[offset % TWIN_MEMORY_BYTES];
}

// All at once; a reset takes back what the RTL, which takes a beat at each edge, would not have written by then.
static void memory_write(peach2_twin_t *twin, pcie_tlp_t *tlp, uint64_t edge)
{
    struct twin_local *local = &twin->local;
    const uint8_t *data = pcie_tlp_data(tlp);
    local->write_edge = edge;
    local->write_offset = offset_of(tlp);
    local->write_dwords = tlp->dwords;
    for (uint32_t dword = 0; dword < tlp->dwords; dword++) {
        uint8_t enable = enable_of(tlp, dword);
        uint8_t *target = memory_at(twin, local->write_offset + 4 * dword);
        memcpy(local->replaced + 4 * dword, target, 4);
        for (unsigned k = 0; k < 4; k++) {
            if ((enable >> k & 1) != 0) {
                target[k] = data[4 * dword + k];
            }
        }
    }
}

void twin_local_interrupt(peach2_twin_t *twin)
{
    const struct twin_local *local = &twin->local;
    uint64_t edge = sim_now_ps(twin->sim) / twin->config.period_ps;
    uint64_t beats = edge + 1 - local->write_edge; // of data: the first cycle of the reset still writes one
    uint64_t written = 4 * beats - local->write_offset / 4 % 4;
    for (uint64_t dword = written; dword < local->write_dwords; dword++) {
        memcpy(memory_at(twin, local->write_offset + 4 * (uint32_t)dword), local->replaced + 4 * dword, 4);
    }
}

// The next DW; it comes into force with the next edge.
static void register_write(peach2_twin_t *twin, uint64_t edge)
{
    struct twin_local *local = &twin->local;
    pcie_tlp_t *tlp = local->write;
    uint32_t offset = (offset_of(tlp) + 4 * local->written) % REGISTER_BYTES, value;
    uint8_t enable = enable_of(tlp, local->written);
    memcpy(&value, pcie_tlp_data(tlp) + 4 * local->written, sizeof value);
    local->write_mapped = twin_register_write(twin, offset, enable, value, edge + 1) && local->write_mapped;
    local->write_next = edge + 1;
    if (++local->written == tlp->dwords) {
        local->refused += local->write_mapped ? 0 : 1;
        local->write = NULL;
        local->write_next = TWIN_NEVER;
        pcie_tlp_unref(tlp);
    }
}

static void registers_write(peach2_twin_t *twin, pcie_tlp_t *tlp, uint64_t edge)
{
    struct twin_local *local = &twin->local;
    pcie_tlp_ref(tlp);
    local->write = tlp;
    local->written = 0;
    local->write_mapped = true;
    register_write(twin, edge);
}

// A beat is taken together with its last DW.
static void registers_moved(peach2_twin_t *twin, unsigned source, uint32_t offset, uint32_t dwords, uint64_t edge)
{
    twin_source_moved(twin, source, edge, 1, false);
    for (uint32_t done = 0; done < dwords;) {
        uint32_t room = 4 - (offset / 4 + done) % 4;
        done += room < dwords - done ? room : dwords - done;
        twin_source_moved(twin, source, edge + done, 1, done == dwords);
    }
}

static void write_take(peach2_twin_t *twin, unsigned source, uint64_t edge)
{
    struct twin_local *local = &twin->local;
    pcie_tlp_t *tlp = twin->offers[source].tlp;
    uint32_t beats = twin->offers[source].beats, offset = offset_of(tlp), dwords = tlp->dwords;
    enum region region = region_of(offset);
    bool raises = offset == PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_RAISE && tlp->dwords == 1;
    bool to_registers = region == REGION_REGISTER && (source == TWIN_N || raises);
    if (region == REGION_MEMORY) {
        memory_write(twin, tlp, edge);
    } else if (to_registers) {
        registers_write(twin, tlp, edge);
    } else {
        local->refused++;
    }
    twin_offer_clear(twin, source);
    if (source >= PEACH2_PORTS) {
        pcie_tlp_unref(tlp);
    }
    if (to_registers) {
        local->free_from = edge + dwords + 2;
        registers_moved(twin, source, offset, dwords, edge);
    } else {
        local->free_from = edge + beats;
        twin_source_moved(twin, source, edge + beats - 1, beats, true);
    }
}

// --- reads ----------------------------------------------------------------------------------------------------------

// Cycles between the first read of a register and the beat with this register and the rest of its 16 bytes.
static uint32_t collect_cycles(uint32_t offset, uint32_t dwords)
{
    uint32_t room = 4 - offset / 4 % 4;
    return 2 * (dwords < room ? dwords : room);
}

static void answer_offer(peach2_twin_t *twin, pcie_tlp_t *tlp, uint64_t from, uint32_t span)
{
    struct twin_local *local = &twin->local;
    const struct twin_offer offer = {tlp, from, twin_beats(tlp), span, local->dest, false};
    twin_offer_put(twin, TWIN_SOURCE_LOCAL, &offer);
}

static void refuse(peach2_twin_t *twin, uint64_t from)
{
    struct twin_local *local = &twin->local;
    local->unsupported++;
    local->dwords_done = local->request->dwords;
    answer_offer(twin, pcie_tlp_error(local->request, twin->config.requester, PCIE_CPL_UR), from, 1);
}

// Offers the completion with the data after dwords_done, up to a multiple of the maximum payload size.
static void answer_next(peach2_twin_t *twin, uint64_t from)
{
    struct twin_local *local = &twin->local;
    const pcie_tlp_t *request = local->request;
    uint32_t offset = offset_of(request) + 4 * local->dwords_done;
    uint32_t mps = twin->config.mps_bytes, left = request->dwords - local->dwords_done;
    uint32_t dwords = (mps - offset % mps) / 4;
    dwords = left < dwords ? left : dwords;
    // In bytes of the requested range.
    uint32_t skip = (uint32_t)(pcie_tlp_first_byte(request) - request->address);
    uint32_t begin = local->dwords_done == 0 ? 0 : 4 * local->dwords_done - skip;
    uint32_t end = 4 * (local->dwords_done + dwords) - skip, total = pcie_tlp_byte_count(request);
    end = end < total ? end : total;
    pcie_tlp_t *tlp =
        pcie_tlp_completion(request, twin->config.requester, begin, end - begin, local->data + skip + begin);
    uint32_t span = twin_beats(tlp);
    if (local->registers) {
        uint32_t first = collect_cycles(offset, dwords);
        span += 2 * dwords - first; // the other beats' registers are read between the beats
        from += local->dwords_done == 0 ? 0 : first;
    }
    local->dwords_done += dwords;
    answer_offer(twin, tlp, from, span);
}

void twin_local_answered(peach2_twin_t *twin, uint64_t last)
{
    struct twin_local *local = &twin->local;
    if (local->dwords_done < local->request->dwords) {
        answer_next(twin, last + 1);
        return;
    }
    pcie_tlp_unref(local->request);
    local->request = NULL;
    local->free_from = last + 1;
    local_plan(twin, last + 1);
}

// The registers' values of this edge; all at once, though the chip takes two cycles for each.
static void sample(peach2_twin_t *twin, uint64_t edge)
{
    struct twin_local *local = &twin->local;
    bool mapped = true;
    for (uint32_t dword = 0; dword < local->request->dwords; dword++) {
        uint32_t value;
        bool found = twin_register_read(twin, (offset_of(local->request) + 4 * dword) % REGISTER_BYTES, edge, &value);
        mapped = dword == 0 ? found : mapped; // the other holes read as 0
        memcpy(&local->sampled[4 * dword], &value, sizeof value);
    }
    local->sample_edge = TWIN_NEVER;
    if (!mapped) {
        refuse(twin, edge + 2);
        return;
    }
    local->data = local->sampled;
    answer_next(twin, edge + collect_cycles(offset_of(local->request), local->request->dwords));
}

static void read_take(peach2_twin_t *twin, unsigned source, uint64_t edge)
{
    struct twin_local *local = &twin->local;
    pcie_tlp_t *tlp = twin->offers[source].tlp;
    enum region region = region_of(offset_of(tlp));
    bool supported = !twin->offers[source].unsupported && region != REGION_NOTHING &&
                     (region == REGION_MEMORY || tlp->dwords <= REGISTER_READ_DWORDS);
    pcie_tlp_ref(tlp);
    local->request = tlp;
    local->dest = (uint8_t)source;
    local->free_from = TWIN_NEVER;
    local->dwords_done = 0;
    local->registers = region == REGION_REGISTER;
    twin_offer_clear(twin, source);
    twin_source_moved(twin, source, edge, 1, true);
    if (!supported) {
        refuse(twin, edge + 1);
    } else if (local->registers) {
        local->sample_edge = edge + 1;
    } else {
        local->data = &twin->memory[offset_of(tlp) % TWIN_MEMORY_BYTES];
        answer_next(twin, edge + 1);
    }
}

// --- whose turn it is -----------------------------------------------------------------------------------------------

static void local_run(void *ctx)
{
    static const struct sim_work local_access = {"board", "registers and internal memory", false};
    peach2_twin_t *twin = ctx;
    sim_cause_label(twin->sim, twin->name, &local_access);
    struct twin_local *local = &twin->local;
    uint64_t edge = twin_edge(twin);
    if (local->write_next <= edge) {
        register_write(twin, edge);
    }
    if (local->sample_edge <= edge) {
        sample(twin, edge);
    }
    if (local->free_from <= edge) {
        uint32_t candidates = 0;
        for (unsigned left = twin->offered[TWIN_LOCAL]; left != 0; left &= left - 1) {
            unsigned source = (unsigned)__builtin_ctz(left);
            candidates |= twin->offers[source].from <= edge ? 1u << source : 0;
        }
        if (candidates != 0) {
            local->owner = twin_round_robin(candidates, local->owner);
            if (twin->offers[local->owner].tlp->kind == PCIE_TLP_MWR) {
                write_take(twin, local->owner, edge);
            } else {
                read_take(twin, local->owner, edge);
            }
        }
    }
    local_plan(twin, edge + 1);
}

void twin_local_init(peach2_twin_t *twin)
{
    struct twin_local *local = &twin->local;
    local->owner = TWIN_SOURCES - 1;
    local->sample_edge = TWIN_NEVER;
    local->write_next = TWIN_NEVER;
    sim_event_init(&local->event, local_run, twin);
}

void twin_local_fini(peach2_twin_t *twin)
{
    sim_event_cancel(twin->sim, &twin->local.event);
    if (twin->local.write != NULL) {
        pcie_tlp_unref(twin->local.write);
    }
    if (twin->local.request != NULL) {
        pcie_tlp_unref(twin->local.request);
    }
}
