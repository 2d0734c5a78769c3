// The memory side of the root complex: writes become visible in order of arrival over all ports; reads are processed in
// order, a bounded number at a time, and see every write that arrived before them.
#include "models/pcie/completer.h"
#include "models/pcie/rc_internal.h"
#include "sim/adversary/adversary.h"
#include "sim/kernel/trace.h"

static const struct sim_work written = {"memory", "write becomes visible", false};
static const struct sim_work waited = {"memory", "wait for other reads", false};
static const struct sim_work fetched = {"memory", "read", false};

static const struct sim_trace_field written_fields[] = {{"address", SIM_TRACE_HEX, NULL},
                                                        {"length_bytes", SIM_TRACE_DECIMAL, NULL}};
static const struct sim_trace_point memory_written = {"memory_written", written_fields, 2,
                                                      "a device's write becomes visible in host memory"};

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
static void memory_soon(const pcie_rc_t *rc, const pcie_tlp_t *tlp)
{
    if (rc->memory->soon != NULL) {
        rc->memory->soon(rc->memory_ctx, tlp->address, tlp->dwords * 4u);
    }
}

// --- writes --------------------------------------------------------------------------------------------------------

struct applying {
    pcie_rc_t *rc;
    bool lost; // part of the write was lost
};

static void run_write(void *ctx, uint64_t address, const void *data, uint32_t bytes)
{
    struct applying *applying = ctx;
    pcie_rc_t *rc = applying->rc;
    if (rc->memory->write(rc->memory_ctx, address, data, bytes)) {
        rc->counters[PCIE_RC_MEMORY_WRITE_BYTES] += bytes;
    } else {
        applying->lost = true;
    }
}

static void write_apply(pcie_rc_t *rc, pcie_tlp_t *tlp)
{
    struct applying applying = {.rc = rc};
    pcie_tlp_for_runs(tlp, run_write, &applying);
    rc->counters[PCIE_RC_UNSUPPORTED_WRITES] += applying.lost;
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
        sim_cause_arrive(rc->sim, commit.cause);
        if (pcie_tlp_class(commit.tlp) == PCIE_POSTED) {
            sim_trace(rc->sim, rc->name, &memory_written,
                      (const uint64_t[]){commit.tlp->address, pcie_tlp_payload_bytes(commit.tlp)});
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
    sim_cause_t cause = sim_cause_extend(rc->sim, sim_cause_now(rc->sim), visible_ps, rc->name, &written);
    *(struct pcie_rc_commit *)pcie_ring_push(&rc->commits) =
        (struct pcie_rc_commit){.tlp = tlp, .visible_ps = visible_ps, .port = port, .cause = cause};
    rc->visible_ps = visible_ps;
    commit_schedule(rc);
}

void pcie_rc_memory_write(struct pcie_rc_port *port, pcie_tlp_t *tlp)
{
    pcie_rc_t *rc = port->rc;
    rc->counters[PCIE_RC_MEMORY_WRITES]++;
    memory_soon(rc, tlp);
    pcie_end_release(port->end, tlp);
    uint64_t visible_ps = sim_now_ps(rc->sim) + rc->config.memory_write_ps;
    visible_ps += pcie_rc_memory_is_far(port, tlp->address) ? rc->config.qpi_ps : 0;
    // No clause bounds the delay. Clause 2.4.1: a posted write does not pass another; the order below keeps this rule.
    visible_ps += adversary_late_ps(rc->config.adversary, ADVERSARY_MEMORY_WRITE);
    // All writes have one order: a write to near memory waits for an earlier write to far memory.
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
        bool far = pcie_rc_memory_is_far(read.port, read.request->address);
        read.due_ps = now_ps + rc->config.memory_read_ps + (far ? 2 * rc->config.qpi_ps : 0);
        // Clause 2.8: a requester waits for at least 50 us before it gives up.
        read.due_ps += adversary_late_ps(rc->config.adversary, ADVERSARY_MEMORY_READ);
        if (read.due_ps < rc->visible_ps) {
            read.due_ps = rc->visible_ps;
        }
        read.cause = sim_cause_extend(rc->sim, read.cause, now_ps, rc->name, &waited);
        read.cause = sim_cause_extend(rc->sim, read.cause, read.due_ps, rc->name, &fetched);
        *(struct pcie_rc_memory_read *)pcie_ring_push(&rc->reads_active[far]) = read;
        rc->reads_at_work++;
        read_event_by(rc, read.due_ps);
    }
}

void pcie_rc_memory_read(struct pcie_rc_port *port, pcie_tlp_t *tlp)
{
    pcie_rc_t *rc = port->rc;
    rc->counters[PCIE_RC_MEMORY_READS]++;
    memory_soon(rc, tlp);
    *(struct pcie_rc_memory_read *)pcie_ring_push(&rc->reads_waiting) =
        (struct pcie_rc_memory_read){.request = tlp, .port = port, .cause = sim_cause_now(rc->sim)};
    reads_start(rc);
}

void pcie_rc_memory_read_left(pcie_rc_t *rc)
{
    rc->reads_at_work--;
    reads_start(rc);
}

// A completion with an error is the last (2.3.2).
static void read_answer(pcie_rc_t *rc, const struct pcie_rc_memory_read *read)
{
    struct pcie_completions answers = pcie_completions_of(read->request, rc->config.mps_bytes, rc->config.rcb_bytes);
    uint64_t now_ps = sim_now_ps(rc->sim);
    uint32_t offset, bytes;
    bool last = false;
    while (!last && pcie_completions_next(&answers, &offset, &bytes)) {
        uint64_t begin = answers.address + offset;
        pcie_tlp_t *completion = pcie_tlp_completion(read->request, PCIE_RC_CPU_ID, offset, bytes, NULL);
        last = pcie_completions_over(&answers);
        if (rc->memory->read(rc->memory_ctx, begin, pcie_tlp_data(completion) + (begin & 3), bytes)) {
            rc->counters[PCIE_RC_MEMORY_READ_BYTES] += bytes;
        } else {
            pcie_tlp_unref(completion);
            completion = pcie_unsupported(read->request, PCIE_RC_CPU_ID);
            rc->counters[PCIE_RC_UNSUPPORTED_READS]++;
            last = true;
        }
        pcie_rc_egress_push(
            read->port, &(struct pcie_rc_leaving){.base = {.tlp = completion, .ready_ps = now_ps}, .ends_read = last});
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
        sim_cause_arrive(rc->sim, read.cause);
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
