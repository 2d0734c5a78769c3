// Mistakes with the memory of requests (--check): the program changes or accesses it while the device owns it. Private
// to the folder.
//
// Memory that a device sends is hashed when the request is posted and again when its completion is polled: the first
// segment, up to 64 KiB of it. For memory that a device writes, the processor's watchpoints count accesses to the first
// and last bytes; there are only enough for two requests of a thread at a time.
// Not covered: further segments, memory of GPUs, shared receive queues, bytes that are changed and changed back.
#pragma once

#include "verbs-shim/ibverbs/note.h"

// Called for requests that the device has accepted.
void ibverbs_check_send(struct ibverbs_qp *qp, const struct ibv_send_wr *wr);
void ibverbs_check_receive(struct ibverbs_qp *qp, const struct ibv_recv_wr *wr);
void ibverbs_check_completion(struct ibverbs_cq *cq, const struct ibv_wc *wc);
// The queue pair is destroyed or reset: its requests are not verified.
void ibverbs_check_end(struct ibverbs_qp *qp);
