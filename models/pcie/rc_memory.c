// The memory side of the root complex: writes become visible in order of arrival over all ports, reads are worked on in
// order, a bounded number at a time, and see every write that arrived before them.
#include "models/pcie/rc_internal.h"

static void commit_event_run(void *ctx);
static void read_event_run(void *ctx);

void pcie_rc_memory_init(pcie_rc_t *rc)
{
    pcie_ring_init(&rc->commits, sizeof(struct pcie_rc_commit));
    pcie_ring_init(&rc->reads_waiting, sizeof(struct pcie_rc_memory_read));
    for (unsigned far = 0; far < PCIE_RC_SOCKETS; far++) {
        pcie_ring_init(&rc->reads_active[far], sizeof(struct pcie_rc_memory_read));
    }
    rc->far_memory_base = UINT64_MAX;
    sim_event_init(&rc->commit_event, commit_event_run, rc);
    sim_event_init(&rc->read_event, read_event_run, rc);
}

static void reads_drop(struct pcie_ring *reads)
{
    while (reads->count > 0) {
        pcie_tlp_unref(((struct pcie_rc_memory_read *)pcie_ring_front(reads))->request);
        pcie_ring_pop(reads);
    }
    pcie_ring_fini(reads);
}

void pcie_rc_memory_fini(pcie_rc_t *rc)
{
    sim_event_cancel(rc->sim, &rc->read_event);
    sim_event_cancel(rc->sim, &rc->commit_event);
    for (unsigned far = 0; far < PCIE_RC_SOCKETS; far++) {
        reads_drop(&rc->reads_active[far]);
    }
    reads_drop(&rc->reads_waiting);
    while (rc->commits.count > 0) {
        pcie_tlp_unref(((struct pcie_rc_commit *)pcie_ring_front(&rc->commits))->tlp);
        pcie_ring_pop(&rc->commits);
    }
    pcie_ring_fini(&rc->commits);
}

// Does the port reach that memory through the other socket?
static bool is_far(const struct pcie_rc_port *port, const pcie_tlp_t *tlp)
{
    return port->socket != (tlp->address >= port->rc->far_memory_base ? 1u : 0u);
}

// --- writes --------------------------------------------------------------------------------------------------------

static bool byte_enabled(const pcie_tlp_t *tlp, uint32_t offset)
{
    uint32_t dword = offset / 4;
    if (dword == 0) {
        return tlp->first_be >> offset & 1;
    }
    return dword < tlp->dwords - 1u || (tlp->last_be >> offset % 4 & 1);
}

// One call for each run of enabled bytes: byte enables may have holes in the first and the last DW (clause 2.2.5).
static void write_runs(pcie_rc_t *rc, pcie_tlp_t *tlp)
{
    const uint8_t *data = pcie_tlp_data(tlp);
    uint32_t first = (uint32_t)(pcie_tlp_first_byte(tlp) - tlp->address);
    uint32_t end = first + pcie_tlp_byte_count(tlp);
    while (first < end) {
        uint32_t run = first;
        while (run < end && byte_enabled(tlp, run)) {
            run++;
        }
        rc->memory->write(rc->memory_ctx, tlp->address + first, data + first, run - first);
        rc->counters[PCIE_RC_MEMORY_WRITE_BYTES] += run - first;
        while (run < end && !byte_enabled(tlp, run)) {
            run++;
        }
        first = run;
    }
}

static bool run_is_single(const pcie_tlp_t *tlp)
{
    // A contiguous run ends at the DW's top in the first DW and begins at its bottom in the last one.
    static const uint16_t UP_TO_TOP = 1 << 0xf | 1 << 0xe | 1 << 0xc | 1 << 0x8;
    static const uint16_t FROM_BOTTOM = 1 << 0xf | 1 << 0x7 | 1 << 0x3 | 1 << 0x1;
    return tlp->dwords > 1 && (UP_TO_TOP >> tlp->first_be & 1) && (FROM_BOTTOM >> tlp->last_be & 1);
}

static void write_apply(pcie_rc_t *rc, pcie_tlp_t *tlp)
{
    if (!run_is_single(tlp)) {
        write_runs(rc, tlp);
    } else {
        uint64_t first = pcie_tlp_first_byte(tlp);
        uint32_t bytes = pcie_tlp_byte_count(tlp);
        rc->memory->write(rc->memory_ctx, first, pcie_tlp_data(tlp) + (first - tlp->address), bytes);
        rc->counters[PCIE_RC_MEMORY_WRITE_BYTES] += bytes;
    }
    sim_progress(rc->sim);
}

static void commit_due(pcie_rc_t *rc)
{
    uint64_t now_ps = sim_now_ps(rc->sim);
    while (rc->commits.count > 0) {
        struct pcie_rc_commit commit = *(struct pcie_rc_commit *)pcie_ring_front(&rc->commits);
        if (commit.visible_ps > now_ps) {
            return;
        }
        pcie_ring_pop(&rc->commits);
        if (pcie_tlp_class(commit.tlp) == PCIE_POSTED) {
            write_apply(rc, commit.tlp);
        } else {
            pcie_rc_cpu_complete(commit.port, commit.tlp);
        }
        pcie_tlp_unref(commit.tlp);
    }
}

static void commit_schedule(pcie_rc_t *rc)
{
    if (rc->commits.count > 0 && !sim_event_pending(&rc->commit_event)) {
        const struct pcie_rc_commit *front = pcie_ring_front(&rc->commits);
        sim_event_schedule_at(rc->sim, &rc->commit_event, front->visible_ps);
    }
}

static void commit_event_run(void *ctx)
{
    pcie_rc_t *rc = ctx;
    commit_due(rc);
    commit_schedule(rc);
}

static void commit_push(struct pcie_rc_port *port, pcie_tlp_t *tlp, uint64_t visible_ps)
{
    pcie_rc_t *rc = port->rc;
    *(struct pcie_rc_commit *)pcie_ring_push(&rc->commits) =
        (struct pcie_rc_commit){.tlp = tlp, .visible_ps = visible_ps, .port = port};
    rc->visible_ps = visible_ps;
    commit_schedule(rc);
}

void pcie_rc_memory_write(struct pcie_rc_port *port, pcie_tlp_t *tlp)
{
    pcie_rc_t *rc = port->rc;
    rc->counters[PCIE_RC_MEMORY_WRITES]++;
    pcie_end_release(port->end, tlp);
    uint64_t visible_ps = sim_now_ps(rc->sim) + rc->config.memory_write_ps;
    visible_ps += is_far(port, tlp) ? rc->config.qpi_ps : 0;
    // One order for all: a write of the nearer memory waits for one of the other that came before it.
    commit_push(port, tlp, visible_ps > rc->visible_ps ? visible_ps : rc->visible_ps);
}

void pcie_rc_memory_behind_writes(struct pcie_rc_port *port, pcie_tlp_t *completion)
{
    pcie_rc_t *rc = port->rc;
    if (rc->commits.count > 0) {
        commit_push(port, completion, rc->visible_ps);
        return;
    }
    pcie_rc_cpu_complete(port, completion);
    pcie_tlp_unref(completion);
}

// --- reads ---------------------------------------------------------------------------------------------------------

static void read_event_by(pcie_rc_t *rc, uint64_t due_ps)
{
    if (!sim_event_pending(&rc->read_event) || rc->read_event.due_ps > due_ps) {
        sim_event_schedule_at(rc->sim, &rc->read_event, due_ps);
    }
}

static void reads_start(pcie_rc_t *rc)
{
    uint64_t now_ps = sim_now_ps(rc->sim);
    while (rc->reads_at_work < rc->config.memory_reads_max && rc->reads_waiting.count > 0) {
        struct pcie_rc_memory_read read = *(struct pcie_rc_memory_read *)pcie_ring_front(&rc->reads_waiting);
        pcie_ring_pop(&rc->reads_waiting);
        pcie_end_release(read.port->end, read.request);
        bool far = is_far(read.port, read.request);
        read.due_ps = now_ps + rc->config.memory_read_ps + (far ? 2 * rc->config.qpi_ps : 0);
        if (read.due_ps < rc->visible_ps) {
            read.due_ps = rc->visible_ps;
        }
        *(struct pcie_rc_memory_read *)pcie_ring_push(&rc->reads_active[far]) = read;
        rc->reads_at_work++;
        read_event_by(rc, read.due_ps);
    }
}

void pcie_rc_memory_read(struct pcie_rc_port *port, pcie_tlp_t *tlp)
{
    pcie_rc_t *rc = port->rc;
    rc->counters[PCIE_RC_MEMORY_READS]++;
    *(struct pcie_rc_memory_read *)pcie_ring_push(&rc->reads_waiting) =
        (struct pcie_rc_memory_read){.request = tlp, .port = port};
    reads_start(rc);
}

void pcie_rc_memory_read_left(pcie_rc_t *rc)
{
    rc->reads_at_work--;
    reads_start(rc);
}

// Clause 2.3.1.1: a completion carries at most Max_Payload_Size and, but for the last, ends at a read completion
// boundary.
static void read_answer(pcie_rc_t *rc, const struct pcie_rc_memory_read *read)
{
    uint64_t address = pcie_tlp_first_byte(read->request);
    uint32_t total = pcie_tlp_byte_count(read->request), offset = 0;
    uint64_t now_ps = sim_now_ps(rc->sim);
    rc->counters[PCIE_RC_MEMORY_READ_BYTES] += total;
    while (offset < total) {
        uint64_t begin = address + offset;
        uint64_t end = (begin + rc->config.mps_bytes) & ~(uint64_t)(rc->config.rcb_bytes - 1);
        uint32_t left = total - offset;
        uint32_t bytes = end - begin < left ? (uint32_t)(end - begin) : left;
        pcie_tlp_t *completion = pcie_tlp_completion(read->request, PCIE_RC_CPU_ID, offset, bytes, NULL);
        rc->memory->read(rc->memory_ctx, begin, pcie_tlp_data(completion) + (begin & 3), bytes);
        offset += bytes;
        pcie_rc_egress_push(
            read->port, &(struct pcie_rc_leaving){.tlp = completion, .ready_ps = now_ps, .ends_read = offset == total});
    }
}

static void reads_answer_due(pcie_rc_t *rc, struct pcie_ring *reads)
{
    while (reads->count > 0) {
        struct pcie_rc_memory_read read = *(struct pcie_rc_memory_read *)pcie_ring_front(reads);
        if (read.due_ps > sim_now_ps(rc->sim)) {
            read_event_by(rc, read.due_ps);
            return;
        }
        pcie_ring_pop(reads);
        read_answer(rc, &read);
        pcie_tlp_unref(read.request);
    }
}

static void read_event_run(void *ctx)
{
    pcie_rc_t *rc = ctx;
    commit_due(rc);
    for (unsigned far = 0; far < PCIE_RC_SOCKETS; far++) {
        reads_answer_due(rc, &rc->reads_active[far]);
    }
}
