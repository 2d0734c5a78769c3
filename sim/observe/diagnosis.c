// A line for each call that was refused and each completion in error: who, which request, what the other side looked
// like.
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "sim/observe/internal.h"

// Of what a side has, so many are listed.
enum { LISTED_MAX = 4, LINE_BYTES = 1024 };

struct text {
    char bytes[LINE_BYTES];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int written = vsnprintf(text->bytes + text->used, sizeof text->bytes - text->used, format, args);
    va_end(args);
    size_t room = sizeof text->bytes - text->used - 1;
    text->used += written < 0 ? 0 : (size_t)written < room ? (size_t)written : room;
}

static void add_title(struct text *text, const observe_process_t *process)
{
    char title[128];
    observe_title(process, title, sizeof title);
    add(text, "%s", title);
}

static void add_bytes(struct text *text, uint64_t bytes)
{
    char quantity[32];
    observe_bytes_print(bytes, quantity, sizeof quantity);
    add(text, "%s", quantity);
}

static void add_time(struct text *text, uint64_t ps)
{
    char time[48];
    observe_time_print(ps, time, sizeof time);
    add(text, "%s", time);
}

// --- lists ----------------------------------------------------------------------------------------------------------

struct listing {
    struct text *text;
    enum observe_kind kind;
    uint32_t context;
    bool remote; // of regions: those that others may access
    unsigned count, more;
};

static void region_print(struct text *text, const struct observe_object *object)
{
    char access[96];
    observe_access_print(object->mr.access, access, sizeof access);
    add(text, "rkey 0x%x [0x%" PRIx64 ", ", object->mr.rkey, object->mr.iova);
    add_bytes(text, object->mr.bytes);
    add(text, ", %s]", access);
}

static void object_list(void *ctx, struct observe_object *object)
{
    struct listing *listing = ctx;
    if (object->kind != listing->kind || object->context != listing->context || object->ended) {
        return;
    }
    uint32_t remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    if (listing->remote && (object->mr.access & remote) == 0) {
        return;
    }
    if (listing->count == LISTED_MAX) {
        listing->more++;
        return;
    }
    add(listing->text, "%s", listing->count++ == 0 ? "" : ", ");
    if (object->kind == OBSERVE_MR) {
        region_print(listing->text, object);
    } else {
        add(listing->text, "%u (%s)", object->number, observe_state_name(object->qp.state));
    }
}

static void list(struct text *text, const observe_process_t *process, enum observe_kind kind, uint32_t context,
                 bool remote)
{
    struct listing listing = {.text = text, .kind = kind, .context = context, .remote = remote};
    observe_objects_visit(process, object_list, &listing);
    if (listing.count == 0) {
        add(text, "none");
    } else if (listing.more > 0) {
        add(text, " and %u more", listing.more);
    }
}

// --- the region that a key names ------------------------------------------------------------------------------------

static const char *access_name(const struct journal_completion *completion)
{
    switch (completion->opcode) {
    case IBV_WC_RDMA_WRITE:
        return "remote write";
    case IBV_WC_RDMA_READ:
        return "remote read";
    default:
        return "remote atomic";
    }
}

static void range_print(struct text *text, const struct journal_mr *mr, uint64_t address, uint64_t bytes)
{
    if (address < mr->iova) {
        add(text, ": it begins ");
        add_bytes(text, mr->iova - address);
        add(text, " before the region");
    } else {
        uint64_t offset = address - mr->iova;
        add(text, ": it ends ");
        add_bytes(text, offset + bytes > mr->bytes ? offset + bytes - mr->bytes : 0);
        add(text, " behind the region");
    }
}

// What is wrong with a key, seen from who has the region.
static void key_explain(struct text *text, const struct observe_object *qp, uint32_t key, uint64_t address,
                        const struct journal_completion *completion, bool remote)
{
    const struct observe_object *region = observe_object_find(qp->process, OBSERVE_MR, qp->context, key);
    switch ((enum journal_fault)completion->vendor_error) {
    case JOURNAL_FAULT_KEY:
        if (region != NULL && region->ended) {
            add(text, ": it was deregistered at ");
            add_time(text, region->ended_ps);
        }
        break;
    case JOURNAL_FAULT_RANGE:
        if (region != NULL) {
            range_print(text, &region->mr, address, completion->posted_bytes);
        }
        break;
    case JOURNAL_FAULT_RIGHTS:
        add(text, ": %s is missing", remote ? access_name(completion) : "local write");
        break;
    default:
        break;
    }
    add(text, "; regions %s: ", remote ? "there" : "here");
    list(text, qp->process, OBSERVE_MR, qp->context, remote);
}

// --- the other side of a connection ---------------------------------------------------------------------------------

static void lids_print(struct text *text, const observe_t *observe, const struct observe_object *qp)
{
    const struct observe_object *own = observe_object_find(qp->process, OBSERVE_CONTEXT, qp->context, 0);
    unsigned count = 0;
    for (const observe_process_t *process = observe->processes; process != NULL; process = process->next) {
        for (uint32_t i = 0;; i++) {
            const struct observe_object *context = observe_object_find(process, OBSERVE_CONTEXT, i, 0);
            if (context == NULL) {
                break;
            }
            if (own != NULL && strcmp(context->device.device, own->device.device) == 0 && count < LISTED_MAX) {
                add(text, "%s%s has LID %u", count++ == 0 ? "" : ", ", process->node, context->device.lid);
            }
        }
    }
}

static const observe_process_t *process_of_lid(const struct observe_object *qp, uint32_t *context_out)
{
    const struct observe_object *own = observe_object_find(qp->process, OBSERVE_CONTEXT, qp->context, 0);
    for (const observe_process_t *process = qp->process->observe->processes; process != NULL && own != NULL;
         process = process->next) {
        for (uint32_t i = 0;; i++) {
            const struct observe_object *context = observe_object_find(process, OBSERVE_CONTEXT, i, 0);
            if (context == NULL) {
                break;
            }
            if (context->device.lid == qp->qp.path.dlid && strcmp(context->device.device, own->device.device) == 0) {
                *context_out = i;
                return process;
            }
        }
    }
    return NULL;
}

// Nothing came back.
static void silence_explain(struct text *text, const struct observe_object *qp, const struct observe_object *peer)
{
    uint32_t context = 0;
    const observe_process_t *there = process_of_lid(qp, &context);
    if (peer == NULL && there == NULL) {
        add(text, ": no program there has a port with LID %u (", qp->qp.path.dlid);
        lids_print(text, qp->process->observe, qp);
        add(text, ")");
        return;
    }
    if (peer == NULL) {
        add(text, ": %s has no queue pair %u; queue pairs there: ", there->node, qp->qp.path.dest);
        list(text, there, OBSERVE_QP, context, false);
        return;
    }
    if (peer->ended || peer->process->ended) {
        add(text, ": that queue pair %s at ", peer->ended ? "was destroyed" : "went with its process");
        add_time(text, peer->ended ? peer->ended_ps : peer->process->ended_ps);
    } else if (peer->qp.state != IBV_QPS_RTR && peer->qp.state != IBV_QPS_RTS && peer->qp.state != IBV_QPS_SQD) {
        add(text, ": that queue pair is in state %s and receives nothing", observe_state_name(peer->qp.state));
    } else if (peer->qp.path.dest != qp->number) {
        add(text, ": that queue pair is connected to queue pair %u, not to this one", peer->qp.path.dest);
    } else if (peer->qp.path.mtu_bytes != qp->qp.path.mtu_bytes) {
        add(text, ": path_mtu is %u B here and %u B there", qp->qp.path.mtu_bytes, peer->qp.path.mtu_bytes);
    } else if (peer->qp.path.receive_psn != qp->qp.path.send_psn) {
        add(text, ": sq_psn is %u here, rq_psn %u there", qp->qp.path.send_psn, peer->qp.path.receive_psn);
    } else {
        add(text, ": packets were lost, or the other side did not answer in time");
    }
    add(text, " (timeout %u, retry_cnt %u)", qp->qp.path.timeout, qp->qp.path.retry_count);
}

static void no_receive_explain(struct text *text, const struct observe_object *qp, const struct observe_object *peer)
{
    if (peer == NULL) {
        return;
    }
    add(text, ": receive queue of ");
    add_title(text, peer->process);
    add(text, " qp %u empty", peer->number);
    if (peer->process->observe->options.receives != NULL) {
        struct observe_receives receives;
        if (peer->process->observe->options.receives(peer->process->observe->options.receives_ctx, peer->process->tag,
                                                     peer->number, &receives)) {
            add(text, " (%" PRIu64 " posted", receives.posted);
            if (receives.posted > 0) {
                add(text, ", the last at ");
                add_time(text, receives.last_ps);
            }
            add(text, ")");
        }
    }
    add(text, "; RNR %u times, gave up (rnr_retry %u)", qp->qp.path.rnr_retry + 1u, qp->qp.path.rnr_retry);
}

// --- completions ----------------------------------------------------------------------------------------------------

static const char *const faults[] = {
#define FAULT(name, text) text,
    JOURNAL_FAULTS(FAULT)
#undef FAULT
};

static void request_print(struct text *text, const struct journal_completion *completion)
{
    bool remote = completion->rkey != 0 || completion->remote_address != 0;
    if (completion->is_receive) {
        add(text, "receive request of ");
    } else {
        add(text, "%s of ", observe_wc_opcode_name(completion->opcode));
    }
    add_bytes(text, completion->posted_bytes);
    if (remote) {
        add(text, " %s 0x%" PRIx64 ", rkey 0x%x", completion->opcode == IBV_WC_RDMA_READ ? "from" : "to",
            completion->remote_address, completion->rkey);
    }
    add(text, " (wr_id 0x%" PRIx64 ")", completion->wr_id);
}

static bool is_remote(uint32_t status)
{
    return status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_OP_ERR;
}

static void cause_explain(struct text *text, const struct observe_object *qp, const struct observe_object *peer,
                          const struct journal_completion *completion)
{
    bool remote = is_remote(completion->status);
    switch (completion->vendor_error) {
    case JOURNAL_FAULT_KEY:
    case JOURNAL_FAULT_DOMAIN:
    case JOURNAL_FAULT_RANGE:
    case JOURNAL_FAULT_RIGHTS:
        if (remote && completion->rkey != 0 && peer != NULL) {
            key_explain(text, peer, completion->rkey, completion->remote_address, completion, true);
        } else if (!remote && completion->lkey != 0) {
            key_explain(text, qp, completion->lkey, completion->address, completion, false);
        }
        break;
    case JOURNAL_FAULT_NO_RECEIVE:
        no_receive_explain(text, qp, peer);
        break;
    case JOURNAL_FAULT_NO_ANSWER:
        silence_explain(text, qp, peer);
        break;
    case JOURNAL_FAULT_READS:
        if (peer != NULL) {
            add(text, ": max_rd_atomic is %u here, max_dest_rd_atomic %u there", qp->qp.path.reads,
                peer->qp.path.dest_reads);
        }
        break;
    }
}

// What is flushed behind a failure says nothing new, nor does what is flushed because the program asked for it.
static void completion_diagnose(observe_process_t *process, uint64_t at_ps, const struct journal_record *record)
{
    const struct journal_completion *completion = &record->completion;
    struct observe_object *qp = observe_object_find(process, OBSERVE_QP, record->context, completion->qp);
    if (completion->status == IBV_WC_SUCCESS || qp == NULL) {
        return;
    }
    bool flushed = completion->status == IBV_WC_WR_FLUSH_ERR;
    if (flushed && (qp->qp.flush_told || qp->qp.state == IBV_QPS_ERR)) {
        return;
    }
    qp->qp.flush_told = true;
    struct text text = {.used = 0};
    const struct observe_object *peer = observe_peer(qp);
    add_title(&text, process);
    add(&text, " qp %u", qp->number);
    if (peer != NULL && !completion->is_receive) {
        add(&text, " -> ");
        add_title(&text, peer->process);
        add(&text, " qp %u", peer->number);
    }
    add(&text, ": ");
    if (flushed) {
        add(&text,
            "request flushed (wr_id 0x%" PRIx64 "): the queue pair went to the error state without a completion"
            " that says why; the other side or ibv_get_async_event does",
            completion->wr_id);
        observe_say(process, at_ps, text.bytes);
        return;
    }
    request_print(&text, completion);
    add(&text, ": %s", observe_status_name(completion->status));
    if (completion->vendor_error > 0 && completion->vendor_error < JOURNAL_FAULT_COUNT) {
        add(&text, ": %s", faults[completion->vendor_error]);
    }
    cause_explain(&text, qp, peer, completion);
    observe_say(process, at_ps, text.bytes);
}

// --- refused calls --------------------------------------------------------------------------------------------------

static void subject_print(struct text *text, const struct journal_record *record)
{
    switch (record->call) {
    case JOURNAL_POST_SEND:
        add(text, " on qp %u (wr_id 0x%" PRIx64 ", %s, ", record->send.qp, record->send.wr_id,
            observe_opcode_name(record->send.opcode));
        add_bytes(text, record->send.bytes);
        add(text, ")");
        break;
    case JOURNAL_POST_RECV:
        add(text, " on qp %u (wr_id 0x%" PRIx64 ")", record->receive.queue, record->receive.wr_id);
        break;
    case JOURNAL_MODIFY_QP:
        add(text, " of qp %u from %s to %s", record->modify.number, observe_state_name(record->modify.from),
            observe_state_name(record->modify.to));
        break;
    case JOURNAL_DESTROY_QP:
        add(text, " of qp %u", record->qp.number);
        break;
    case JOURNAL_REG_MR:
        add(text, " of ");
        add_bytes(text, record->mr.bytes);
        add(text, " at 0x%" PRIx64, record->mr.address);
        break;
    }
}

static void refusal_diagnose(observe_process_t *process, uint64_t at_ps, const struct journal_record *record)
{
    struct text text = {.used = 0};
    char reason[512];
    const char *error = record->error > 0 && record->error < 4096 ? strerrorname_np(record->error) : NULL;
    observe_reason_print(record, reason, sizeof reason);
    add_title(&text, process);
    add(&text, ": %s", observe_call_name(record->call));
    subject_print(&text, record);
    add(&text, " fails with %s: %s", error != NULL ? error : "an error", reason);
    observe_say(process, at_ps, text.bytes);
}

// The library's own sentence; it comes from the program.
static void sentence_say(observe_process_t *process, uint64_t at_ps, const struct journal_record *record)
{
    struct text text = {.used = 0};
    char sentence[JOURNAL_SENTENCE_BYTES];
    memcpy(sentence, record->refusal.sentence, sizeof sentence);
    observe_text_clean(sentence, sizeof sentence);
    add_title(&text, process);
    add(&text, ": %s", sentence);
    observe_say(process, at_ps, text.bytes);
}

void observe_diagnose(observe_process_t *process, const struct observe_call *call, const struct journal_record *record)
{
    if (record->call == JOURNAL_TCA_REFUSED) {
        sentence_say(process, call->at_ps, record);
    } else if (record->error != 0) {
        refusal_diagnose(process, call->at_ps, record);
    } else if (record->call == JOURNAL_POLL_CQ) {
        completion_diagnose(process, call->at_ps, record);
    }
}
