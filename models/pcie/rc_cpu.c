// The processor's side of the root complex: posted writes into windows and non-posted reads from them.
#include <string.h>

#include "models/pcie/rc_internal.h"

// Posted writes of the processor that may wait at a port in addition to those the link has taken.
enum { CPU_WRITES_WAITING_MAX = 1 };

void pcie_rc_cpu_init(struct pcie_rc_port *port)
{
    pcie_ring_init(&port->retries, sizeof(struct pcie_rc_retry));
    pcie_ring_init(&port->cpu_reads_waiting, sizeof(struct pcie_rc_cpu_read));
    pcie_tags_init(&port->cpu_tags, PCIE_RC_CPU_ID, PCIE_RC_CPU_FIRST_TAG, PCIE_RC_TAGS - PCIE_RC_CPU_FIRST_TAG, 8);
}

void pcie_rc_cpu_fini(struct pcie_rc_port *port)
{
    pcie_ring_fini(&port->cpu_reads_waiting);
    pcie_ring_fini(&port->retries);
}

// The processor is on socket 0.
static uint64_t far_ps(const struct pcie_rc_port *port)
{
    return port->socket == 0 ? 0 : port->rc->config.qpi_ps;
}

bool pcie_rc_is_far(const pcie_rc_t *rc, uint64_t address)
{
    const struct pcie_rc_port *port = rc->two_sockets ? pcie_rc_decode(rc, address, 1) : NULL;
    return port != NULL && port->socket != 0;
}

// --- writes --------------------------------------------------------------------------------------------------------

bool pcie_rc_cpu_write(pcie_rc_t *rc, uint64_t address, const void *data, uint32_t bytes, pcie_rc_retry_fn retry,
                       void *ctx)
{
    struct pcie_rc_port *port = pcie_rc_decode(rc, address, bytes);
    if (port == NULL) {
        rc->counters[PCIE_RC_UNSUPPORTED_WRITES]++;
        return true;
    }
    if (port->cpu_writes_waiting >= CPU_WRITES_WAITING_MAX) {
        rc->counters[PCIE_RC_CPU_REFUSALS]++;
        *(struct pcie_rc_retry *)pcie_ring_push(&port->retries) = (struct pcie_rc_retry){retry, ctx};
        return false;
    }
    rc->counters[PCIE_RC_CPU_WRITES]++;
    pcie_rc_egress_push(
        port, &(struct pcie_rc_leaving){.base = {.tlp = pcie_tlp_write(rc->pool, PCIE_RC_CPU_ID, address, bytes, data),
                                                 .ready_ps = sim_now_ps(rc->sim)},
                                        .from_cpu = true});
    return true;
}

void pcie_rc_cpu_retry(struct pcie_rc_port *port)
{
    // A write that is refused again goes to the end of the queue and waits for the next retry.
    uint32_t count = port->retries.count;
    while (count-- > 0 && port->cpu_writes_waiting < CPU_WRITES_WAITING_MAX) {
        struct pcie_rc_retry retry = *(struct pcie_rc_retry *)pcie_ring_front(&port->retries);
        pcie_ring_pop(&port->retries);
        retry.fn(retry.ctx);
    }
}

// --- reads ---------------------------------------------------------------------------------------------------------

// Runs from its own event: the caller of pcie_rc_cpu_read is never called back from inside.
static void read_refuse(pcie_rc_t *rc, const struct pcie_rc_cpu_read *read)
{
    rc->counters[PCIE_RC_UNSUPPORTED_READS]++;
    *(struct pcie_rc_refused_read *)pcie_ring_push(&rc->refused_reads) =
        (struct pcie_rc_refused_read){.done = read->done, .ctx = read->ctx};
    if (!sim_event_pending(&rc->refuse_event)) {
        sim_event_schedule(rc->sim, &rc->refuse_event, 0);
    }
}

void pcie_rc_cpu_refuse_run(void *ctx)
{
    pcie_rc_t *rc = ctx;
    uint32_t count = rc->refused_reads.count;
    while (count-- > 0) {
        struct pcie_rc_refused_read read = *(struct pcie_rc_refused_read *)pcie_ring_front(&rc->refused_reads);
        pcie_ring_pop(&rc->refused_reads);
        read.done(read.ctx, PCIE_CPL_UR, NULL, 0);
    }
}

static void read_issue(struct pcie_rc_port *port, const struct pcie_rc_cpu_read *read)
{
    uint8_t tag = pcie_tags_take(&port->cpu_tags, port, read->bytes);
    port->cpu_reads[tag] = *read;
    // The return latency is charged here too: a completion waits among the writes of all ports, which it must not
    // delay.
    pcie_tlp_t *tlp = pcie_tlp_read(port->rc->pool, PCIE_RC_CPU_ID, tag, read->address, read->bytes);
    pcie_rc_egress_push(port, &(struct pcie_rc_leaving){
                                  .base = {.tlp = tlp, .ready_ps = sim_now_ps(port->rc->sim) + 2 * far_ps(port)}});
}

void pcie_rc_cpu_read(pcie_rc_t *rc, uint64_t address, uint32_t bytes, pcie_rc_read_fn done, void *ctx)
{
    if (bytes == 0 || bytes > PCIE_RC_CPU_READ_BYTES - address % PCIE_RC_CPU_READ_BYTES) {
        sim_panic(rc->name, "the processor reads %u bytes at 0x%llx, not within a line of 64 bytes", bytes,
                  (unsigned long long)address);
    }
    struct pcie_rc_port *port = pcie_rc_decode(rc, address, bytes);
    const struct pcie_rc_cpu_read read = {.done = done, .ctx = ctx, .address = address, .bytes = bytes};
    rc->counters[PCIE_RC_CPU_READS]++;
    if (port == NULL || !pcie_end_is_up(port->end)) {
        read_refuse(rc, &read);
    } else if (!pcie_tags_free(&port->cpu_tags)) {
        *(struct pcie_rc_cpu_read *)pcie_ring_push(&port->cpu_reads_waiting) = read;
    } else {
        read_issue(port, &read);
    }
}

static void read_finish(struct pcie_rc_port *port, uint32_t tag, enum pcie_cpl_status status)
{
    struct pcie_rc_cpu_read read = port->cpu_reads[tag];
    pcie_tags_give(&port->cpu_tags, tag);
    if (port->cpu_reads_waiting.count > 0) {
        struct pcie_rc_cpu_read next = *(struct pcie_rc_cpu_read *)pcie_ring_front(&port->cpu_reads_waiting);
        pcie_ring_pop(&port->cpu_reads_waiting);
        read_issue(port, &next);
    }
    if (status == PCIE_CPL_SC) {
        read.done(read.ctx, status, read.data, read.bytes);
    } else {
        read.done(read.ctx, status, NULL, 0);
    }
}

void pcie_rc_cpu_complete(struct pcie_rc_port *port, pcie_tlp_t *completion)
{
    uint32_t tag, at, bytes;
    enum pcie_answer answer = pcie_tags_answer(&port->cpu_tags, completion, &tag, &at, &bytes);
    if (answer == PCIE_ANSWER_UNEXPECTED) {
        port->rc->counters[PCIE_RC_UNEXPECTED_COMPLETIONS]++;
        return;
    }
    if (answer == PCIE_ANSWER_FAILED) {
        read_finish(port, tag, completion->cpl_status);
        return;
    }
    memcpy(port->cpu_reads[tag].data + at, pcie_tlp_data(completion) + (completion->lower_address & 3), bytes);
    if (answer == PCIE_ANSWER_LAST) {
        read_finish(port, tag, PCIE_CPL_SC);
    }
}

void pcie_rc_cpu_port_down(struct pcie_rc_port *port)
{
    for (unsigned tag = PCIE_RC_CPU_FIRST_TAG; tag < PCIE_RC_TAGS; tag++) {
        if (port->cpu_tags.list[tag].owner != NULL) {
            read_refuse(port->rc, &port->cpu_reads[tag]);
            pcie_tags_give(&port->cpu_tags, tag);
        }
    }
    while (port->cpu_reads_waiting.count > 0) {
        read_refuse(port->rc, pcie_ring_front(&port->cpu_reads_waiting));
        pcie_ring_pop(&port->cpu_reads_waiting);
    }
}
