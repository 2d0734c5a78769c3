// Mistakes with the memory of requests (--check): changed or accessed by the program while the device has it. Private
// to the folder.
//
// What a device sends from is hashed when the request is posted and again when its completion is polled: of the first
// segment, up to 64 KiB of it. Of what a device writes to, accesses to the first and last bytes are counted by the
// processor's watchpoints, which are few: of two requests a thread at a time.
// Leaves out: further segments, memory of GPUs, shared receive queues, what is changed and changed back.
#pragma once

#include "verbs-shim/ibverbs/note.h"

// What the device has taken.
void ibverbs_check_send(struct ibverbs_qp *qp, const struct ibv_send_wr *wr);
void ibverbs_check_receive(struct ibverbs_qp *qp, const struct ibv_recv_wr *wr);
void ibverbs_check_completion(struct ibverbs_cq *cq, const struct ibv_wc *wc);
// The queue pair goes, or is reset: what it had is not looked at.
void ibverbs_check_end(struct ibverbs_qp *qp);
