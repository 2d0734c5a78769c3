// The device's table: every operation of the program holds the lock of its context, so the program and the progress
// thread alternate. An operation waits without the lock (tcav_progress_wait). Polls, and looks for events, change what the
// next pass does only by their passes.
#include "verbs-shim/tca-verbs/internal.h"

static int event_get(void *object, uint64_t timeout_ns, struct ibverbs_event *event_out)
{
    struct tcav_context *context = object;
    tcav_lock(context);
    int result = tcav_event_get(object, timeout_ns, event_out);
    tcav_unlock(context);
    return result;
}

static int pd_create(void *object, void **pd_out)
{
    struct tcav_context *context = object;
    tcav_enter(context);
    int result = tcav_pd_create(object, pd_out);
    tcav_unlock(context);
    return result;
}

static int pd_destroy(void *object)
{
    struct tcav_context *context = ((struct tcav_pd *)object)->context;
    tcav_enter(context);
    int result = tcav_pd_destroy(object);
    tcav_unlock(context);
    return result;
}

static int mr_register(void *object, const struct ibverbs_region *region, void **mr_out, uint32_t *lkey_out,
                       uint32_t *rkey_out)
{
    struct tcav_context *context = ((struct tcav_pd *)object)->context;
    tcav_enter(context);
    int result = tcav_mr_register(object, region, mr_out, lkey_out, rkey_out);
    tcav_unlock(context);
    return result;
}

static int mr_deregister(void *object)
{
    struct tcav_context *context = ((struct tcav_mr *)object)->pd->context;
    tcav_enter(context);
    int result = tcav_mr_deregister(object);
    tcav_unlock(context);
    return result;
}

static int cq_create(void *object, unsigned *entries, unsigned vector, void *user, void **cq_out)
{
    struct tcav_context *context = object;
    tcav_enter(context);
    int result = tcav_cq_create(object, entries, vector, user, cq_out);
    tcav_unlock(context);
    return result;
}

static int cq_destroy(void *object)
{
    struct tcav_context *context = ((struct tcav_cq *)object)->context;
    tcav_enter(context);
    int result = tcav_cq_destroy(object);
    tcav_unlock(context);
    return result;
}

static int cq_resize(void *object, unsigned *entries)
{
    struct tcav_context *context = ((struct tcav_cq *)object)->context;
    tcav_enter(context);
    int result = tcav_cq_resize(object, entries);
    tcav_unlock(context);
    return result;
}

static int cq_poll(void *object, int max, struct ibv_wc *wc_out)
{
    struct tcav_context *context = ((struct tcav_cq *)object)->context;
    tcav_lock(context);
    int result = tcav_cq_poll(object, max, wc_out);
    tcav_unlock(context);
    return result;
}

static int cq_arm(void *object, bool solicited_only)
{
    struct tcav_context *context = ((struct tcav_cq *)object)->context;
    tcav_enter(context);
    int result = tcav_cq_arm(object, solicited_only);
    tcav_unlock(context);
    return result;
}

static int cq_wait(void *object, uint64_t timeout_ns)
{
    struct tcav_context *context = ((struct tcav_cq *)object)->context;
    tcav_enter(context);
    int result = tcav_cq_wait(object, timeout_ns);
    tcav_unlock(context);
    return result;
}

static int srq_create(void *object, struct ibv_srq_attr *attr, void *user, void **srq_out)
{
    struct tcav_context *context = ((struct tcav_pd *)object)->context;
    tcav_enter(context);
    int result = tcav_srq_create(object, attr, user, srq_out);
    tcav_unlock(context);
    return result;
}

static int srq_destroy(void *object)
{
    struct tcav_context *context = ((struct tcav_srq *)object)->pd->context;
    tcav_enter(context);
    int result = tcav_srq_destroy(object);
    tcav_unlock(context);
    return result;
}

static int srq_arm(void *object, unsigned limit)
{
    struct tcav_context *context = ((struct tcav_srq *)object)->pd->context;
    tcav_enter(context);
    int result = tcav_srq_arm(object, limit);
    tcav_unlock(context);
    return result;
}

static int srq_query(void *object, struct ibv_srq_attr *attr_out)
{
    struct tcav_context *context = ((struct tcav_srq *)object)->pd->context;
    tcav_enter(context);
    int result = tcav_srq_query(object, attr_out);
    tcav_unlock(context);
    return result;
}

static int qp_create(void *object, struct ibverbs_qp_create *create, void **qp_out, uint32_t *number_out)
{
    struct tcav_context *context = ((struct tcav_pd *)object)->context;
    tcav_enter(context);
    int result = tcav_qp_create(object, create, qp_out, number_out);
    tcav_unlock(context);
    return result;
}

static int qp_destroy(void *object)
{
    struct tcav_context *context = ((struct tcav_qp *)object)->pd->context;
    tcav_enter(context);
    int result = tcav_qp_destroy(object);
    tcav_unlock(context);
    return result;
}

static int qp_modify(void *object, const struct ibv_qp_attr *attr, int mask)
{
    struct tcav_context *context = ((struct tcav_qp *)object)->pd->context;
    tcav_enter(context);
    int result = tcav_qp_modify(object, attr, mask);
    tcav_wake(context); // the thread has timers now
    tcav_unlock(context);
    return result;
}

static int qp_query(void *object, struct ibv_qp_attr *attr)
{
    struct tcav_context *context = ((struct tcav_qp *)object)->pd->context;
    tcav_enter(context);
    int result = tcav_qp_query(object, attr);
    tcav_unlock(context);
    return result;
}

static int post_send(void *object, const struct ibv_send_wr *wr, unsigned count, const struct ibv_send_wr **bad_out)
{
    struct tcav_context *context = ((struct tcav_qp *)object)->pd->context;
    tcav_enter(context);
    int result = tcav_post_send(object, wr, count, bad_out);
    tcav_wake(context); // the thread has timers now
    tcav_unlock(context);
    return result;
}

static int post_recv(void *object, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out)
{
    struct tcav_context *context = ((struct tcav_qp *)object)->pd->context;
    tcav_enter(context);
    int result = tcav_post_recv(object, wr, count, bad_out);
    tcav_unlock(context);
    return result;
}

static int post_srq_recv(void *object, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out)
{
    struct tcav_context *context = ((struct tcav_srq *)object)->pd->context;
    tcav_enter(context);
    int result = tcav_post_srq_recv(object, wr, count, bad_out);
    tcav_unlock(context);
    return result;
}

static unsigned send_room(void *object)
{
    struct tcav_context *context = ((struct tcav_qp *)object)->pd->context;
    tcav_enter(context);
    unsigned room = tcav_send_room(object);
    tcav_unlock(context);
    return room;
}

const struct ibverbs_device_ops tca_verbs_ops = {
    .query_device = tcav_query_device,
    .query_port = tcav_query_port,
    .query_gid = tcav_query_gid,
    .query_pkey = tcav_query_pkey,
    .open = tcav_context_open,
    .close = tcav_context_close,
    .abandon = tcav_context_abandon,
    .event_get = event_get,
    .event_waits = tcav_event_waits,
    .due_ps = tcav_due_ps, // these take no lock
    .repeats = tcav_repeats,
    .sends_wait = tcav_sends_wait,
    .pd_create = pd_create,
    .pd_destroy = pd_destroy,
    .mr_register = mr_register,
    .mr_deregister = mr_deregister,
    .mr_is_copied = tcav_mr_is_copied,
    .cq_create = cq_create,
    .cq_destroy = cq_destroy,
    .cq_resize = cq_resize,
    .cq_poll = cq_poll,
    .cq_waiting = tcav_cq_waiting, // these take no lock
    .qp_failure = tcav_qp_failure,
    .qp_outstanding = tcav_qp_outstanding,
    .cq_idle = tcav_cq_idle,
    .cq_arm = cq_arm,
    .cq_wait = cq_wait,
    .srq_create = srq_create,
    .srq_destroy = srq_destroy,
    .srq_arm = srq_arm,
    .srq_query = srq_query,
    .qp_create = qp_create,
    .qp_destroy = qp_destroy,
    .qp_modify = qp_modify,
    .qp_query = qp_query,
    .ah_create = tcav_ah_create,
    .ah_destroy = tcav_ah_destroy,
    .post_send = post_send,
    .post_recv = post_recv,
    .post_srq_recv = post_srq_recv,
    .send_room = send_room,
};
