// What libibverbs reports of two connected queue pairs, without a device: node 0's request was refused as often as it
// may be, because node 1 had posted no receive request. Asked how its queues stand, node 1 tells of a completion queue
// and of two queue pairs of different contexts that have the same number.
#include <infiniband/verbs.h>

#include "models/hca/abi/hca_abi.h"
#include "verbs-shim/attach/attach.h"

enum { NUMBER = 7, TAKEN = 99, POSTED = 5 };

static unsigned queues_describe(void *arg, struct journal_state *states, unsigned room)
{
    (void)arg;
    (void)room; // for many more
    states[0] = (struct journal_state){.is_cq = 1, .number = NUMBER, .cq = {.taken = TAKEN, .taken_ps = TAKEN}};
    states[1] = (struct journal_state){.context = 1, .number = NUMBER, .qp = {.receives_posted = TAKEN}};
    states[2] = (struct journal_state){.number = NUMBER, .qp = {.receives_posted = POSTED}};
    return 3;
}

static void pair_report(const struct backend *backend, uint32_t lid, uint32_t peer_lid)
{
    const struct journal_modify path = {.number = NUMBER,
                                        .mask = IBV_QP_STATE | IBV_QP_DEST_QPN | IBV_QP_AV,
                                        .to = IBV_QPS_RTS,
                                        .dest = NUMBER,
                                        .dlid = peer_lid};
    const struct journal_record records[] = {{.call = JOURNAL_OPEN_DEVICE, .device = {.device = "mlx4_0", .lid = lid}},
                                             {.call = JOURNAL_CREATE_QP, .qp = {.number = NUMBER, .type = IBV_QPT_RC}},
                                             {.call = JOURNAL_MODIFY_QP, .modify = path}};
    for (unsigned i = 0; i < sizeof records / sizeof records[0]; i++) {
        backend->ops->journal->note(backend->ctx, &records[i]);
    }
}

static void refusal_report(const struct backend *backend)
{
    const struct journal_record record = {
        .call = JOURNAL_POLL_CQ,
        .completion = {.qp = NUMBER, .status = IBV_WC_RNR_RETRY_EXC_ERR, .vendor_error = HCA_FAULT_NO_RECEIVE}};
    backend->ops->journal->note(backend->ctx, &record);
}

int main(void)
{
    const struct backend_process *process = backend_current();
    if (process == NULL) {
        return 3;
    }
    uint32_t node = attach_environment()->node_index;
    pair_report(&process->backend, 1 + node, 2 - node);
    if (node == 1) {
        process->backend.ops->journal->describe_by(process->backend.ctx, queues_describe, NULL);
        return attach_wait(0, 2000000000) != 0;
    }
    (void)attach_wait(0, 1000000000);
    refusal_report(&process->backend);
    return 0;
}
