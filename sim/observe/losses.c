// The line for what an adapter discards without a packet that reports it: datagrams that no queue pair accepts,
// completions for which a completion queue has no room.
#include <string.h>

#include "models/hca/loss.h"
#include "sim/observe/internal.h"

static bool is_of(const observe_process_t *process, const char *name)
{
    size_t length = strlen(process->node);
    return strncmp(name, process->node, length) == 0 && name[length] == '.';
}

// The queue pair of the adapter of that name. NULL: no known process has it.
static struct observe_object *qp_of_adapter(const observe_t *observe, const char *name, uint32_t qpn)
{
    struct observe_object *found = NULL;
    for (const observe_process_t *process = observe->processes; process != NULL && found == NULL;
         process = process->next) {
        for (uint32_t i = 0; is_of(process, name) && observe_context_find(process, i) != NULL && found == NULL; i++) {
            bool is_hca = strncmp(observe_context_find(process, i)->device.device, "tca", 3) != 0;
            found = is_hca ? observe_qp_find(process, i, qpn) : NULL;
        }
    }
    return found;
}

static struct observe_object *qp_of_lid(const observe_t *observe, uint32_t lid, uint32_t qpn)
{
    struct observe_object *found = NULL;
    for (const observe_process_t *process = observe->processes; process != NULL && found == NULL;
         process = process->next) {
        for (uint32_t i = 0; observe_context_find(process, i) != NULL && found == NULL; i++) {
            const struct journal_device *device = &observe_context_find(process, i)->device;
            bool is_there = device->lid == lid && strncmp(device->device, "tca", 3) != 0;
            found = is_there ? observe_qp_find(process, i, qpn) : NULL;
        }
    }
    return found;
}

static void reason_add(struct observe_text *text, const struct hca_loss *loss)
{
    switch (loss->kind) {
    case HCA_LOSS_QKEY:
        observe_text_add(text, "its Q_Key is 0x%x, the queue pair's is 0x%x", loss->qkey, loss->own_qkey);
        break;
    case HCA_LOSS_NO_RECEIVE:
        observe_text_add(text, "no receive request is posted");
        break;
    case HCA_LOSS_ADDRESS:
        observe_text_add(text, "it is for LID %u and a GID that are not this port's", loss->lid);
        break;
    case HCA_LOSS_NO_QP:
    case HCA_LOSS_CQ_OVERRUN:
        observe_text_add(text, "there is no such queue pair that receives");
        break;
    }
}

static void message_report(observe_t *observe, const char *name, const struct hca_loss *loss)
{
    struct observe_object *to = loss->kind != HCA_LOSS_ADDRESS ? qp_of_adapter(observe, name, loss->qpn) : NULL;
    struct observe_object *from = qp_of_lid(observe, loss->source_lid, loss->source_qpn);
    struct observe_object *of = to != NULL ? to : from;
    if (of == NULL || (of->qp.losses_reported & 1u << loss->kind) != 0) {
        return;
    }
    of->qp.losses_reported |= 1u << loss->kind;
    struct observe_text text = {.used = 0};
    observe_text_add(&text, "%.*s: a message", (int)strcspn(name, "."), name);
    if (from != NULL) {
        observe_text_add(&text, " of ");
        observe_text_title(&text, from->process);
        observe_text_add(&text, " qp %u", from->number);
    }
    observe_text_add(&text, " for qp %u is dropped: ", loss->qpn);
    reason_add(&text, loss);
    observe_text_add(&text, " (what follows is counted: packets_discarded of %s)", name);
    observe_say(of->process, sim_now_ps(observe->sim), text.bytes);
}

static void completion_report(observe_t *observe, const char *name, const struct hca_loss *loss)
{
    struct observe_object *qp = qp_of_adapter(observe, name, loss->qpn);
    struct observe_text text = {.used = 0};
    if (qp == NULL) {
        return;
    }
    qp->qp.flush_reported = qp->qp.overran = true;
    observe_text_title(&text, qp->process);
    observe_text_add(&text,
                     " qp %u: a completion found its completion queue full (%u entries, cq %u for sends, %u for "
                     "receives): the queue can no longer be used, and its queue pairs go to the error state "
                     "(IBV_EVENT_CQ_ERR)",
                     qp->number, loss->entries, qp->qp.made.send_cq, qp->qp.made.receive_cq - 1);
    observe_say(qp->process, sim_now_ps(observe->sim), text.bytes);
}

void observe_lost(observe_t *observe, const char *name, const struct hca_loss *loss)
{
    if (loss->kind == HCA_LOSS_CQ_OVERRUN) {
        completion_report(observe, name, loss);
    } else {
        message_report(observe, name, loss);
    }
}
