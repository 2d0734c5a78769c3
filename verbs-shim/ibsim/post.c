// Work requests.
#include <stdlib.h>

#include "verbs-shim/ibsim/ibsim_internal.h"

// --- room for the translation ----------------------------------------------------------------------------------------

void ibsim_scratch_free(struct ibsim_scratch *scratch)
{
    free(scratch->completions);
    free(scratch->sends);
    free(scratch->receives);
    free(scratch->sges);
}

static bool reserve(void **array, unsigned *has, unsigned count, size_t bytes)
{
    if (count <= *has) {
        return true;
    }
    void *grown = realloc(*array, count * bytes);
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *has = count;
    return true;
}

bool ibsim_scratch_completions(struct ibsim_scratch *scratch, unsigned count)
{
    void *completions = scratch->completions;
    bool done = reserve(&completions, &scratch->completion_count, count, sizeof *scratch->completions);
    scratch->completions = completions;
    return done;
}

static bool reserve_sges(struct ibsim_scratch *scratch, unsigned count)
{
    void *sges = scratch->sges;
    bool done = reserve(&sges, &scratch->sge_count, count, sizeof *scratch->sges);
    scratch->sges = sges;
    return done;
}

static bool reserve_sends(struct ibsim_scratch *scratch, const struct ibv_send_wr *wr, unsigned count)
{
    void *sends = scratch->sends;
    bool done = reserve(&sends, &scratch->send_count, count, sizeof *scratch->sends);
    unsigned sges = 0;
    scratch->sends = sends;
    for (unsigned i = 0; i < count; i++, wr = wr->next) {
        sges += (unsigned)wr->num_sge;
    }
    return done && reserve_sges(scratch, sges);
}

static bool reserve_receives(struct ibsim_scratch *scratch, const struct ibv_recv_wr *wr, unsigned count)
{
    void *receives = scratch->receives;
    bool done = reserve(&receives, &scratch->receive_count, count, sizeof *scratch->receives);
    unsigned sges = 0;
    scratch->receives = receives;
    for (unsigned i = 0; i < count; i++, wr = wr->next) {
        sges += (unsigned)wr->num_sge;
    }
    return done && reserve_sges(scratch, sges);
}

// Returns the position for the segments of the next request.
static struct hca_sge *sges_translate(const struct ibv_sge *from, int count, struct hca_sge *to)
{
    for (int i = 0; i < count; i++) {
        *to++ = (struct hca_sge){.address = from[i].addr, .bytes = from[i].length, .lkey = from[i].lkey};
    }
    return to;
}

// --- send ------------------------------------------------------------------------------------------------------------

static uint32_t flags_of(unsigned flags)
{
    return ((flags & IBV_SEND_SIGNALED) != 0 ? HCA_WQE_SIGNALED : 0) |
           ((flags & IBV_SEND_SOLICITED) != 0 ? HCA_WQE_SOLICITED : 0) |
           ((flags & IBV_SEND_FENCE) != 0 ? HCA_WQE_FENCE : 0) | ((flags & IBV_SEND_INLINE) != 0 ? HCA_WQE_INLINE : 0);
}

static void remote_translate(const struct ibv_send_wr *wr, struct hca_send_wr *to)
{
    if (hca_opcode_has(to->opcode, HCA_HAS_ATOMIC)) {
        to->remote_address = wr->wr.atomic.remote_addr;
        to->rkey = wr->wr.atomic.rkey;
        to->compare = wr->wr.atomic.compare_add;
        to->swap_add = to->opcode == HCA_OP_FETCH_ADD ? wr->wr.atomic.compare_add : wr->wr.atomic.swap;
    } else if (hca_opcode_has(to->opcode, HCA_HAS_REMOTE)) {
        to->remote_address = wr->wr.rdma.remote_addr;
        to->rkey = wr->wr.rdma.rkey;
    }
}

static struct hca_send_wr send_translate(const struct ibv_send_wr *wr, const struct hca_sge *sges,
                                         enum hca_qp_type type)
{
    struct hca_send_wr to = {.wr_id = wr->wr_id,
                             .sges = sges,
                             .sge_count = (unsigned)wr->num_sge,
                             .opcode = ibverbs_opcode(wr->opcode)->device, // the library has checked the opcode
                             .flags = flags_of(wr->send_flags),
                             .immediate = wr->imm_data};
    remote_translate(wr, &to);
    if (type == HCA_UD) {
        to.ah = ibverbs_ah_object(wr->wr.ud.ah);
        to.remote_qpn = wr->wr.ud.remote_qpn;
        to.remote_qkey = wr->wr.ud.remote_qkey;
    }
    if (type == HCA_XRC_INITIATOR) {
        to.remote_srqn = wr->qp_type.xrc.remote_srqn;
    }
    return to;
}

int ibsim_post_send(void *object, const struct ibv_send_wr *wr, unsigned count, const struct ibv_send_wr **bad_out)
{
    const struct ibsim_qp *qp = object;
    struct ibsim_scratch *scratch = &qp->context->scratch;
    if (!reserve_sends(scratch, wr, count)) {
        *bad_out = wr;
        return -ENOMEM;
    }
    struct hca_sge *sge = scratch->sges;
    const struct ibv_send_wr *at = wr;
    for (unsigned i = 0; i < count; i++, at = at->next) {
        scratch->sends[i] = send_translate(at, sge, hca_qp_type(qp->hca));
        scratch->sends[i].next = i + 1 < count ? &scratch->sends[i + 1] : NULL;
        sge = sges_translate(at->sg_list, at->num_sge, sge);
    }
    const struct hca_send_wr *bad = NULL;
    int status = hca_post_send(qp->hca, scratch->sends, &bad);
    for (const struct hca_send_wr *good = scratch->sends; status != 0 && good != bad; good++) {
        wr = wr->next;
    }
    *bad_out = status != 0 ? wr : *bad_out;
    return status;
}

// --- receive ---------------------------------------------------------------------------------------------------------

static void receives_translate(struct ibsim_scratch *scratch, const struct ibv_recv_wr *wr, unsigned count)
{
    struct hca_sge *sge = scratch->sges;
    for (unsigned i = 0; i < count; i++, wr = wr->next) {
        scratch->receives[i] = (struct hca_receive_wr){.wr_id = wr->wr_id,
                                                       .next = i + 1 < count ? &scratch->receives[i + 1] : NULL,
                                                       .sges = sge,
                                                       .sge_count = (unsigned)wr->num_sge};
        sge = sges_translate(wr->sg_list, wr->num_sge, sge);
    }
}

static void receive_refuse(const struct ibsim_scratch *scratch, const struct hca_receive_wr *bad,
                           const struct ibv_recv_wr *wr, const struct ibv_recv_wr **bad_out)
{
    for (const struct hca_receive_wr *good = scratch->receives; good != bad; good++) {
        wr = wr->next;
    }
    *bad_out = wr;
}

int ibsim_post_recv(void *object, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out)
{
    const struct ibsim_qp *qp = object;
    struct ibsim_scratch *scratch = &qp->context->scratch;
    if (!reserve_receives(scratch, wr, count)) {
        *bad_out = wr;
        return -ENOMEM;
    }
    receives_translate(scratch, wr, count);
    const struct hca_receive_wr *bad = NULL;
    int status = hca_post_receive(qp->hca, scratch->receives, &bad);
    if (status != 0) {
        receive_refuse(scratch, bad, wr, bad_out);
    }
    return status;
}

int ibsim_post_srq_recv(void *object, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out)
{
    const struct ibsim_srq *srq = object;
    struct ibsim_scratch *scratch = &srq->context->scratch;
    if (!reserve_receives(scratch, wr, count)) {
        *bad_out = wr;
        return -ENOMEM;
    }
    receives_translate(scratch, wr, count);
    const struct hca_receive_wr *bad = NULL;
    int status = hca_post_srq_receive(srq->hca, scratch->receives, &bad);
    if (status != 0) {
        receive_refuse(scratch, bad, wr, bad_out);
    }
    return status;
}
