// The read data mover: sends requests under tags, and writes their completions into the on-chip memory.
#include <string.h>

#include "models/fpga/internal.h"

enum { SLOT_BITS = 4 }; // of an 8-bit tag; the other bits are a generation
_Static_assert(FPGA_TAGS_MAX == 1 << SLOT_BITS, "a slot is the lower bits of a tag");

static void timeout_event_run(void *ctx);

void fpga_read_mover_init(fpga_t *fpga)
{
    pcie_tags_init(&fpga->reader.tags, fpga->config.requester, 0, fpga->config.read_tags, SLOT_BITS);
    sim_event_init(&fpga->reader.timeout_event, timeout_event_run, fpga);
}

void fpga_read_mover_fini(fpga_t *fpga)
{
    sim_event_cancel(fpga->sim, &fpga->reader.timeout_event);
}

// --- requests --------------------------------------------------------------------------------------------------------

// The next piece of the descriptor: at most one request, within 4 KB.
static pcie_tlp_t *request_make(fpga_t *fpga, struct fpga_entry *entry)
{
    struct fpga_read_mover *reader = &fpga->reader;
    uint64_t remote = entry->remote + entry->issued;
    uint32_t bytes = entry->bytes - entry->issued;
    uint32_t to_page = FPGA_PAGE_BYTES - (uint32_t)(remote % FPGA_PAGE_BYTES);
    bytes = bytes < fpga->config.mrrs_bytes ? bytes : fpga->config.mrrs_bytes;
    bytes = bytes < to_page ? bytes : to_page;
    uint8_t tag = pcie_tags_take(&reader->tags, entry, bytes);
    reader->unsent = pcie_tags_slot(&reader->tags, tag);
    reader->requests[reader->unsent] = (struct fpga_request){.remote = remote, .local = entry->local + entry->issued};
    entry->issued += bytes;
    entry->outstanding++;
    if (reader->tags.outstanding > fpga->counters[FPGA_TAGS_PEAK]) {
        fpga->counters[FPGA_TAGS_PEAK] = reader->tags.outstanding;
    }
    return pcie_tlp_read(fpga->pool, fpga->config.requester, tag, remote, bytes);
}

pcie_tlp_t *fpga_read_mover_take(fpga_t *fpga, uint64_t *due_ps_out)
{
    struct fpga_controller *controller = &fpga->controllers[FPGA_READ];
    struct fpga_entry *entry = fpga_controller_front(controller, due_ps_out);
    if (entry == NULL || !pcie_tags_free(&fpga->reader.tags)) {
        return NULL; // the next free tag calls the kick
    }
    pcie_tlp_t *request = request_make(fpga, entry);
    if (entry->issued == entry->bytes) {
        fpga_controller_front_issued(controller);
    }
    fpga->counters[FPGA_READ_REQUESTS]++;
    return request;
}

void fpga_read_mover_sent(fpga_t *fpga)
{
    struct fpga_request *request = &fpga->reader.requests[fpga->reader.unsent];
    request->sent = true;
    request->deadline_ps = sim_now_ps(fpga->sim) + fpga->config.completion_timeout_ps;
    if (!sim_event_pending(&fpga->reader.timeout_event)) {
        sim_event_schedule_at(fpga->sim, &fpga->reader.timeout_event, request->deadline_ps);
    }
}

// --- completions -----------------------------------------------------------------------------------------------------

// The tag's request has ended. After an error no more of its descriptor is requested; outstanding requests still end.
static void tag_end(fpga_t *fpga, uint32_t slot, enum fpga_error error)
{
    struct fpga_controller *controller = &fpga->controllers[FPGA_READ];
    struct fpga_entry *entry = fpga->reader.tags.list[slot].owner;
    pcie_tags_give(&fpga->reader.tags, slot);
    entry->outstanding--;
    if (error != FPGA_OK && entry->error == FPGA_OK) {
        entry->error = error;
        if (fpga_controller_is_front(controller, entry)) {
            fpga_controller_front_issued(controller);
        }
    }
    if (entry->outstanding == 0 && (entry->issued == entry->bytes || entry->error != FPGA_OK)) {
        fpga_controller_end(controller, entry);
    }
    if (fpga->reader.tags.outstanding == 0) {
        sim_event_cancel(fpga->sim, &fpga->reader.timeout_event);
    }
    fpga_transmit_kick(fpga);
}

void fpga_read_mover_complete(fpga_t *fpga, pcie_tlp_t *tlp)
{
    uint32_t slot, at, bytes;
    enum pcie_answer answer = pcie_tags_answer(&fpga->reader.tags, tlp, &slot, &at, &bytes);
    switch (answer) {
    case PCIE_ANSWER_UNEXPECTED:
        fpga->counters[FPGA_UNEXPECTED_COMPLETIONS]++;
        return;
    case PCIE_ANSWER_FAILED:
        fpga->counters[FPGA_FAILED_READS]++;
        tag_end(fpga, slot, tlp->cpl_status == PCIE_CPL_UR ? FPGA_ERROR_UR : FPGA_ERROR_CA);
        return;
    case PCIE_ANSWER_PART:
    case PCIE_ANSWER_LAST:
        break;
    }
    memcpy(fpga->memory + fpga->reader.requests[slot].local + at, pcie_tlp_data(tlp), bytes);
    fpga->counters[FPGA_READ_BYTES] += bytes;
    sim_progress(fpga->sim);
    if (answer == PCIE_ANSWER_LAST) {
        tag_end(fpga, slot, FPGA_OK);
    }
}

// --- time-out --------------------------------------------------------------------------------------------------------

static void timeout_event_run(void *ctx)
{
    fpga_t *fpga = ctx;
    uint64_t now_ps = sim_now_ps(fpga->sim), next_ps = SIM_NEVER_PS;
    for (unsigned i = 0; i < FPGA_TAGS_MAX; i++) {
        const struct fpga_request *request = &fpga->reader.requests[i];
        if (fpga->reader.tags.list[i].owner == NULL || !request->sent) {
            continue;
        }
        if (request->deadline_ps <= now_ps) {
            fpga->counters[FPGA_TIMEOUTS]++;
            tag_end(fpga, i, FPGA_ERROR_TIMEOUT);
        } else if (request->deadline_ps < next_ps) {
            next_ps = request->deadline_ps;
        }
    }
    if (next_ps != SIM_NEVER_PS) {
        sim_event_schedule_at(fpga->sim, &fpga->reader.timeout_event, next_ps);
    }
}
