// Losses that cause no packet on the wire, reported to the observers of the simulation.
#include "models/hca/internal.h"

void hca_set_lost(hca_t *hca, hca_lost_fn lost, void *ctx)
{
    hca->lost = lost;
    hca->lost_ctx = ctx;
}

void hca_lost_message(hca_t *hca, const ib_packet_t *packet, const struct hca_qp *qp, enum hca_loss_kind kind)
{
    hca->counters[HCA_PACKETS_DISCARDED]++;
    bool unreliable = packet->service == IB_UD || packet->service == IB_UC;
    if (hca->lost != NULL && unreliable) {
        hca->lost(hca->lost_ctx, hca->name,
                  &(struct hca_loss){.kind = kind,
                                     .qpn = packet->dest_qpn,
                                     .source_qpn = packet->source_qpn,
                                     .source_lid = packet->slid,
                                     .lid = packet->dlid,
                                     .bytes = packet->bytes,
                                     .qkey = packet->qkey,
                                     .own_qkey = qp != NULL ? qp->attr.qkey : 0});
    }
}

void hca_lost_completion(const struct hca_cq *cq, uint32_t qpn)
{
    hca_t *hca = cq->hca;
    if (hca->lost != NULL) {
        hca->lost(hca->lost_ctx, hca->name,
                  &(struct hca_loss){.kind = HCA_LOSS_CQ_OVERRUN, .qpn = qpn, .entries = cq->init.entries});
    }
}
