// The path to the hard IP: one packet at a time, 32 B a cycle, the three classes in turn. A packet that the link
// refuses waits; nothing passes a waiting write, a waiting read or completion stops only its own class.
#include "models/fpga/internal.h"

struct leaving {
    struct pcie_leaving base;
    enum pcie_class class;
};

static void transmit_event_run(void *ctx);
static void packet_sent(void *ctx, const void *slot);

static const struct pcie_egress_ops EGRESS_OPS = {.sent = packet_sent};

void fpga_transmit_init(fpga_t *fpga)
{
    pcie_egress_init(&fpga->transmit.egress, fpga->sim, fpga->name, sizeof(struct leaving), &EGRESS_OPS, fpga);
    fpga_fifo_init(&fpga->transmit.answers);
    sim_event_init(&fpga->transmit.event, transmit_event_run, fpga);
}

void fpga_transmit_fini(fpga_t *fpga)
{
    struct fpga_transmit *transmit = &fpga->transmit;
    sim_event_cancel(fpga->sim, &transmit->event);
    pcie_egress_fini(&transmit->egress);
    if (transmit->moving != NULL) {
        pcie_tlp_unref(transmit->moving);
    }
    if (transmit->answer_request != NULL) {
        pcie_tlp_unref(transmit->answer_request);
    }
    fpga_fifo_fini(&transmit->answers);
}

void fpga_transmit_answer(fpga_t *fpga, pcie_tlp_t *completion, pcie_tlp_t *request)
{
    uint64_t due_ps = fpga_edge_ps(fpga) + fpga_cycles_ps(fpga, fpga->config.answer_cycles);
    fpga_fifo_push(&fpga->transmit.answers,
                   &(struct fpga_due){.due_ps = due_ps, .tlp = completion, .request = request});
    fpga_transmit_kick(fpga);
}

static pcie_tlp_t *answer_take(fpga_t *fpga, uint64_t *due_ps_out)
{
    const struct fpga_due *front = fpga_fifo_front(&fpga->transmit.answers);
    *due_ps_out = front == NULL ? SIM_NEVER_PS : front->due_ps;
    if (front == NULL || front->due_ps > sim_now_ps(fpga->sim)) {
        return NULL;
    }
    struct fpga_due due = fpga_fifo_pop(&fpga->transmit.answers);
    fpga->transmit.answer_request = due.request;
    return due.tlp;
}

static void answer_sent(fpga_t *fpga)
{
    pcie_tlp_t *request = fpga->transmit.answer_request;
    fpga->transmit.answer_request = NULL;
    if (request != NULL) {
        pcie_end_release(fpga->end, request);
        pcie_tlp_unref(request);
    }
}

static const struct source {
    pcie_tlp_t *(*take)(fpga_t *fpga, uint64_t *due_ps_out);
    void (*sent)(fpga_t *fpga);
} SOURCES[PCIE_CLASS_COUNT] = {
    [PCIE_POSTED] = {fpga_write_mover_take, fpga_write_mover_sent},
    [PCIE_NONPOSTED] = {fpga_read_mover_take, fpga_read_mover_sent},
    [PCIE_COMPLETION] = {answer_take, answer_sent},
};

// Puts the next packet on the path, or determines when there will be one.
static void transmit_begin(fpga_t *fpga)
{
    struct fpga_transmit *transmit = &fpga->transmit;
    uint64_t next_ps = SIM_NEVER_PS;
    for (unsigned i = 1; i <= PCIE_CLASS_COUNT; i++) {
        unsigned class = (transmit->last + i) % PCIE_CLASS_COUNT;
        uint64_t due_ps = SIM_NEVER_PS;
        if (pcie_egress_count(&transmit->egress, (enum pcie_class) class) > 0) {
            continue;
        }
        pcie_tlp_t *tlp = SOURCES[class].take(fpga, &due_ps);
        if (tlp != NULL) {
            transmit->moving = tlp;
            transmit->last = class;
            transmit->begun_ps = sim_now_ps(fpga->sim);
            sim_event_schedule(fpga->sim, &transmit->event, fpga_tlp_path_ps(fpga, tlp));
            return;
        }
        next_ps = due_ps < next_ps ? due_ps : next_ps;
    }
    if (next_ps != SIM_NEVER_PS) {
        sim_event_schedule_at(fpga->sim, &transmit->event, next_ps);
    }
}

static void transmit_end(fpga_t *fpga)
{
    struct fpga_transmit *transmit = &fpga->transmit;
    pcie_tlp_t *tlp = transmit->moving;
    enum pcie_class class = pcie_tlp_class(tlp);
    transmit->moving = NULL;
    (void)pcie_egress_send(&transmit->egress, &(struct leaving){{.tlp = tlp, .begun_ps = transmit->begun_ps}, class});
    fpga->counters[FPGA_STALLS] += pcie_egress_count(&transmit->egress, class) > 0;
}

static void packet_sent(void *ctx, const void *slot)
{
    SOURCES[((const struct leaving *)slot)->class].sent(ctx);
}

static bool write_waits(const fpga_t *fpga)
{
    return pcie_egress_count(&fpga->transmit.egress, PCIE_POSTED) > 0;
}

static void transmit_event_run(void *ctx)
{
    static const struct sim_work transmitting = {"FPGA", "data mover", false};
    fpga_t *fpga = ctx;
    sim_cause_label(fpga->sim, fpga->name, &transmitting);
    if (fpga->transmit.moving != NULL) {
        transmit_end(fpga);
    }
    if (fpga->transmit.moving == NULL && !write_waits(fpga)) {
        transmit_begin(fpga);
    }
}

void fpga_transmit_kick(fpga_t *fpga)
{
    struct fpga_transmit *transmit = &fpga->transmit;
    uint64_t edge_ps = fpga_edge_ps(fpga);
    if (transmit->moving != NULL || write_waits(fpga)) {
        return;
    }
    if (!sim_event_pending(&transmit->event) || transmit->event.due_ps > edge_ps) {
        sim_event_schedule_at(fpga->sim, &transmit->event, edge_ps);
    }
}

void fpga_transmit_ready(void *ctx, pcie_end_t *end)
{
    fpga_t *fpga = ctx;
    (void)end;
    (void)pcie_egress_pump(&fpga->transmit.egress);
    fpga_transmit_kick(fpga);
}
