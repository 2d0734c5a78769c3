// A line for each call that was refused and each completion in error: the queue pair, the request, and the state of the
// other side.
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "models/hca/abi/hca_abi.h"
#include "sim/observe/internal.h"

// At most this many objects of a side are listed.
enum { LISTED_MAX = 4 };

// --- lists ----------------------------------------------------------------------------------------------------------

struct listing {
    struct observe_text *text;
    enum observe_kind kind;
    uint32_t context;
    bool others;    // of regions: only those with remote access
    const char *by; // of regions: the key to print
    unsigned count, more;
};

static void region_print(struct observe_text *text, const struct observe_object *object, const char *by)
{
    char access[96];
    observe_access_print(object->mr.access, access, sizeof access);
    observe_text_add(text, "%s 0x%x [0x%" PRIx64 ", ", by, by[0] == 'r' ? object->mr.rkey : object->mr.lkey,
                     object->mr.iova);
    observe_text_bytes(text, object->mr.bytes);
    observe_text_add(text, ", %s]", access);
}

static void object_list(void *ctx, struct observe_object *object)
{
    struct listing *listing = ctx;
    if (object->kind != listing->kind || object->context != listing->context || object->ended) {
        return;
    }
    uint32_t remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    if (listing->others && (object->mr.access & remote) == 0) {
        return;
    }
    if (listing->count == LISTED_MAX) {
        listing->more++;
        return;
    }
    observe_text_add(listing->text, "%s", listing->count++ == 0 ? "" : ", ");
    if (object->kind == OBSERVE_MR) {
        region_print(listing->text, object, listing->by);
    } else {
        observe_text_add(listing->text, "%u (%s)", object->number, observe_state_name(object->qp.state));
    }
}

// false: there is no such object.
static bool list(struct listing listing, const observe_process_t *process)
{
    observe_objects_visit(process, object_list, &listing);
    if (listing.more > 0) {
        observe_text_add(listing.text, " and %u more", listing.more);
    }
    return listing.count > 0;
}

// With `remote`: the regions with remote access; if there are none, all regions.
static void regions_list(struct observe_text *text, const struct observe_object *qp, bool remote)
{
    struct listing listing = {
        .text = text, .kind = OBSERVE_MR, .context = qp->context, .others = remote, .by = remote ? "rkey" : "lkey"};
    bool any = list(listing, qp->process);
    listing.others = false;
    if (!any && !list(listing, qp->process)) {
        observe_text_add(text, "none");
    }
}

static void qps_list(struct observe_text *text, const observe_process_t *process, uint32_t context)
{
    if (!list((struct listing){.text = text, .kind = OBSERVE_QP, .context = context}, process)) {
        observe_text_add(text, "none");
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

static void range_print(struct observe_text *text, const struct journal_mr *mr, uint64_t address, uint64_t bytes)
{
    if (address < mr->iova) {
        observe_text_add(text, ": it begins ");
        observe_text_bytes(text, mr->iova - address);
        observe_text_add(text, " before the region");
    } else {
        uint64_t offset = address - mr->iova;
        observe_text_add(text, ": it ends ");
        observe_text_bytes(text, offset + bytes > mr->bytes ? offset + bytes - mr->bytes : 0);
        observe_text_add(text, " after the end of the region");
    }
}

// What is wrong with the key of a remote request, as the owner of the region sees it.
static void rkey_explain(struct observe_text *text, const struct observe_object *qp,
                         const struct journal_completion *completion)
{
    const struct observe_object *region = observe_object_find(qp->process, OBSERVE_MR, qp->context, completion->rkey);
    if (completion->vendor_error == HCA_FAULT_KEY && region != NULL && region->ended) {
        observe_text_add(text, ": it was deregistered at ");
        observe_text_time(text, region->ended_ps);
    }
    if (completion->vendor_error == HCA_FAULT_RANGE && region != NULL) {
        range_print(text, &region->mr, completion->remote_address, completion->posted_bytes);
    }
    if (completion->vendor_error == HCA_FAULT_RIGHTS && region != NULL) {
        observe_text_add(text, ": %s is missing in ", access_name(completion));
        region_print(text, region, "rkey");
        return;
    }
    observe_text_add(text, "; regions there: ");
    regions_list(text, qp, true);
}

static const struct observe_object *region_of_lkey(const struct observe_object *qp, uint32_t lkey)
{
    const struct observe_object *region = observe_object_find(qp->process, OBSERVE_MR, qp->context, lkey);
    return region != NULL && region->mr.lkey == lkey ? region : NULL; // devices here have one key for both
}

// Only the first segment of a list is known.
static void lkey_explain(struct observe_text *text, const struct observe_object *qp,
                         const struct journal_completion *completion)
{
    const struct observe_object *region = region_of_lkey(qp, completion->lkey);
    uint64_t end = completion->address + completion->first_bytes;
    if (completion->is_known && completion->segments > 0) {
        observe_text_add(text, "; %slkey 0x%x [0x%" PRIx64 ", ",
                         completion->segments > 1 ? "the first of its segments: " : "", completion->lkey,
                         completion->address);
        observe_text_bytes(text, completion->first_bytes);
        observe_text_add(text, "]");
    }
    if (region != NULL && region->ended) {
        observe_text_add(text, ": it was deregistered at ");
        observe_text_time(text, region->ended_ps);
    } else if (region != NULL && completion->vendor_error == HCA_FAULT_RANGE &&
               (completion->address < region->mr.iova || end > region->mr.iova + region->mr.bytes)) {
        range_print(text, &region->mr, completion->address, completion->first_bytes);
    } else if (completion->vendor_error == HCA_FAULT_RIGHTS) {
        observe_text_add(text, ": local write is missing");
    }
    observe_text_add(text, "; regions here: ");
    regions_list(text, qp, false);
}

// --- the other side of a connection ---------------------------------------------------------------------------------

static void lids_print(struct observe_text *text, const observe_t *observe, const struct observe_object *qp)
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
                observe_text_add(text, "%s%s has LID %u", count++ == 0 ? "" : ", ", process->node, context->device.lid);
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

// The requester got no response.
static void silence_explain(struct observe_text *text, const struct observe_object *qp,
                            const struct observe_object *peer)
{
    uint32_t context = 0;
    const observe_process_t *there = process_of_lid(qp, &context);
    const struct observe_object *own = observe_object_find(qp->process, OBSERVE_CONTEXT, qp->context, 0);
    const char *device = own != NULL ? own->device.device : "";
    if (peer == NULL && there == NULL) {
        observe_text_add(text, ": no program there has a port with LID %u (", qp->qp.path.dlid);
        lids_print(text, qp->process->observe, qp);
        observe_text_add(text, ")");
        return;
    }
    if (peer == NULL) {
        observe_text_add(text, ": %s has no queue pair %u; queue pairs there: ", there->node, qp->qp.path.dest);
        qps_list(text, there, context);
        return;
    }
    if (peer->ended || peer->process->ended) {
        observe_text_add(text, ": that queue pair %s at ", peer->ended ? "was destroyed" : "ended with its process");
        observe_text_time(text, peer->ended ? peer->ended_ps : peer->process->ended_ps);
    } else if (peer->qp.overran) {
        observe_text_add(text, ": that queue pair failed, as a completion queue of it was full");
    } else if (peer->qp.state != IBV_QPS_RTR && peer->qp.state != IBV_QPS_RTS && peer->qp.state != IBV_QPS_SQD) {
        observe_text_add(text, ": that queue pair is in state %s and receives nothing",
                         observe_state_name(peer->qp.state));
    } else if (peer->qp.path.dest != qp->number) {
        observe_text_add(text, ": that queue pair is connected to queue pair %u, not to this one", peer->qp.path.dest);
    } else if (peer->qp.path.mtu_bytes != qp->qp.path.mtu_bytes) {
        observe_text_add(text, ": path_mtu is %u B here and %u B there", qp->qp.path.mtu_bytes,
                         peer->qp.path.mtu_bytes);
    } else if (peer->qp.path.receive_psn != qp->qp.path.send_psn) {
        observe_text_add(text, ": sq_psn is %u here, rq_psn %u there", qp->qp.path.send_psn, peer->qp.path.receive_psn);
    } else {
        observe_text_add(text, ": packets were lost, or the other side did not answer in time%s",
                         strncmp(device, "tca", 3) == 0 ? " (on this device a program answers inside its verbs calls)"
                                                        : "");
    }
    observe_text_add(text, " (timeout %u, retry_cnt %u)", qp->qp.path.timeout, qp->qp.path.retry_count);
}

static void no_receive_explain(struct observe_text *text, const struct observe_object *qp,
                               const struct observe_object *peer)
{
    if (peer == NULL) {
        return;
    }
    bool shared = peer->qp.made.srq != 0;
    observe_text_add(text, ": %s of ", shared ? "shared receive queue" : "receive queue");
    observe_text_title(text, peer->process);
    observe_text_add(text, " qp %u empty", peer->number);
    struct observe_receives receives;
    if (observe_receives_ask(peer, &receives)) {
        observe_text_add(text, " (%" PRIu64 " posted", receives.posted);
        if (receives.posted > 0) {
            observe_text_add(text, ", the last at ");
            observe_text_time(text, receives.last_ps);
        }
        observe_text_add(text, ")");
    }
    observe_text_add(text, "; RNR %u times, gave up (rnr_retry %u)", qp->qp.path.rnr_retry + 1u, qp->qp.path.rnr_retry);
}

// --- completions ----------------------------------------------------------------------------------------------------

static const char *const faults[] = {
    "",
#define FAULT(name, text) text,
#include "models/hca/abi/faults.def"
#undef FAULT
};

static bool has_remote(const struct journal_completion *completion)
{
    return !completion->is_receive && observe_wc_opcode_has(completion->opcode, HCA_HAS_REMOTE);
}

static void request_print(struct observe_text *text, const struct journal_completion *completion)
{
    observe_text_add(text, "%s",
                     completion->is_receive ? "receive request" : observe_wc_opcode_name(completion->opcode));
    if (completion->is_known) {
        observe_text_add(text, " of ");
        observe_text_bytes(text, completion->posted_bytes);
    }
    if (completion->is_known && has_remote(completion)) {
        observe_text_add(text, " %s 0x%" PRIx64 ", rkey 0x%x", completion->opcode == IBV_WC_RDMA_READ ? "from" : "to",
                         completion->remote_address, completion->rkey);
    }
    observe_text_add(text, " (wr_id 0x%" PRIx64 ")", completion->wr_id);
}

static bool is_remote(uint32_t status)
{
    return status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_OP_ERR;
}

static void cause_explain(struct observe_text *text, const struct observe_object *qp, const struct observe_object *peer,
                          const struct journal_completion *completion)
{
    bool remote = is_remote(completion->status);
    switch (completion->vendor_error) {
    case HCA_FAULT_KEY:
    case HCA_FAULT_DOMAIN:
    case HCA_FAULT_RANGE:
    case HCA_FAULT_RIGHTS:
        if (!remote) {
            lkey_explain(text, qp, completion);
        } else if (!has_remote(completion)) {
            observe_text_add(text, " (of the other side's receive request)");
        } else if (completion->is_known && peer != NULL) {
            rkey_explain(text, peer, completion);
        }
        break;
    case HCA_FAULT_REQUEST:
        if (qp->qp.made.type == IBV_QPT_UD) {
            observe_text_add(text, ": a datagram has at most the bytes of the port's active_mtu");
        }
        break;
    case HCA_FAULT_NO_RECEIVE:
        no_receive_explain(text, qp, peer);
        break;
    case HCA_FAULT_NO_ANSWER:
        silence_explain(text, qp, peer);
        break;
    case HCA_FAULT_READS:
        if (peer != NULL) {
            observe_text_add(text, ": max_rd_atomic is %u here, max_dest_rd_atomic %u there", qp->qp.path.reads,
                             peer->qp.path.dest_reads);
        }
        break;
    }
}

// Not reported: requests that are flushed after a failure that was reported, or because the program asked for it.
static void completion_diagnose(observe_process_t *process, uint64_t at_ps, const struct journal_record *record)
{
    const struct journal_completion *completion = &record->completion;
    struct observe_object *qp = observe_object_find(process, OBSERVE_QP, record->context, completion->qp);
    if (completion->status == IBV_WC_SUCCESS || qp == NULL) {
        return;
    }
    bool flushed = completion->status == IBV_WC_WR_FLUSH_ERR;
    const struct observe_object *peer = observe_peer(qp);
    bool reported = qp->qp.flush_reported || qp->qp.state == IBV_QPS_ERR || (peer != NULL && peer->qp.flush_reported);
    if (flushed && reported) {
        return;
    }
    qp->qp.flush_reported = true;
    struct observe_text text = {.used = 0};
    observe_text_title(&text, process);
    observe_text_add(&text, " qp %u", qp->number);
    if (peer != NULL && !completion->is_receive) {
        observe_text_add(&text, " -> ");
        observe_text_title(&text, peer->process);
        observe_text_add(&text, " qp %u", peer->number);
    }
    observe_text_add(&text, ": ");
    if (flushed) {
        observe_text_add(&text,
                         "a %s request is flushed (wr_id 0x%" PRIx64 "): the queue pair went to the error state, as ",
                         completion->is_receive ? "receive" : "send", completion->wr_id);
        if (peer != NULL) {
            observe_text_add(&text, "a completion of ");
            observe_text_title(&text, peer->process);
            observe_text_add(&text, " qp %u or ", peer->number);
        }
        observe_text_add(&text, "ibv_get_async_event reports");
        observe_say(process, at_ps, text.bytes);
        return;
    }
    request_print(&text, completion);
    observe_text_add(&text, ": %s", observe_status_name(completion->status));
    if (completion->vendor_error > 0 && completion->vendor_error < HCA_FAULTS) {
        observe_text_add(&text, ": %s", faults[completion->vendor_error]);
    }
    cause_explain(&text, qp, peer, completion);
    observe_say(process, at_ps, text.bytes);
}

// --- refused calls --------------------------------------------------------------------------------------------------

static void subject_print(struct observe_text *text, const struct journal_record *record)
{
    switch (record->call) {
    case JOURNAL_POST_SEND:
        observe_text_add(text, " on qp %u (wr_id 0x%" PRIx64 ", %s, ", record->send.qp, record->send.wr_id,
                         observe_opcode_name(record->send.opcode));
        observe_text_bytes(text, record->send.bytes);
        observe_text_add(text, ")");
        break;
    case JOURNAL_POST_RECV:
        observe_text_add(text, " on qp %u (wr_id 0x%" PRIx64 ")", record->receive.queue, record->receive.wr_id);
        break;
    case JOURNAL_MODIFY_QP:
        observe_text_add(text, " of qp %u from %s to %s", record->modify.number,
                         observe_state_name(record->modify.from), observe_state_name(record->modify.to));
        break;
    case JOURNAL_DESTROY_QP:
        observe_text_add(text, " of qp %u", record->qp.number);
        break;
    case JOURNAL_REG_MR:
        observe_text_add(text, " of ");
        observe_text_bytes(text, record->mr.bytes);
        observe_text_add(text, " at 0x%" PRIx64, record->mr.address);
        break;
    }
}

static void refusal_diagnose(observe_process_t *process, uint64_t at_ps, const struct journal_record *record)
{
    struct observe_text text = {.used = 0};
    char reason[512];
    const char *error = record->error > 0 && record->error < 4096 ? strerrorname_np(record->error) : NULL;
    observe_reason_print(record, reason, sizeof reason);
    observe_text_title(&text, process);
    observe_text_add(&text, ": %s", observe_call_name(record->call));
    subject_print(&text, record);
    observe_text_add(&text, " fails with %s: %s", error != NULL ? error : "an error", reason);
    observe_say(process, at_ps, text.bytes);
}

// The sentence is the library's own. It comes from the program, so it is cleaned.
static void sentence_say(observe_process_t *process, uint64_t at_ps, const struct journal_record *record)
{
    struct observe_text text = {.used = 0};
    char sentence[JOURNAL_SENTENCE_BYTES];
    memcpy(sentence, record->refusal.sentence, sizeof sentence);
    observe_text_clean(sentence, sizeof sentence);
    observe_text_title(&text, process);
    observe_text_add(&text, ": %s", sentence);
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
