// The copy engines: memory reads with tags, memory writes, and a read of no bytes behind the writes, whose completion
// says that they are visible.
//
// Neither engine holds more than one request that the link refused: they ask for room, and go on when there is.
#include "models/gpu/internal.h"

static void reads_issue(struct gpu_unit *unit);
static void writes_issue(struct gpu_unit *unit);

// --- tags ------------------------------------------------------------------------------------------------------------

// The last tag belongs to the reads behind writes, so that these never wait for the other engine.
static bool tag_take(gpu_t *gpu, bool flush, uint8_t *tag_out)
{
    uint32_t count = gpu->config.copy_reads_max;
    if (flush) {
        *tag_out = (uint8_t)count;
        return gpu->tags[count].unit == NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t tag = (gpu->next_tag + i) % count;
        if (gpu->tags[tag].unit == NULL) {
            gpu->next_tag = tag + 1;
            *tag_out = (uint8_t)tag;
            return true;
        }
    }
    return false;
}

// The piece from `address` on that ends at a multiple of `most`, a power of two up to 4 KB (clause 2.2.7).
static uint32_t piece_bytes(uint64_t address, uint32_t most, uint64_t left)
{
    uint32_t bytes = most - (uint32_t)(address & (most - 1));
    return bytes < left ? bytes : (uint32_t)left;
}

// --- both ------------------------------------------------------------------------------------------------------------

static void fail(struct gpu_unit *unit)
{
    unit->status = SIM_ERR_FAULT;
    if (unit->outstanding == 0) {
        gpu_unit_end(unit, 0);
    }
}

static void issue(struct gpu_unit *unit)
{
    if (!unit->moving || unit->status != SIM_OK) {
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
    uint8_t tag;
    while (unit->done_bytes < work->bytes && gpu_egress_has_room(gpu, PCIE_NONPOSTED) && tag_take(gpu, false, &tag)) {
        uint64_t address = work->bus_address + unit->done_bytes;
        uint32_t bytes = piece_bytes(address, gpu->config.mrrs_bytes, work->bytes - unit->done_bytes);
        gpu->tags[tag] =
            (struct gpu_tag){.unit = unit, .device_address = work->destination + unit->done_bytes, .bytes = bytes};
        unit->done_bytes += bytes;
        unit->outstanding++;
        gpu->counters[GPU_COPY_READS]++;
        gpu_egress_push(gpu, pcie_tlp_read(gpu->pool, gpu->config.requester_id, tag, address, bytes), false);
    }
}

static void data_take(gpu_t *gpu, struct gpu_tag *tag, pcie_tlp_t *completion)
{
    uint32_t bytes = pcie_tlp_byte_count(completion);
    gpu_memory_store(gpu, tag->device_address + (tag->bytes - completion->byte_count),
                     pcie_tlp_data(completion) + (completion->lower_address & 3), bytes);
    tag->received_bytes += bytes;
    gpu->counters[GPU_COPY_READ_BYTES] += bytes;
}

static void tag_end(gpu_t *gpu, struct gpu_tag *tag)
{
    struct gpu_unit *unit = tag->unit;
    *tag = (struct gpu_tag){0};
    unit->outstanding--;
    if (unit->outstanding == 0 && (unit->status != SIM_OK || unit->done_bytes == unit->item->work.bytes)) {
        gpu_unit_end(unit, unit->item->work.kind == GPU_WORK_COPY_IN ? gpu->config.write_ps : 0);
    }
    gpu_copy_go_on(gpu);
}

void gpu_copy_complete(gpu_t *gpu, pcie_tlp_t *completion)
{
    struct gpu_tag *tag = &gpu->tags[completion->tag];
    // Clause 2.3.2: a completion that answers nothing, or more than was asked for, is discarded.
    if (tag->unit == NULL || completion->byte_count > tag->bytes - tag->received_bytes) {
        gpu->counters[GPU_UNEXPECTED_COMPLETIONS]++;
        return;
    }
    if (completion->cpl_status != PCIE_CPL_SC) {
        tag->unit->status = SIM_ERR_FAULT;
        tag_end(gpu, tag);
        return;
    }
    if (!tag->flush) {
        data_take(gpu, tag, completion);
    }
    if (tag->flush || tag->received_bytes == tag->bytes) {
        tag_end(gpu, tag);
    }
}

// --- out -------------------------------------------------------------------------------------------------------------

static void flush_issue(struct gpu_unit *unit)
{
    gpu_t *gpu = unit->gpu;
    const struct gpu_work *work = &unit->item->work;
    uint8_t tag;
    if (unit->outstanding > 0 || !tag_take(gpu, true, &tag)) {
        return;
    }
    gpu->tags[tag] = (struct gpu_tag){.unit = unit, .bytes = 1, .flush = true};
    unit->outstanding++;
    pcie_tlp_t *read = pcie_tlp_read(gpu->pool, gpu->config.requester_id, tag, work->bus_address + work->bytes - 1, 1);
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
    for (unsigned i = 0; i < GPU_TAGS_MAX; i++) {
        if (gpu->tags[i].unit != NULL) {
            gpu->tags[i].unit->outstanding--;
            gpu->tags[i] = (struct gpu_tag){0};
        }
    }
    for (enum gpu_unit_kind kind = GPU_UNIT_IN; kind <= GPU_UNIT_OUT; kind++) {
        if (gpu->units[kind].moving) {
            fail(&gpu->units[kind]);
        }
    }
}
