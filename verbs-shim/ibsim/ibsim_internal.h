// Shared by the parts of ibsim0. Private to the folder. The device's objects are the driver's own.
#pragma once

#include <errno.h>

#include "verbs-shim/hca/hca_driver.h"
#include "verbs-shim/ibsim/ibsim.h"
#include "verbs-shim/ibverbs/opcodes.h"

// Buffers for the translation of work requests and completions, a list at a time; the process is one thread.
struct ibsim_scratch {
    struct hca_wc *completions; // the number of entries of the largest CQ
    struct hca_send_wr *sends;
    struct hca_receive_wr *receives;
    struct hca_sge *sges;
    unsigned completion_count, send_count, receive_count, sge_count;
};

struct ibsim_context {
    hca_context_t *hca;
    struct ibsim_scratch scratch;
};

// Code that translates lists needs the context.
struct ibsim_pd {
    struct ibsim_context *context;
    hca_pd_t *hca;
};
struct ibsim_xrcd {
    struct ibsim_context *context;
    hca_xrcd_t *hca;
};
struct ibsim_cq {
    struct ibsim_context *context;
    hca_cq_t *hca;
};
struct ibsim_qp {
    struct ibsim_context *context;
    hca_qp_t *hca;
};
struct ibsim_srq {
    struct ibsim_context *context;
    hca_srq_t *hca;
};

int ibsim_cq_create(void *context, unsigned *entries, unsigned vector, void *user, void **cq_out);
int ibsim_cq_resize(void *cq, unsigned *entries);
int ibsim_cq_destroy(void *cq);
int ibsim_cq_poll(void *cq, int max, struct ibv_wc *wc_out);
int ibsim_cq_arm(void *cq, bool solicited_only);
const volatile void *ibsim_cq_next_word(void *cq);
enum ibverbs_idle ibsim_cq_idle(void *cq, struct ibverbs_idle_poll *poll_out);
unsigned ibsim_cq_waiting(void *cq, struct ibv_wc *first_out);
void ibsim_qp_outstanding(void *qp, unsigned *sends_out, unsigned *receives_out);
bool ibsim_qp_failure(void *qp, struct ibverbs_failure *failure_out);
int ibsim_cq_wait(void *cq, uint64_t timeout_ns);

int ibsim_srq_create(void *pd, struct ibv_srq_attr *attr, void *user, void **srq_out);
int ibsim_srq_create_xrc(void *pd, struct ibv_srq_attr *attr, struct ibverbs_srq_xrc *xrc, void *user, void **srq_out);
int ibsim_srq_destroy(void *srq);
int ibsim_srq_arm(void *srq, unsigned limit);
int ibsim_srq_query(void *srq, struct ibv_srq_attr *attr_out);

int ibsim_qp_create(void *pd, struct ibverbs_qp_create *create, void **qp_out, uint32_t *number_out);
int ibsim_qp_destroy(void *qp);
int ibsim_qp_modify(void *qp, const struct ibv_qp_attr *attr, int mask);
int ibsim_qp_query(void *qp, struct ibv_qp_attr *attr);

int ibsim_group_change(void *qp, const union ibv_gid *gid, uint16_t lid, bool attach);

int ibsim_post_send(void *qp, const struct ibv_send_wr *wr, unsigned count, const struct ibv_send_wr **bad_out);
int ibsim_post_recv(void *qp, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out);
int ibsim_post_srq_recv(void *srq, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out);
unsigned ibsim_send_room(void *qp);
bool ibsim_scratch_completions(struct ibsim_scratch *scratch, unsigned count);
void ibsim_scratch_free(struct ibsim_scratch *scratch);
