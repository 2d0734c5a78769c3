// The read data mover: requests under tags, and their completions into the on-chip memory.
#include <string.h>

#include "models/fpga/internal.h"

enum { SLOT_BITS = 4, GENERATIONS = 256 >> SLOT_BITS }; // of an 8-bit tag
_Static_assert(FPGA_TAGS_MAX == 1 << SLOT_BITS, "a slot is the lower bits of a tag");

static void timeout_event_run(void *ctx);

void fpga_read_mover_init(fpga_t *fpga)
{
    sim_event_init(&fpga->reader.timeout_event, timeout_event_run, fpga);
}

void fpga_read_mover_fini(fpga_t *fpga)
{
    sim_event_cancel(fpga->sim, &fpga->reader.timeout_event);
}

// --- requests --------------------------------------------------------------------------------------------------------

static struct fpga_tag *tag_free(fpga_t *fpga)
{
    for (uint32_t i = 0; i < fpga->config.read_tags; i++) {
        if (!fpga->reader.tags[i].active) {
            return &fpga->reader.tags[i];
        }
    }
    return NULL;
}

// The next piece of the descriptor takes the tag: at most one request, within 4 KB.
static void tag_take(fpga_t *fpga, struct fpga_tag *tag, struct fpga_entry *entry)
{
    struct fpga_read_mover *reader = &fpga->reader;
    uint64_t remote = entry->remote + entry->issued;
    uint32_t bytes = entry->bytes - entry->issued;
    uint32_t to_page = FPGA_PAGE_BYTES - (uint32_t)(remote % FPGA_PAGE_BYTES);
    bytes = bytes < fpga->config.mrrs_bytes ? bytes : fpga->config.mrrs_bytes;
    bytes = bytes < to_page ? bytes : to_page;
    *tag = (struct fpga_tag){
        .active = true,
        .generation = (uint8_t)((tag->generation + 1) % GENERATIONS),
        .entry = entry,
        .remote = remote,
        .local = entry->local + entry->issued,
        .bytes = bytes,
        .left = bytes,
    };
    entry->issued += bytes;
    entry->outstanding++;
    reader->active++;
    reader->unsent = tag;
    if (reader->active > fpga->counters[FPGA_TAGS_PEAK]) {
        fpga->counters[FPGA_TAGS_PEAK] = reader->active;
    }
}

pcie_tlp_t *fpga_read_mover_take(fpga_t *fpga, uint64_t *due_ps_out)
{
    struct fpga_controller *controller = &fpga->controllers[FPGA_READ];
    struct fpga_tag *tag = tag_free(fpga);
    struct fpga_entry *entry = fpga_controller_front(controller, due_ps_out);
    if (entry == NULL || tag == NULL) {
        return NULL; // a tag that comes free kicks
    }
    tag_take(fpga, tag, entry);
    if (entry->issued == entry->bytes) {
        fpga_controller_front_issued(controller);
    }
    fpga->counters[FPGA_READ_REQUESTS]++;
    uint8_t number = (uint8_t)(tag->generation << SLOT_BITS | (tag - fpga->reader.tags));
    return pcie_tlp_read(fpga->pool, fpga->config.requester, number, tag->remote, tag->bytes);
}

void fpga_read_mover_sent(fpga_t *fpga)
{
    struct fpga_tag *tag = fpga->reader.unsent;
    tag->sent = true;
    tag->deadline_ps = sim_now_ps(fpga->sim) + fpga->config.completion_timeout_ps;
    if (!sim_event_pending(&fpga->reader.timeout_event)) {
        sim_event_schedule_at(fpga->sim, &fpga->reader.timeout_event, tag->deadline_ps);
    }
}

// --- completions -----------------------------------------------------------------------------------------------------

// The tag's request is over. With an error nothing more of its descriptor is asked for; what is outstanding is awaited.
static void tag_end(fpga_t *fpga, struct fpga_tag *tag, enum fpga_error error)
{
    struct fpga_controller *controller = &fpga->controllers[FPGA_READ];
    struct fpga_entry *entry = tag->entry;
    tag->active = false;
    fpga->reader.active--;
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
    if (fpga->reader.active == 0) {
        sim_event_cancel(fpga->sim, &fpga->reader.timeout_event);
    }
    fpga_transmit_kick(fpga);
}

// The request that the completion continues, or NULL. Those of one request come in the order of their addresses.
static struct fpga_tag *tag_find(fpga_t *fpga, const pcie_tlp_t *tlp)
{
    struct fpga_tag *tag = &fpga->reader.tags[tlp->tag % FPGA_TAGS_MAX];
    if (!tag->active || !tag->sent || tlp->requester != fpga->config.requester ||
        tag->generation != tlp->tag >> SLOT_BITS) {
        return NULL;
    }
    if (tlp->kind == PCIE_TLP_CPL) {
        return tlp->cpl_status == PCIE_CPL_SC ? NULL : tag;
    }
    uint64_t next = tag->remote + (tag->bytes - tag->left);
    bool continues = tlp->byte_count == tag->left && tlp->lower_address == (next & 0x7f);
    return continues && tlp->cpl_status == PCIE_CPL_SC ? tag : NULL;
}

void fpga_read_mover_complete(fpga_t *fpga, pcie_tlp_t *tlp)
{
    struct fpga_tag *tag = tag_find(fpga, tlp);
    if (tag == NULL) {
        fpga->counters[FPGA_UNEXPECTED_COMPLETIONS]++;
        return;
    }
    if (tlp->kind == PCIE_TLP_CPL) {
        fpga->counters[FPGA_FAILED_READS]++;
        tag_end(fpga, tag, tlp->cpl_status == PCIE_CPL_UR ? FPGA_ERROR_UR : FPGA_ERROR_CA);
        return;
    }
    uint32_t bytes = pcie_tlp_byte_count(tlp);
    memcpy(fpga->memory + tag->local + (tag->bytes - tag->left), pcie_tlp_data(tlp), bytes);
    fpga->counters[FPGA_READ_BYTES] += bytes;
    tag->left -= bytes;
    sim_progress(fpga->sim);
    if (tag->left == 0) {
        tag_end(fpga, tag, FPGA_OK);
    }
}

// --- time-out --------------------------------------------------------------------------------------------------------

static void timeout_event_run(void *ctx)
{
    fpga_t *fpga = ctx;
    uint64_t now_ps = sim_now_ps(fpga->sim), next_ps = SIM_NEVER_PS;
    for (unsigned i = 0; i < FPGA_TAGS_MAX; i++) {
        struct fpga_tag *tag = &fpga->reader.tags[i];
        if (!tag->active || !tag->sent) {
            continue;
        }
        if (tag->deadline_ps <= now_ps) {
            fpga->counters[FPGA_TIMEOUTS]++;
            tag_end(fpga, tag, FPGA_ERROR_TIMEOUT);
        } else if (tag->deadline_ps < next_ps) {
            next_ps = tag->deadline_ps;
        }
    }
    if (next_ps != SIM_NEVER_PS) {
        sim_event_schedule_at(fpga->sim, &fpga->reader.timeout_event, next_ps);
    }
}
