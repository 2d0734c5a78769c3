// Messages to ranks of other sub-clusters: reliable RDMA writes on ibsim0, one queue pair for each pair of ranks.
// Private to the room.
//
// A message is the payload, and behind it, at the next multiple of 8, a word with the number of the repetition. The
// receiver polls that word, as ib_write_lat polls the last byte. Sender and receiver have memory for `slots` messages.
#pragma once

#include <infiniband/verbs.h>

#include "scenarios/workloads/region.h"
#include "scenarios/workloads/workload.h"

#define FAR_NONE UINT32_MAX

struct far_link {
    struct ibv_qp *qp; // NULL: the link is not used
    uint64_t address;  // of the other rank's slots
    uint32_t key;
    uint32_t outstanding;
};

struct far {
    struct workload *workload;
    const struct backend *backend;
    const char *program;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_port_attr port;
    struct ibv_mr *send_mr, *receive_mr;
    struct region send, receive;
    struct far_link *links;
    uint32_t link_count, slots;
    size_t stride; // between two slots
    uint32_t outstanding;
};

// Opens the device and allocates slots for messages of up to `bytes`. Returns 0, or a negative errno after fail().
int far_open(struct far *far, struct workload *workload, const char *program, uint32_t links, uint32_t slots,
             uint64_t bytes);
// Collective of all ranks: connects link `out` with rank out_rank, which at the same time connects its link `in` with
// this rank, and link `in` with in_rank. FAR_NONE: no such rank. If both ranks are the same one, links are, too. far
// NULL: this rank has no links, but others connect theirs.
int far_connect(struct far *far, struct workload *workload, uint32_t out, uint32_t out_rank, uint32_t in,
                uint32_t in_rank);
void far_close(struct far *far);

// The payload of a slot.
uint8_t *far_send_data(const struct far *far, uint32_t slot);
const uint8_t *far_received_data(const struct far *far, uint32_t slot);
size_t far_offset(const struct far *far, uint32_t slot);

// Before messages of another size: the word of the slot names no repetition.
void far_clear(const struct far *far, uint32_t slot, uint64_t bytes);
// Sends slot from_slot to slot to_slot of the other rank. The slot may be filled again after far_flush.
int far_send(struct far *far, uint32_t link, uint32_t from_slot, uint32_t to_slot, uint64_t bytes, uint64_t number);
// Waits for the message with that number.
int far_wait(struct far *far, uint32_t slot, uint64_t bytes, uint64_t number);
// Waits until all that was sent is complete.
int far_flush(struct far *far);
