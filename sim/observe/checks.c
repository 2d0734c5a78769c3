// Mistakes of programs that a real device cannot see (--check). Each is a line with its call frames in the program.
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "sim/observe/internal.h"
#include "verbs-shim/ibverbs/opcodes.h"

// Limits: lines of a run; objects of a kind that are listed; bytes of a line.
enum { FINDINGS_MAX = 64, LEAKS_MAX = 8, LINE_BYTES = 1024 };
// The requests of a queue that are compared with each other.
enum { COMPARED_MAX = 4096 };

// how: the words before the call frames, such as "in".
__attribute__((format(printf, 6, 7))) static void find(observe_process_t *process, uint64_t at_ps,
                                                       const uint64_t *frames, unsigned frame_count, const char *how,
                                                       const char *format, ...)
{
    observe_t *observe = process->observe;
    char title[128], what[384], where[384] = "", line[LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (++observe->findings > FINDINGS_MAX) {
        return;
    }
    observe_title(process, title, sizeof title);
    bool known =
        frames != NULL && observe->options.where != NULL && frames[0] != 0 &&
        observe->options.where(observe->options.where_ctx, process->tag, frames, frame_count, where, sizeof where);
    snprintf(line, sizeof line, "check: %s: %s%s%s%s%s%s", title, what, known ? "; " : "", known ? how : "",
             known ? " " : "", known ? where : "",
             observe->findings == FINDINGS_MAX ? " (further ones are not shown)" : "");
    observe_say(process, at_ps, line);
}

#define FIND(process, call, ...) find(process, (call)->at_ps, (call)->frames, OBSERVE_FRAMES, "in", __VA_ARGS__)

// --- posts ----------------------------------------------------------------------------------------------------------

static void cq_check(observe_process_t *process, const struct observe_call *call, const struct observe_object *qp,
                     bool is_receive)
{
    const struct journal_qp *made = &qp->qp.made;
    uint32_t handle = is_receive ? made->receive_cq - 1 : made->send_cq;
    struct observe_object *cq = observe_object_find(process, OBSERVE_CQ, qp->context, handle);
    if (cq != NULL && !cq->cq.overrun_reported && cq->cq.outstanding >= cq->cq.made.entries) {
        cq->cq.overrun_reported = true;
        FIND(process, call,
             "completion queue %u may be overrun: it has %u entries, and %" PRIu64
             " requests under way may put a completion there",
             handle, cq->cq.made.entries, cq->cq.outstanding + 1);
    }
}

static void reads_check(observe_process_t *process, const struct observe_call *call, struct observe_object *qp,
                        const struct journal_send *send)
{
    bool reads = ibverbs_opcode_has(send->opcode, HCA_HAS_RESPONSE);
    const struct observe_object *peer = reads && !qp->qp.reads_reported ? observe_peer(qp) : NULL;
    if (peer != NULL && qp->qp.path.reads > peer->qp.path.dest_reads) {
        qp->qp.reads_reported = true;
        FIND(process, call, "qp %u may have %u reads and atomics outstanding, its peer takes %u (max_dest_rd_atomic)",
             qp->number, qp->qp.path.reads, peer->qp.path.dest_reads);
    }
}

static void send_check(observe_process_t *process, const struct observe_call *call, const struct journal_record *record)
{
    struct observe_object *qp = observe_object_find(process, OBSERVE_QP, record->context, record->send.qp);
    if (qp == NULL) {
        return;
    }
    if (qp->qp.state == IBV_QPS_ERR && !qp->qp.error_reported) {
        qp->qp.error_reported = true;
        FIND(process, call, "qp %u is in the error state: what is posted to it (wr_id 0x%" PRIx64 ") is flushed",
             qp->number, record->send.wr_id);
    }
    if (record->send.signaled) {
        cq_check(process, call, qp, false);
    }
    reads_check(process, call, qp, &record->send);
}

// Two receive requests with common memory: the second message may overwrite the first before the program reads it.
static void overlap_check(observe_process_t *process, const struct observe_call *call, struct observe_object *qp,
                          const struct journal_receive *receive)
{
    const struct observe_queue *queue = &qp->qp.receive;
    for (uint32_t i = 0; i < queue->depth && i < COMPARED_MAX && !qp->qp.overlap_reported; i++) {
        const struct observe_request *other = &queue->requests[(queue->first + i) % queue->room];
        if (other->bytes != 0 && receive->bytes != 0 && other->address < receive->address + receive->bytes &&
            receive->address < other->address + other->bytes) {
            qp->qp.overlap_reported = true;
            FIND(process, call,
                 "qp %u: the receive requests wr_id 0x%" PRIx64 " and 0x%" PRIx64
                 " have memory in common: a message may be overwritten before it is read",
                 qp->number, other->wr_id, receive->wr_id);
        }
    }
}

static void receive_check(observe_process_t *process, const struct observe_call *call,
                          const struct journal_record *record)
{
    struct observe_object *qp = observe_object_find(process, OBSERVE_QP, record->context, record->receive.queue);
    if (qp != NULL && record->call == JOURNAL_POST_RECV) {
        cq_check(process, call, qp, true);
        overlap_check(process, call, qp, &record->receive);
    }
}

// --- deregistration and destruction ---------------------------------------------------------------------------------

struct region {
    const struct journal_mr *mr;
    uint32_t context;
    const struct observe_object *qp; // has a request that uses the region's memory
    uint64_t wr_id;
};

static bool queue_uses(const struct observe_queue *queue, const struct journal_mr *mr, uint64_t *wr_id_out)
{
    for (uint32_t i = 0; i < queue->depth; i++) {
        const struct observe_request *request = &queue->requests[(queue->first + i) % queue->room];
        if (request->bytes != 0 && request->address >= mr->address && request->address < mr->address + mr->bytes) {
            *wr_id_out = request->wr_id;
            return true;
        }
    }
    return false;
}

static void region_visit(void *ctx, struct observe_object *object)
{
    struct region *region = ctx;
    if (object->kind == OBSERVE_QP && !object->ended && object->context == region->context && region->qp == NULL &&
        object->qp.state != IBV_QPS_ERR && object->qp.state != IBV_QPS_RESET &&
        (queue_uses(&object->qp.send, region->mr, &region->wr_id) ||
         queue_uses(&object->qp.receive, region->mr, &region->wr_id))) {
        region->qp = object;
    }
}

static void dereg_check(observe_process_t *process, const struct observe_call *call,
                        const struct journal_record *record)
{
    struct region region = {.mr = &record->mr, .context = record->context};
    observe_objects_visit(process, region_visit, &region);
    if (region.qp != NULL) {
        FIND(process, call,
             "the region with rkey 0x%x is deregistered while a request of qp %u (wr_id 0x%" PRIx64 ") uses it",
             record->mr.rkey, region.qp->number, region.wr_id);
    }
}

static void destroy_check(observe_process_t *process, const struct observe_call *call,
                          const struct journal_record *record)
{
    const struct observe_object *qp = observe_object_find(process, OBSERVE_QP, record->context, record->qp.number);
    unsigned signaled = 0;
    for (uint32_t i = 0; qp != NULL && i < qp->qp.send.depth; i++) {
        signaled += qp->qp.send.requests[(qp->qp.send.first + i) % qp->qp.send.room].signaled;
    }
    if (signaled > 0 && qp->qp.state == IBV_QPS_RTS) {
        FIND(process, call, "qp %u is destroyed while %u of its send requests are not known to be complete", qp->number,
             signaled);
    }
}

// --- leaks ----------------------------------------------------------------------------------------------------------

static const char *leak_name(const struct observe_object *object)
{
    switch (object->kind) {
    case OBSERVE_CONTEXT:
        return "device context";
    case OBSERVE_MR:
        return "memory region";
    case OBSERVE_CQ:
        return "completion queue";
    case OBSERVE_SRQ:
        return "shared receive queue";
    case OBSERVE_QP:
        return "queue pair";
    case OBSERVE_OTHER:
        break;
    }
    switch (object->other.value) {
    case JOURNAL_ALLOC_PD:
        return "protection domain";
    case JOURNAL_CREATE_CHANNEL:
        return "completion channel";
    }
    return "address handle";
}

struct leaks {
    observe_process_t *process;
    unsigned count[OBSERVE_OTHER + 1];
    bool of_context; // only what belongs to a context that is being closed
    uint32_t context;
};

// librdmacm keeps what it opened until the process ends, as the original does.
static bool is_kept(const struct observe_object *object)
{
    const struct observe_options *options = &object->process->observe->options;
    bool may_be =
        object->kind == OBSERVE_CONTEXT || (object->kind == OBSERVE_OTHER && object->other.value == JOURNAL_ALLOC_PD);
    char where[384];
    if (!may_be || options->where == NULL || object->frames[0] == 0 ||
        !options->where(options->where_ctx, object->process->tag, object->frames, OBSERVE_FRAMES, where,
                        sizeof where)) {
        return false;
    }
    where[strcspn(where, ")")] = '\0'; // the innermost frame alone, without its callers
    return strstr(where, "(librdmacm.so") != NULL;
}

static void leak_visit(void *ctx, struct observe_object *object)
{
    struct leaks *leaks = ctx;
    if (object->ended || is_kept(object) ||
        (leaks->of_context && (object->context != leaks->context || object->kind == OBSERVE_CONTEXT)) ||
        ++leaks->count[object->kind] > LEAKS_MAX) {
        return;
    }
    char number[32];
    snprintf(number, sizeof number, object->kind == OBSERVE_MR ? "with key 0x%x" : "%u", object->number);
    find(leaks->process, sim_now_ps(leaks->process->observe->sim), object->frames, OBSERVE_FRAMES, "made in",
         "%s %s is never %s", leak_name(object), number,
         object->kind == OBSERVE_CONTEXT ? "closed"
         : object->kind == OBSERVE_MR    ? "deregistered"
                                         : "destroyed");
}

void observe_process_exits(observe_process_t *process)
{
    if (process != NULL && process->observe->options.check && !process->ended) {
        struct leaks leaks = {.process = process};
        observe_objects_visit(process, leak_visit, &leaks);
    }
}

// Closing a context also destroys the objects that it still has, as a kernel does.
static void close_check(observe_process_t *process, const struct journal_record *record)
{
    struct leaks leaks = {.process = process, .of_context = true, .context = record->context};
    observe_objects_visit(process, leak_visit, &leaks);
}

// --- reports of the program's libraries -----------------------------------------------------------------------------

static void mistake_report(observe_process_t *process, const struct observe_call *call,
                           const struct journal_record *record)
{
    static const char *const mistakes[] = {
#define MISTAKE(name, text) text,
        JOURNAL_MISTAKES(MISTAKE)
#undef MISTAKE
    };
    const struct journal_check *check = &record->check;
    char bytes[32];
    observe_bytes_print(check->bytes, bytes, sizeof bytes);
    if (check->mistake >= JOURNAL_MISTAKE_COUNT) {
        return;
    }
    if (check->mistake == JOURNAL_MISTAKE_FREED || check->mistake == JOURNAL_MISTAKE_UNMAPPED) {
        FIND(process, call, "memory of a region (%s at 0x%" PRIx64 ") %s", bytes, check->address,
             mistakes[check->mistake]);
        return;
    }
    const uint64_t there[2] = {record->instruction, 0};
    bool known = record->instruction != 0;
    find(process, call->at_ps, known ? there : call->frames, known ? 1 : OBSERVE_FRAMES, "in",
         "qp %u: the buffer of the %s request wr_id 0x%" PRIx64 " (%s at 0x%" PRIx64 ") %s%s", check->qp,
         check->is_receive ? "RECV" : observe_opcode_name(check->opcode), check->wr_id, bytes, check->address,
         mistakes[check->mistake], known ? "" : ", as is seen when it completes");
}

void observe_check(observe_process_t *process, const struct observe_call *call, const struct journal_record *record)
{
    if (record->error != 0) {
        return;
    }
    switch (record->call) {
    case JOURNAL_POST_SEND:
        send_check(process, call, record);
        break;
    case JOURNAL_POST_RECV:
        receive_check(process, call, record);
        break;
    case JOURNAL_DEREG_MR:
        dereg_check(process, call, record);
        break;
    case JOURNAL_DESTROY_QP:
        destroy_check(process, call, record);
        break;
    case JOURNAL_CLOSE_DEVICE:
        close_check(process, record);
        break;
    case JOURNAL_CHECK:
        mistake_report(process, call, record);
        break;
    }
}

unsigned observe_findings(const observe_t *observe)
{
    return observe->findings;
}
