// What an adapter loses without a word to anybody (IBA 9.6.1, 9.8.2, 9.8.3): messages of UD and UC; and completions,
// for which a completion queue had no room. qpn: here, that it was for; of OVERRUN whose completion it was, 0: not
// known.
#pragma once

#include <stdint.h>

enum hca_loss_kind { HCA_LOSS_ADDRESS, HCA_LOSS_NO_QP, HCA_LOSS_QKEY, HCA_LOSS_NO_RECEIVE, HCA_LOSS_CQ_OVERRUN };

struct hca_loss {
    enum hca_loss_kind kind;
    uint32_t qpn, source_qpn;
    uint16_t source_lid, lid; // lid: that it was for
    uint32_t bytes;           // of the packet
    uint32_t qkey, own_qkey;  // of QKEY: in the packet, of the queue pair
    uint32_t entries;         // of OVERRUN: that the completion queue has
};
