// Shared by the parts of the HCA's driver. Private to the folder.
#pragma once

#include <errno.h>

#include "verbs-shim/hca/hca_driver.h"

#define HCA_EVENT_ENTRIES 1024u

// Objects by number.
struct hca_numbered {
    void **objects;
    uint32_t count;
};

struct hca_context {
    struct backend backend;
    struct hca_device_info info;
    uint32_t uar, eqn, users;
    unsigned next_blueflame;
    struct backend_buffer events;
    volatile uint64_t *events_record;
    uint32_t events_taken;
    struct hca_numbered cqs, qps, srqs;
};

struct hca_pd {
    hca_context_t *context;
    uint32_t number, users;
};

struct hca_xrcd {
    hca_pd_t *pd; // of the XRC targets
    uint32_t number;
};

struct hca_mr {
    hca_pd_t *pd;
    uint32_t key;
};

struct hca_ah {
    hca_pd_t *pd;
    uint16_t dlid;
    uint8_t sl;
    bool global;
    struct hca_route route; // if global
};

struct hca_cq {
    hca_context_t *context;
    uint32_t number, entries, consumer, users;
    void *user;
    struct backend_buffer record_buffer, buffer; // buffer: the ring
    volatile uint64_t *record;
    struct hca_cqe *ring;
};

// The buffer of a receive request; address, lkey, first_bytes: of its first segment.
struct hca_receive_buffer {
    uint64_t bytes, address, first_bytes;
    uint32_t lkey, segments;
};

// A receive queue, of one QP or shared: its entries in order, and the posted requests by cookie.
struct hca_receive_ring {
    uint8_t *ring;
    volatile uint64_t *record;
    uint32_t entries, stride_bytes, segments, posted;
    uint64_t *wr_ids;                   // by cookie
    struct hca_receive_buffer *buffers; // by cookie
    uint32_t *cookies;                  // free ones
    uint32_t free_count;
};

struct hca_srq {
    hca_pd_t *pd;
    hca_cq_t *cq; // of an XRC receive queue; otherwise NULL
    uint32_t number, users;
    void *user;
    struct backend_buffer buffer;
    struct hca_receive_ring receive;
};

struct hca_qp {
    hca_pd_t *pd;
    enum hca_qp_type type;
    enum hca_qp_state state; // as this driver set it last
    bool failed;             // a completion reported an error
    bool all_signaled;
    uint32_t number;
    void *user;
    hca_cq_t *send_cq, *receive_cq;
    hca_srq_t *srq;
    struct backend_buffer buffer;
    uint8_t *send_ring;
    uint32_t send_entries, send_stride_bytes, send_segments, inline_bytes;
    uint32_t send_posted, send_done;
    uint64_t *wr_ids;
    struct hca_receive_ring receive;
    struct hca_failure failure;
};

static inline int hca_command(const hca_context_t *context, struct hca_command *command)
{
    return context->backend.ops->hca_command(context->backend.ctx, command);
}
// A command that creates an object and returns its number.
static inline int hca_create(const hca_context_t *context, struct hca_command command, uint32_t *number_out)
{
    int status = hca_command(context, &command);
    *number_out = command.number;
    return status;
}
// A command without operands.
static inline int hca_command_plain(const hca_context_t *context, enum hca_command_id id, uint32_t number)
{
    return hca_command(context, &(struct hca_command){.id = id, .number = number});
}
static inline void hca_cost(const hca_context_t *context, enum backend_cost kind, uint64_t amount)
{
    context->backend.ops->cost(context->backend.ctx, kind, amount);
}
static inline void hca_doorbell(const hca_context_t *context, uint32_t offset, uint64_t value)
{
    context->backend.ops->write(context->backend.ctx, BACKEND_BAR_HCA_UAR,
                                (uint64_t)context->uar * HCA_UAR_BYTES + offset, value, 8);
}

bool hca_numbered_set(struct hca_numbered *numbered, uint32_t number, void *object); // false: no memory
static inline void *hca_numbered_get(const struct hca_numbered *numbered, uint32_t number)
{
    return number < numbered->count ? numbered->objects[number] : NULL;
}

uint32_t hca_round_up(uint32_t value, uint32_t least); // to a power of two
uint32_t hca_receive_stride(unsigned segments);
// ring and record are in pinned memory. -ENOMEM.
int hca_receive_init(struct hca_receive_ring *receive, uint32_t entries, uint32_t segments, uint8_t *ring,
                     volatile uint64_t *record);
void hca_receive_fini(struct hca_receive_ring *receive);
void hca_receive_reset(struct hca_receive_ring *receive);
uint64_t hca_receive_take(struct hca_receive_ring *receive, uint32_t cookie); // returns the wr_id; frees the cookie
void hca_receive_doorbell(hca_qp_t *qp); // for a queue pair in error: the HCA flushes what was posted
void hca_cq_clean(hca_cq_t *cq, const hca_qp_t *qp);
void hca_cq_clean_srq(hca_cq_t *cq, uint32_t srqn); // removes its XRC receives
