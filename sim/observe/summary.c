// Counts of each program's calls, and hints on known patterns of slow programs.
#include <inttypes.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "sim/observe/internal.h"

struct summing {
    FILE *out;
    const observe_process_t *process;
    char idle[256]; // queue pairs without requests that were executed
};

static uint64_t calls(const observe_process_t *process, enum journal_call call)
{
    return process->calls[call].count;
}

bool observe_is_wait(unsigned call)
{
    return call == JOURNAL_GET_CQ_EVENT || call == JOURNAL_GET_ASYNC_EVENT || call == JOURNAL_TCA_WAIT ||
           call == JOURNAL_TCA_WAIT_RECEIVE;
}

static uint64_t calls_ps(const observe_process_t *process)
{
    uint64_t ps = 0;
    for (unsigned i = 0; i < JOURNAL_CALL_COUNT; i++) {
        ps += observe_is_wait(i) ? 0 : process->calls[i].ps;
    }
    return ps;
}

static uint64_t events_ps(const observe_process_t *process)
{
    uint64_t ps = 0;
    for (unsigned i = 0; i < JOURNAL_CALL_COUNT; i++) {
        ps += observe_is_wait(i) ? process->calls[i].ps : 0;
    }
    return ps;
}

static bool is_user(const observe_process_t *process)
{
    return calls(process, JOURNAL_OPEN_DEVICE) != 0 || process->dma_count != 0;
}

static uint64_t lived_ps(const observe_process_t *process)
{
    return (process->ended ? process->ended_ps : sim_now_ps(process->observe->sim)) - process->began_ps;
}

static const char *time_text(uint64_t ps, char text[48])
{
    observe_time_print(ps, text, 48);
    return text;
}

static const char *bytes_text(uint64_t bytes, char text[32])
{
    observe_bytes_print(bytes, text, 32);
    return text;
}

// --- hints ----------------------------------------------------------------------------------------------------------

static void hints_print(const struct observe_object *object, FILE *out)
{
    const struct observe_qp *qp = &object->qp;
    const struct observe_object *cq =
        observe_object_find(object->process, OBSERVE_CQ, object->context, qp->made.send_cq);
    if (qp->rnr_naks > 0) {
        fprintf(out,
                "    hint: messages came %" PRIu64
                " times before a receive request was there (RNR NAK); each costs the "
                "sender its RNR timer: post receives earlier, or more of them\n",
                qp->rnr_naks);
    }
    if (qp->retries > 0) {
        fprintf(out, "    hint: requests were sent again %" PRIu64 " times\n", qp->retries);
    }
    if (qp->send.posted >= 16 && qp->signaled == qp->send.posted && qp->send.depth_most > 1) {
        fprintf(out, "    hint: every send request asks for a completion; with several under way, one in a few is "
                     "enough\n");
    }
    if (qp->send.posted >= 16 && qp->send.depth_most == 1) {
        fprintf(out, "    hint: at most one send request was under way: the program waits for each before it posts the "
                     "next\n");
    }
    if (qp->receive.posted >= 16 && qp->receive.depth_most == 1) {
        fprintf(out, "    hint: at most one receive request was posted at a time\n");
    }
    if (cq != NULL && cq->cq.made.entries == 1 && qp->signaled >= 16) {
        fprintf(out, "    hint: the completion queue has one entry; the device reads the consumer's index before each "
                     "second completion\n");
    }
}

// --- text -----------------------------------------------------------------------------------------------------------

// MPI makes a queue pair for each peer, and uses few.
static bool is_idle(const struct observe_qp *qp)
{
    return qp->send.posted == 0 && qp->receive.completed == 0 && qp->rnr_naks == 0;
}

// "3 (8 receive requests posted), 4": a program may wait on one of them.
static void idle_add(struct summing *summing, const struct observe_object *object)
{
    size_t length = strlen(summing->idle), room = sizeof summing->idle - length;
    uint64_t posted = object->qp.receive.posted;
    int more = snprintf(summing->idle + length, room, "%s%u", length > 0 ? ", " : "", object->number);
    if (posted > 0 && more < (int)room) {
        more += snprintf(summing->idle + length + more, room - (size_t)more, " (%" PRIu64 " receive request%s posted)",
                         posted, posted == 1 ? "" : "s");
    }
    if (more >= (int)room) { // no room for it: the list ends
        snprintf(summing->idle + (length < sizeof summing->idle - 4 ? length : sizeof summing->idle - 4), 4, "...");
    }
}

static void qp_print(void *ctx, struct observe_object *object)
{
    struct summing *summing = ctx;
    FILE *out = summing->out;
    char bytes[32], time[48];
    if (object->kind != OBSERVE_QP) {
        return;
    }
    const struct observe_qp *qp = &object->qp;
    if (is_idle(qp)) {
        idle_add(summing, object);
        return;
    }
    const struct observe_object *peer = observe_peer(object),
                                *device = observe_object_find(object->process, OBSERVE_CONTEXT, object->context, 0);
    fprintf(out, "  %s qp %u %s", device != NULL ? device->device.device : "?", object->number,
            observe_qp_type_name(qp->made.type));
    if (peer != NULL) {
        fprintf(out, " -> %s qp %u", peer->process->node, peer->number);
    }
    fprintf(out, "\n");
    for (unsigned i = 0; i < OBSERVE_OPCODES; i++) {
        if (qp->sends[i] != 0) {
            fprintf(out, "    %s: %" PRIu64 ", %s", observe_opcode_name(i), qp->sends[i],
                    bytes_text(qp->send_bytes[i], bytes));
            uint64_t ps = qp->last_ps - qp->first_ps;
            if (ps > 0) {
                fprintf(out, "; %.3f MB/s, one in %s", (double)qp->send_bytes[i] * 1e6 / (double)ps,
                        time_text(ps / qp->sends[i], time));
            }
            fprintf(out, "\n");
        }
    }
    if (qp->receive.posted != 0) {
        fprintf(out, "    receive requests: %" PRIu64 ", %" PRIu64 " completed\n", qp->receive.posted,
                qp->receive.completed);
    }
    fprintf(out,
            "    completions of sends: %" PRIu64 " (%" PRIu64 " in error); most at once: %" PRIu64 " sends, %" PRIu64
            " receives; RNR NAKs sent %" PRIu64 ", retries %" PRIu64 "\n",
            qp->send.completed, qp->send.errors, qp->send.depth_most, qp->receive.depth_most, qp->rnr_naks,
            qp->retries);
    hints_print(object, out);
}

static void process_print(const observe_process_t *process, FILE *out)
{
    char title[128], time[6][48], bytes[32];
    observe_title(process, title, sizeof title);
    fprintf(out, "%s (%s), %s:\n", title, process->name, time_text(lived_ps(process), time[0]));
    uint64_t known_ps = calls_ps(process) + process->waited_ps[OBSERVE_POLLING] + events_ps(process) +
                        process->waited_ps[OBSERVE_WAITING];
    fprintf(out, "  in calls %s, polling %s (%" PRIu64 " empty polls), waiting for events %s, other waits %s; ",
            time_text(calls_ps(process), time[1]), time_text(process->waited_ps[OBSERVE_POLLING], time[2]),
            process->waits[OBSERVE_POLLING], time_text(events_ps(process), time[3]),
            time_text(process->waited_ps[OBSERVE_WAITING], time[4]));
    if (known_ps <= lived_ps(process)) {
        fprintf(out, "the rest (own costs, beginning and end) %s\n", time_text(lived_ps(process) - known_ps, time[5]));
    } else {
        fprintf(out, "of its threads together\n");
    }
    fprintf(out, "  registrations: %" PRIu64 " of %s together, %s\n", calls(process, JOURNAL_REG_MR),
            bytes_text(process->registered_bytes, bytes), time_text(process->calls[JOURNAL_REG_MR].ps, time[5]));
    if (process->copied_regions != 0) {
        fprintf(out,
                "    hint: the board does not reach %" PRIu64
                " of them (%s): what is sent from and to there is copied by "
                "the processor; tcaMalloc, cudaMallocHost and GPU memory are reached\n",
                process->copied_regions, bytes_text(process->copied_bytes, bytes));
    }
    observe_pools_print(process, out);
    if (process->dma_count != 0) {
        fprintf(out, "  DMA of the board by libtca: %" PRIu64 ", %s; waited for notifications %" PRIu64 " times\n",
                process->dma_count, bytes_text(process->dma_bytes, bytes), calls(process, JOURNAL_TCA_WAIT_RECEIVE));
    }
    struct summing summing = {.out = out, .process = process};
    observe_objects_visit(process, qp_print, &summing);
    if (summing.idle[0] != '\0') {
        fprintf(out, "  sent nothing and completed no receive request: qp %s\n", summing.idle);
    }
}

void observe_summary_print(const observe_t *observe, FILE *out)
{
    for (const observe_process_t *process = observe->processes; process != NULL; process = process->next) {
        if (is_user(process)) {
            process_print(process, out);
        }
    }
}

// --- YAML -----------------------------------------------------------------------------------------------------------

static void qp_yaml(void *ctx, struct observe_object *object)
{
    const struct summing *summing = ctx;
    FILE *out = summing->out;
    if (object->kind != OBSERVE_QP) {
        return;
    }
    const struct observe_qp *qp = &object->qp;
    fprintf(out, "      - {qp: %u, type: %s, dest_qp: %u, sends: {", object->number,
            observe_qp_type_name(qp->made.type), qp->path.dest);
    unsigned count = 0;
    for (unsigned i = 0; i < OBSERVE_OPCODES; i++) {
        if (qp->sends[i] != 0) {
            fprintf(out, "%s%s: {count: %" PRIu64 ", bytes: %" PRIu64 "}", count++ == 0 ? "" : ", ",
                    observe_opcode_name(i), qp->sends[i], qp->send_bytes[i]);
        }
    }
    fprintf(out,
            "}, signaled: %" PRIu64 ", send_completions: %" PRIu64 ", send_errors: %" PRIu64 ", receives: %" PRIu64
            ", receive_completions: %" PRIu64 ", receive_errors: %" PRIu64 ", send_depth: %" PRIu64
            ", receive_depth: %" PRIu64 ", rnr_naks: %" PRIu64 ", retries: %" PRIu64 ", active_ps: %" PRIu64 "}\n",
            qp->signaled, qp->send.completed, qp->send.errors, qp->receive.posted, qp->receive.completed,
            qp->receive.errors, qp->send.depth_most, qp->receive.depth_most, qp->rnr_naks, qp->retries,
            qp->last_ps - qp->first_ps);
}

static bool qp_any(const observe_process_t *process)
{
    return calls(process, JOURNAL_CREATE_QP) > process->calls[JOURNAL_CREATE_QP].errors;
}

void observe_summary_yaml(const observe_t *observe, FILE *out)
{
    unsigned count = 0;
    for (const observe_process_t *process = observe->processes; process != NULL; process = process->next) {
        if (!is_user(process)) {
            continue;
        }
        fprintf(out, "%s", count++ == 0 ? "verbs:\n" : "");
        fprintf(out,
                "  - node: %s\n    process: %u\n    lived_ps: %" PRIu64 "\n    calls_ps: %" PRIu64
                "\n    polling_ps: %" PRIu64 "\n    empty_polls: %" PRIu64 "\n    events_ps: %" PRIu64
                "\n    waiting_ps: %" PRIu64 "\n    registrations: %" PRIu64 "\n    registered_bytes: %" PRIu64
                "\n    registrations_ps: %" PRIu64 "\n",
                process->node, process->number, lived_ps(process), calls_ps(process),
                process->waited_ps[OBSERVE_POLLING], process->waits[OBSERVE_POLLING], events_ps(process),
                process->waited_ps[OBSERVE_WAITING], calls(process, JOURNAL_REG_MR), process->registered_bytes,
                process->calls[JOURNAL_REG_MR].ps);
        if (process->dma_count != 0) {
            fprintf(out, "    dma: {count: %" PRIu64 ", bytes: %" PRIu64 "}\n", process->dma_count, process->dma_bytes);
        }
        observe_pools_yaml(process, out);
        if (qp_any(process)) {
            fprintf(out, "    queue_pairs:\n");
            struct summing summing = {.out = out, .process = process};
            observe_objects_visit(process, qp_yaml, &summing);
        }
    }
}
