// What an adapter loses without any notification (IBA 9.6.1, 9.8.2, 9.8.3): messages of UD and UC; and completions for
// which a completion queue had no room. qpn: the destination at this adapter; of OVERRUN: the queue pair of the
// completion, 0: not known.
#pragma once

#include <stdint.h>

enum hca_loss_kind { HCA_LOSS_ADDRESS, HCA_LOSS_NO_QP, HCA_LOSS_QKEY, HCA_LOSS_NO_RECEIVE, HCA_LOSS_CQ_OVERRUN };

struct hca_loss {
    enum hca_loss_kind kind;
    uint32_t qpn, source_qpn;
    uint16_t source_lid, lid; // lid: the destination
    uint32_t bytes;           // of the packet
    uint32_t qkey, own_qkey;  // of QKEY: of the packet, of the queue pair
    uint32_t entries;         // of OVERRUN: entries of the completion queue
};
