// The copy engines: memory reads with tags, memory writes, and after the writes a read of no bytes, whose completion
// proves that they are visible.
//
// An engine holds at most one request that the link refused: it checks for room first, and continues when there is
// room.
#include "models/gpu/internal.h"

static void reads_issue(struct gpu_unit *unit);
static void writes_issue(struct gpu_unit *unit);

// --- tags ------------------------------------------------------------------------------------------------------------

// The tag after the others belongs to the reads after writes (flushes), so that these never wait for the other engine.
static uint8_t flush_tag(const gpu_t *gpu)
{
    return (uint8_t)gpu->config.copy_reads_max;
}

void gpu_copy_init(gpu_t *gpu)
{
    pcie_tags_init(&gpu->tags, gpu->config.requester_id, 0, gpu->config.copy_reads_max, 8);
}

// The length of the piece from `address` to the next multiple of `most`, a power of two up to 4 KB (clause 2.2.7).
static uint32_t piece_bytes(uint64_t address, uint32_t most, uint64_t left)
{
    uint32_t bytes = most - (uint32_t)(address & (most - 1));
    return bytes < left ? bytes : (uint32_t)left;
}

// --- both ------------------------------------------------------------------------------------------------------------

static void fail(struct gpu_unit *unit)
{
    unit->status = SIM_ERR_FAULT;
    gpu_copy_stream_end(unit, true);
    if (unit->outstanding == 0) {
        gpu_unit_end(unit, 0);
    }
}

static void issue(struct gpu_unit *unit)
{
    if (!unit->moving || unit->status != SIM_OK || unit->flow != NULL) {
        return;
    }
    if (!pcie_end_is_up(unit->gpu->end)) {
        fail(unit);
    } else if (unit->item->work.kind == GPU_WORK_COPY_IN) {
        reads_issue(unit);
    } else {
        writes_issue(unit);
    }
}

void gpu_copy_begin(struct gpu_unit *unit)
{
    unit->done_bytes = 0;
    unit->outstanding = 0;
    unit->moving = true;
    gpu_copy_stream_begin(unit);
    issue(unit);
}

void gpu_copy_go_on(gpu_t *gpu)
{
    issue(&gpu->units[GPU_UNIT_IN]);
    issue(&gpu->units[GPU_UNIT_OUT]);
}

// --- in --------------------------------------------------------------------------------------------------------------

static void reads_issue(struct gpu_unit *unit)
{
    gpu_t *gpu = unit->gpu;
    const struct gpu_work *work = &unit->item->work;
    while (unit->done_bytes < work->bytes && gpu_egress_has_room(gpu, PCIE_NONPOSTED) && pcie_tags_free(&gpu->tags)) {
        uint64_t address = work->bus_address + unit->done_bytes;
        uint32_t bytes = piece_bytes(address, gpu->config.mrrs_bytes, work->bytes - unit->done_bytes);
        uint8_t tag = pcie_tags_take(&gpu->tags, unit, bytes);
        gpu->tag_targets[tag] = work->destination + unit->done_bytes;
        unit->done_bytes += bytes;
        unit->outstanding++;
        gpu->counters[GPU_COPY_READS]++;
        gpu_egress_push(gpu, pcie_tlp_read(gpu->pool, gpu->config.requester_id, tag, address, bytes), false);
    }
}

static void read_end(gpu_t *gpu, struct gpu_unit *unit)
{
    unit->outstanding--;
    if (unit->outstanding == 0 && (unit->status != SIM_OK || unit->done_bytes == unit->item->work.bytes)) {
        gpu_unit_end(unit, unit->item->work.kind == GPU_WORK_COPY_IN ? gpu->config.write_ps : 0);
    }
    gpu_copy_go_on(gpu);
}

static void flush_complete(gpu_t *gpu, const pcie_tlp_t *completion)
{
    struct gpu_unit *unit = gpu->flushes;
    if (unit == NULL) {
        gpu->counters[GPU_UNEXPECTED_COMPLETIONS]++;
        return;
    }
    unit->status = completion->cpl_status != PCIE_CPL_SC ? SIM_ERR_FAULT : unit->status;
    gpu->flushes = NULL;
    read_end(gpu, unit);
}

void gpu_copy_complete(gpu_t *gpu, pcie_tlp_t *completion)
{
    if (completion->tag == flush_tag(gpu)) {
        flush_complete(gpu, completion);
        return;
    }
    uint32_t tag, at, bytes;
    enum pcie_answer answer = pcie_tags_answer(&gpu->tags, completion, &tag, &at, &bytes);
    struct gpu_unit *unit = gpu->tags.list[tag].owner;
    if (answer == PCIE_ANSWER_UNEXPECTED) {
        gpu->counters[GPU_UNEXPECTED_COMPLETIONS]++;
        return;
    }
    if (answer == PCIE_ANSWER_FAILED) {
        unit->status = SIM_ERR_FAULT;
    } else {
        gpu_memory_store(gpu, gpu->tag_targets[tag] + at, pcie_tlp_data(completion) + (completion->lower_address & 3),
                         bytes);
        gpu->counters[GPU_COPY_READ_BYTES] += bytes;
    }
    if (answer != PCIE_ANSWER_PART) {
        pcie_tags_give(&gpu->tags, tag);
        read_end(gpu, unit);
    }
}

// --- out -------------------------------------------------------------------------------------------------------------

static void flush_issue(struct gpu_unit *unit)
{
    gpu_t *gpu = unit->gpu;
    const struct gpu_work *work = &unit->item->work;
    if (unit->outstanding > 0 || gpu->flushes != NULL) {
        return;
    }
    gpu->flushes = unit;
    unit->outstanding++;
    pcie_tlp_t *read =
        pcie_tlp_read(gpu->pool, gpu->config.requester_id, flush_tag(gpu), work->bus_address + work->bytes - 1, 1);
    read->first_be = 0;
    gpu_egress_push(gpu, read, false);
}

static void writes_issue(struct gpu_unit *unit)
{
    gpu_t *gpu = unit->gpu;
    const struct gpu_work *work = &unit->item->work;
    while (unit->done_bytes < work->bytes && gpu_egress_has_room(gpu, PCIE_POSTED)) {
        uint64_t address = work->bus_address + unit->done_bytes;
        uint32_t bytes = piece_bytes(address, gpu->config.mps_bytes, work->bytes - unit->done_bytes);
        const uint8_t *data = gpu->memory + work->source + unit->done_bytes;
        unit->done_bytes += bytes;
        gpu->counters[GPU_COPY_WRITES]++;
        gpu->counters[GPU_COPY_WRITE_BYTES] += bytes;
        gpu_egress_push(gpu, pcie_tlp_write(gpu->pool, gpu->config.requester_id, address, bytes, data), false);
    }
    if (unit->done_bytes == work->bytes) {
        flush_issue(unit);
    }
}

// --- down ------------------------------------------------------------------------------------------------------------

void gpu_copy_down(gpu_t *gpu)
{
    for (uint32_t tag = 0; tag < gpu->config.copy_reads_max; tag++) {
        struct gpu_unit *unit = gpu->tags.list[tag].owner;
        if (unit != NULL) {
            unit->outstanding--;
            pcie_tags_give(&gpu->tags, tag);
        }
    }
    if (gpu->flushes != NULL) {
        gpu->flushes->outstanding--;
        gpu->flushes = NULL;
    }
    for (enum gpu_unit_kind kind = GPU_UNIT_IN; kind <= GPU_UNIT_OUT; kind++) {
        if (gpu->units[kind].moving) {
            fail(&gpu->units[kind]);
        }
    }
}
