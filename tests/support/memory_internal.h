// Shared by the parts of the device in memory.
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory_device.h"

struct memory_port {
    struct memory_world *world;
    uint16_t lid;
    bool connected;
};

struct memory_world {
    struct memory_port ports[MEMORY_PORTS_MAX];
    unsigned port_count, live, abandoned;
    bool exhausted;
    uint32_t keys, numbers;
    struct memory_context *contexts;
    struct memory_mr *mrs;
    struct memory_qp *qps;
    uint8_t *(*bus_at)(void *arg, uint64_t bus_address);
    void *bus_arg;
    void (*wait)(void *arg);
    void *wait_arg;
};

struct memory_event {
    struct memory_event *next;
    struct ibverbs_event event;
};

struct memory_context {
    struct memory_context *next;
    struct memory_port *port;
    struct memory_event *events, **events_end;
};

struct memory_pd {
    struct memory_context *context;
};

struct memory_mr {
    struct memory_mr *next;
    struct memory_pd *pd;
    struct ibverbs_region region;
    uint32_t key;
};

struct memory_ah {
    struct memory_world *world;
    struct ibv_ah_attr attr;
};

struct memory_cqe {
    struct ibv_wc wc;
    struct memory_qp *qp; // NULL: it was destroyed
    bool is_send, solicited;
    bool notified;  // an event has been raised since it arrived
    uint32_t index; // for a send request
};

enum memory_arm { DISARMED, ARMED_SOLICITED, ARMED_ANY };

struct memory_cq {
    struct memory_context *context;
    void *user;
    struct memory_cqe *ring; // entries; the oldest at 0
    unsigned entries, count;
    enum memory_arm arm;
    bool overrun;
};

struct memory_receive {
    uint64_t wr_id;
    struct ibv_sge sges[MEMORY_SGE_MAX];
    int sge_count;
};

struct memory_rq {
    struct memory_receive *ring;
    uint32_t entries, max_sge;
    uint32_t posted, taken, freed; // freed: incremented when the completion is polled
};

struct memory_srq {
    struct memory_pd *pd;
    void *user;
    struct memory_rq rq;
    uint32_t limit;
};

struct memory_request {
    struct ibv_send_wr wr;
    struct ibv_sge sges[MEMORY_SGE_MAX];
    uint8_t inlined[MEMORY_INLINE_MAX];
    uint32_t inline_bytes;
};

struct memory_qp {
    struct memory_qp *next;
    struct memory_pd *pd;
    void *user;
    enum ibv_qp_type type;
    uint32_t number;
    struct memory_cq *send_cq, *recv_cq;
    struct memory_srq *srq;
    bool all_signaled, established;
    struct ibv_qp_attr attr; // includes qp_state
    struct memory_request *ring;
    uint32_t entries, posted, executed, done; // done: incremented when the completion is polled
    struct memory_rq rq;
};

// --- objects --------------------------------------------------------------------------------------------------------

// Zeroed memory. NULL: exhausted.
void *memory_alloc(struct memory_world *world, size_t bytes);
void memory_free(struct memory_world *world, void *object);
// Drops the user pointer of its pending events.
void memory_event_forget(struct memory_context *context, const void *user);
void memory_event_raise(struct memory_context *context, const struct ibverbs_event *event);
static inline struct memory_world *memory_world_of(const struct memory_pd *pd)
{
    return pd->context->port->world;
}

// --- queues ---------------------------------------------------------------------------------------------------------

void memory_cq_add(struct memory_cq *cq, const struct memory_cqe *cqe);
struct memory_rq *memory_qp_rq(struct memory_qp *qp);
// Takes the oldest entry. NULL: there is none.
const struct memory_receive *memory_rq_take(struct memory_rq *rq);
void memory_qp_event(struct memory_qp *qp, enum ibv_event_type type);

// --- transfer -------------------------------------------------------------------------------------------------------

// Moves it to ERR and flushes its queues. event: IBV_EVENT_QP_*, or -1.
void memory_qp_fail(struct memory_qp *qp, int event);
// Executes all requests of all queue pairs that can continue.
void memory_world_progress(struct memory_world *world);

extern const struct ibverbs_device_ops memory_device_ops;

int memory_cq_create(void *context, unsigned *entries, unsigned vector, void *user, void **cq_out);
int memory_cq_destroy(void *cq);
int memory_cq_resize(void *cq, unsigned *entries);
int memory_cq_poll(void *cq, int max, struct ibv_wc *wc_out);
int memory_cq_arm(void *cq, bool solicited_only);
int memory_cq_wait(void *cq, uint64_t timeout_ns);
int memory_srq_create(void *pd, struct ibv_srq_attr *attr, void *user, void **srq_out);
int memory_srq_destroy(void *srq);
int memory_srq_arm(void *srq, unsigned limit);
int memory_srq_query(void *srq, struct ibv_srq_attr *attr_out);
int memory_qp_create(void *pd, struct ibverbs_qp_create *create, void **qp_out, uint32_t *number_out);
int memory_qp_destroy(void *qp);
int memory_qp_modify(void *qp, const struct ibv_qp_attr *attr, int mask);
int memory_qp_query(void *qp, struct ibv_qp_attr *attr);
int memory_post_send(void *qp, const struct ibv_send_wr *wr, unsigned count, const struct ibv_send_wr **bad_out);
int memory_post_recv(void *qp, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out);
int memory_post_srq_recv(void *srq, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out);
unsigned memory_send_room(void *qp);
