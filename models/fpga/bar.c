// The two BARs: on-chip memory, and the control module. Requests take effect in the order of their arrival.
#include <string.h>

#include "models/fpga/internal.h"
#include "models/pcie/completer.h"

enum { READ_COMPLETION_BOUNDARY = 128 }; // of an endpoint (clause 2.3.1.1)

static void access_event_run(void *ctx);

void fpga_bar_init(fpga_t *fpga)
{
    fpga_fifo_init(&fpga->accesses);
    sim_event_init(&fpga->access_event, access_event_run, fpga);
}

void fpga_bar_fini(fpga_t *fpga)
{
    sim_event_cancel(fpga->sim, &fpga->access_event);
    fpga_fifo_fini(&fpga->accesses);
}

void fpga_bar_request(fpga_t *fpga, pcie_tlp_t *tlp)
{
    uint64_t due_ps = fpga_edge_ps(fpga) + fpga_cycles_ps(fpga, fpga->config.access_cycles);
    fpga_fifo_push(&fpga->accesses, &(struct fpga_due){.due_ps = due_ps, .tlp = tlp});
    if (!sim_event_pending(&fpga->access_event)) {
        sim_event_schedule_at(fpga->sim, &fpga->access_event, due_ps);
    }
}

// --- on-chip memory --------------------------------------------------------------------------------------------------

static void dword_write(uint8_t *memory, const uint8_t *data, uint8_t enables)
{
    for (unsigned lane = 0; lane < 4; lane++) {
        if (enables >> lane & 1) {
            memory[lane] = data[lane];
        }
    }
}

static void memory_write(fpga_t *fpga, pcie_tlp_t *tlp)
{
    uint8_t *memory = fpga->memory + (tlp->address - fpga->memory_base);
    const uint8_t *data = pcie_tlp_data(tlp);
    uint32_t last = (tlp->dwords - 1u) * 4;
    dword_write(memory, data, tlp->first_be);
    if (last > 0) {
        memcpy(memory + 4, data + 4, last - 4);
        dword_write(memory + last, data + last, tlp->last_be);
    }
}

static void memory_read(fpga_t *fpga, pcie_tlp_t *tlp)
{
    struct pcie_completions answers = pcie_completions_of(tlp, fpga->config.mps_bytes, READ_COMPLETION_BOUNDARY);
    const uint8_t *from = fpga->memory + (answers.address - fpga->memory_base);
    uint32_t offset, bytes;
    while (pcie_completions_next(&answers, &offset, &bytes)) {
        pcie_tlp_t *completion = pcie_tlp_completion(tlp, fpga->config.requester, offset, bytes, from + offset);
        fpga_transmit_answer(fpga, completion, pcie_completions_over(&answers) ? tlp : NULL);
    }
}

// --- control ---------------------------------------------------------------------------------------------------------

static uint32_t control_value(const struct fpga_controller *controller, uint32_t offset)
{
    if (offset >= FPGA_COUNT && offset < FPGA_COUNT + FPGA_IDS * 4) {
        return controller->count[(offset - FPGA_COUNT) / 4];
    }
    if (offset >= FPGA_STATUS && offset < FPGA_STATUS + FPGA_IDS * 4) {
        return controller->status[(offset - FPGA_STATUS) / 4];
    }
    return offset == FPGA_WORDS ? controller->word_count : offset == FPGA_LEVEL ? controller->used : 0;
}

static bool is_whole_dword(const pcie_tlp_t *tlp)
{
    return tlp->dwords == 1 && tlp->first_be == 0xf;
}

static void control_write(fpga_t *fpga, struct fpga_controller *controller, uint32_t offset, pcie_tlp_t *tlp)
{
    uint32_t word = 0;
    if (is_whole_dword(tlp) && offset == FPGA_DESCRIPTOR) {
        memcpy(&word, pcie_tlp_data(tlp), sizeof word);
        fpga_controller_word(controller, word);
    } else if (is_whole_dword(tlp) && offset == FPGA_WORDS) {
        controller->word_count = 0;
    } else {
        fpga->counters[FPGA_CONTROL_IGNORED]++;
    }
}

static void control_read(fpga_t *fpga, const struct fpga_controller *controller, uint32_t offset, pcie_tlp_t *tlp)
{
    if (!is_whole_dword(tlp)) {
        fpga->counters[FPGA_CONTROL_IGNORED]++;
        fpga_transmit_answer(fpga, pcie_tlp_error(tlp, fpga->config.requester, PCIE_CPL_CA), tlp);
        return;
    }
    uint32_t value = control_value(controller, offset);
    fpga_transmit_answer(fpga, pcie_tlp_completion(tlp, fpga->config.requester, 0, sizeof value, &value), tlp);
}

// --- decode ----------------------------------------------------------------------------------------------------------

static bool lies_in(const pcie_tlp_t *tlp, uint64_t base, uint64_t bytes)
{
    return tlp->address >= base && tlp->address - base < bytes && tlp->dwords * 4ull <= bytes - (tlp->address - base);
}

static void write_perform(fpga_t *fpga, pcie_tlp_t *tlp)
{
    if (lies_in(tlp, fpga->memory_base, fpga->config.memory_bytes)) {
        memory_write(fpga, tlp);
    } else if (lies_in(tlp, fpga->control_base, FPGA_CONTROL_BYTES)) {
        uint32_t offset = (uint32_t)(tlp->address - fpga->control_base);
        control_write(fpga, &fpga->controllers[offset / FPGA_CONTROLLER_STRIDE], offset % FPGA_CONTROLLER_STRIDE, tlp);
    } else {
        fpga->counters[FPGA_UNCLAIMED_WRITES]++;
    }
    pcie_end_release(fpga->end, tlp);
    pcie_tlp_unref(tlp);
    sim_progress(fpga->sim);
}

// A read stays in the receive buffer until its last completion has left.
static void read_perform(fpga_t *fpga, pcie_tlp_t *tlp)
{
    if (lies_in(tlp, fpga->memory_base, fpga->config.memory_bytes)) {
        memory_read(fpga, tlp);
    } else if (lies_in(tlp, fpga->control_base, FPGA_CONTROL_BYTES)) {
        uint32_t offset = (uint32_t)(tlp->address - fpga->control_base);
        control_read(fpga, &fpga->controllers[offset / FPGA_CONTROLLER_STRIDE], offset % FPGA_CONTROLLER_STRIDE, tlp);
    } else {
        fpga->counters[FPGA_UNCLAIMED_READS]++;
        fpga_transmit_answer(fpga, pcie_unsupported(tlp, fpga->config.requester), tlp);
    }
}

static void access_event_run(void *ctx)
{
    static const struct sim_work accessing = {"FPGA", "access to its registers or memory", false};
    fpga_t *fpga = ctx;
    sim_cause_label(fpga->sim, fpga->name, &accessing);
    struct fpga_due due = fpga_fifo_pop(&fpga->accesses);
    const struct fpga_due *next = fpga_fifo_front(&fpga->accesses);
    if (next != NULL) {
        sim_event_schedule_at(fpga->sim, &fpga->access_event, next->due_ps);
    }
    if (due.tlp->kind == PCIE_TLP_MWR) {
        write_perform(fpga, due.tlp);
    } else {
        read_perform(fpga, due.tlp);
    }
}
