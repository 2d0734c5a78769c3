// Shared by the parts of the library. Private to the folder.
//
// An object begins with the public struct that programs hold (the layouts of libibverbs 44, so that unmodified programs
// can use them), followed by an ibverbs_object: its link in the context's list, its number of users, and the device's
// object. Functions return 0 or a negative errno; those of the public header translate.
#pragma once

#include <errno.h>
#include <sys/types.h>

#include "verbs-shim/ibverbs/device.h"
#include "verbs-shim/ibverbs/opcodes.h"

struct ibverbs_library;
struct ibverbs_context;

// Why the current call is refused.
struct ibverbs_refusal {
    enum journal_reason reason;
    uint64_t a, b;
};

struct ibverbs_device {
    struct ibv_device base;
    struct ibverbs_library *library;
    const struct ibverbs_device_ops *ops;
    void *object;
    unsigned index;
    bool known; // the program has listed it, so info is set
    struct ibverbs_device_info info;
};

// The state of a process.
struct ibverbs_library {
    struct backend_process *process;
    struct ibverbs_device devices[IBVERBS_DEVICES_MAX];
    unsigned device_count;
    struct ibverbs_context *contexts;
    unsigned live[IBVERBS_KINDS];
    unsigned settling;                     // calls that wait for acknowledgements
    const struct ibverbs_outside *outside; // NULL: a simulated process
    void *unborn;   // the object that a call is creating, in case the process ends during the call; NULL: none
    bool abandoned; // the process has ended
    const struct backend_journal_ops *journal; // NULL: no journal is kept
    bool journal_all;                          // posts, polls and waits are reported as well
    const _Atomic uint64_t *slot_ps;           // of the process; set if there is a journal
    bool checks;                               // mistakes must be detected
    struct ibverbs_refusal refused;
    uint32_t contexts_opened;
    const struct ibverbs_cq *polled; // the last queue with an empty poll
};

struct ibverbs_object {
    struct ibverbs_object *next, **link; // list of its kind, newest first
    struct ibverbs_context *context;
    enum ibverbs_kind kind;
    void *container; // the object that contains this struct
    void *device;    // the device's object
    unsigned users;
    bool ending; // the device's object is being destroyed: ibverbs_describe must not use it
};

// An event of an object waits in the queue of its channel or context until the program takes it.
struct ibverbs_queued {
    struct ibverbs_queued *next;
    struct ibverbs_event event;
};
struct ibverbs_queue {
    struct ibverbs_queued *first, **end;
    int fd;                                // the program may wait on it
    const struct ibverbs_outside *outside; // NULL: no thread waits on the descriptor
};

// It begins with the table that the inline functions of the header call.
struct ibverbs_context {
    struct verbs_context verbs;
    struct ibverbs_context *next;
    struct ibverbs_device *device;
    void *object;
    struct ibverbs_object *objects[IBVERBS_KINDS];
    uint32_t handles; // number of handles given
    uint32_t number;  // of the context in the process
    struct ibverbs_queue events;
};

struct ibverbs_pd {
    struct ibv_pd base;
    struct ibverbs_object object;
};

struct ibverbs_xrcd {
    struct ibv_xrcd base;
    struct ibverbs_object object;
    unsigned opens;
    bool shared; // through a file
    dev_t file_device;
    ino_t file_inode;
};

struct ibverbs_mr {
    struct ibv_mr base;
    struct ibverbs_object object;
    void *peer_pin; // pin of another device's memory; NULL: memory of the program
    uint64_t iova;
    uint32_t access;
};

struct ibverbs_channel {
    struct ibv_comp_channel base;
    struct ibverbs_object object;
    uint32_t handle;
    struct ibverbs_queue events;
};

// Which thread has a queue (ibverbs_own).
struct ibverbs_owner {
    bool there;
    unsigned waiting; // threads
};

struct ibverbs_cq {
    union {
        struct ibv_cq base;
        struct ibv_cq_ex ex;
    };
    struct ibverbs_object object;
    struct ibv_wc wc;            // the extended interface's current completion
    struct journal_request last; // the last one taken
    uint64_t taken, taken_ps;
    uint32_t completions_taken, events_taken;
    enum journal_armed armed; // since its last event; NOT also if there is no channel
    struct ibverbs_owner owner;
};

struct ibverbs_srq {
    struct ibv_srq base;
    struct ibverbs_object object;
    uint32_t max_wr, max_sge;
    uint32_t events_taken;
    struct ibverbs_xrcd *xrcd; // NULL: not an XRC queue
    struct ibverbs_cq *cq;     // XRC only
    uint32_t number;
};

struct ibverbs_builder;

struct ibverbs_qp {
    union {
        struct ibv_qp base;
        struct ibv_qp_ex ex;
    };
    struct ibverbs_object object;
    struct ibv_qp_attr attr;   // as set by the program; cap
    struct ibverbs_xrcd *xrcd; // XRC_RECV only
    uint32_t send_ops;         // IBV_QP_EX_WITH_*: operations that its type and the device allow
    bool all_signaled;
    uint32_t events_taken;
    struct ibverbs_builder *builder; // NULL: not an extended QP
    uint64_t sends_posted, receives_posted, last_receive_ps;
    uint64_t last_message; // the last send for which the peer needs a receive request: how many were posted with it
    uint32_t unsignaled;   // sends after the last signalled one
    struct ibverbs_checked *checked; // NULL: mistakes are not detected
};

struct ibverbs_ah {
    struct ibv_ah base;
    struct ibverbs_object object;
};

// --- library and objects --------------------------------------------------------------------------------------------

struct ibverbs_library *ibverbs_current(void); // NULL: the caller's process has no devices

static inline const struct ibverbs_device_ops *ibverbs_ops(const struct ibverbs_object *object)
{
    return object->context->device->ops;
}
static inline struct ibverbs_context *ibverbs_context_of(struct ibv_context *context)
{
    return (struct ibverbs_context *)(void *)verbs_get_ctx(context);
}
static inline struct ibverbs_pd *ibverbs_pd_of(struct ibv_pd *pd)
{
    return (struct ibverbs_pd *)pd;
}
static inline struct ibverbs_xrcd *ibverbs_xrcd_of(struct ibv_xrcd *xrcd)
{
    return (struct ibverbs_xrcd *)xrcd;
}
static inline struct ibverbs_cq *ibverbs_cq_of(struct ibv_cq *cq)
{
    return (struct ibverbs_cq *)cq;
}
static inline struct ibverbs_srq *ibverbs_srq_of(struct ibv_srq *srq)
{
    return (struct ibverbs_srq *)srq;
}
static inline struct ibverbs_qp *ibverbs_qp_of(struct ibv_qp *qp)
{
    return (struct ibverbs_qp *)qp;
}

// The result of verbs that on a real machine call the kernel: an errno value or 0. errno is also set, as programs print
// it (perror).
static inline int ibverbs_status(int error)
{
    errno = error != 0 ? error : errno;
    return error;
}

// The caller owns the process's state until the end of the block, if the process has more than one thread.
#define IBVERBS_ENTER(library)                                                                                         \
    struct ibverbs_library *entered __attribute__((cleanup(ibverbs_leave), unused)) = ibverbs_enter(library)
#define IBVERBS_ENTER_CONTEXT(context) IBVERBS_ENTER(ibverbs_context_of(context)->device->library)

static inline struct ibverbs_library *ibverbs_enter(struct ibverbs_library *library)
{
    if (library->outside != NULL) {
        library->outside->lock();
    }
    return library;
}
static inline void ibverbs_leave(struct ibverbs_library **library)
{
    if ((*library)->outside != NULL) {
        (*library)->outside->unlock();
    }
}
// A queue is one thread's between ibv_start_poll and ibv_end_poll, and between ibv_wr_start and ibv_wr_complete: real
// devices have a lock of each queue there. Both are called with the lock of the library, which others may have while
// ibverbs_own waits.
void ibverbs_own(const struct ibverbs_library *library, struct ibverbs_owner *owner);
void ibverbs_disown(const struct ibverbs_library *library, struct ibverbs_owner *owner);
// Sets errno to -status and returns NULL.
void *ibverbs_fail(int status);
// Zeroed memory for an object of the context; the library releases it unless the object is added or dropped. NULL: no
// memory.
void *ibverbs_object_new(struct ibverbs_context *context, size_t bytes);
void ibverbs_object_drop(struct ibverbs_context *context, void *container); // NULL: does nothing
// Adds the object to its context.
void ibverbs_object_add(struct ibverbs_object *object, struct ibverbs_context *context, enum ibverbs_kind kind,
                        void *container);
void ibverbs_object_remove(struct ibverbs_object *object);
// Destroys all objects, those that use others first, then the context itself.
void ibverbs_context_destroy(struct ibverbs_context *context);
void ibverbs_verbs_fill(struct verbs_context *verbs);

// Ends an object that has no users: the device's object, the link in the list, the memory. Returns the device's error;
// then nothing has changed.
int ibverbs_pd_end(struct ibverbs_object *object);
int ibverbs_xrcd_end(struct ibverbs_object *object);
int ibverbs_mr_end(struct ibverbs_object *object);
int ibverbs_channel_end(struct ibverbs_object *object);
int ibverbs_cq_end(struct ibverbs_object *object);
int ibverbs_srq_end(struct ibverbs_object *object);
int ibverbs_qp_end(struct ibverbs_object *object);
int ibverbs_ah_end(struct ibverbs_object *object);

// --- events ---------------------------------------------------------------------------------------------------------

void ibverbs_queue_init(struct ibverbs_queue *queue, const struct ibverbs_library *library, int fd);
// NULL: the queue is empty. The caller frees the event.
struct ibverbs_queued *ibverbs_queue_take(struct ibverbs_queue *queue);
// Removes the events of this object; NULL: all events.
void ibverbs_queue_purge(struct ibverbs_queue *queue, const struct ibverbs_object *object);
// Queues the device's next event at its target. Results as event_get, and -ENOMEM.
int ibverbs_events_pull(struct ibverbs_context *context, uint64_t timeout_ns);
// Until the queue has an event. -EAGAIN: none is there, and its descriptor does not block; -EINTR.
int ibverbs_event_await(struct ibverbs_context *context, const struct ibverbs_queue *queue);
// Waits until the program has acknowledged the events that it took (*acknowledged == taken).
int ibverbs_events_settle(struct ibverbs_context *context, const uint32_t *acknowledged, uint32_t taken);
void ibverbs_events_acknowledged(const struct ibverbs_library *library); // the program has acknowledged some
int ibverbs_event_fd(void);                                              // a negative errno

// --- functions in the tables of a context ---------------------------------------------------------------------------

int ibverbs_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t bytes);
int ibverbs_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                            struct ibv_device_attr_ex *attr, size_t bytes);
struct ibv_cq_ex *ibverbs_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init);
int ibverbs_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc);
int ibverbs_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_qp *ibverbs_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init);
struct ibv_xrcd *ibverbs_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *init);
int ibverbs_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_srq *ibverbs_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init);
int ibverbs_get_srq_num(struct ibv_srq *srq, uint32_t *number);
int ibverbs_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int ibverbs_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int ibverbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

// --- completion queues ----------------------------------------------------------------------------------------------

int ibverbs_cq_create(struct ibverbs_context *context, const struct ibv_cq_init_attr_ex *init,
                      struct ibverbs_cq **cq_out);
// After a poll, without the lock: returns whether it was empty and must be repeated. site: of the program's call.
bool ibverbs_cq_poll_again(struct ibverbs_cq *cq, bool found, uint64_t site);
// A number for the call site: its caller, its stack frame and its queue. Used in functions that the program calls,
// before they call others.
#define IBVERBS_SITE(cq)                                                                                               \
    (((uintptr_t)__builtin_return_address(0) * 31 + (uintptr_t)__builtin_frame_address(0)) * 31 + (uintptr_t)(cq))
void ibverbs_cq_extend(struct ibverbs_cq *cq, uint64_t wc_flags); // sets the readers of these fields

// --- queue pairs ----------------------------------------------------------------------------------------------------

// The IBV_QP_EX_WITH_* that a type of queue pair supports (IBA 10.2.4).
uint32_t ibverbs_qp_type_ops(enum ibv_qp_type type);
// IBA 10.3.1 and table 91 of 11.2.4.2: whether the transition exists and the mask (without IBV_QP_STATE) has all
// required attributes and no others than the allowed ones.
bool ibverbs_qp_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);
// The missing and the surplus attributes of the mask. false: there is no such transition.
bool ibverbs_qp_transition_lacks(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask,
                                 int *missing_out, int *surplus_out);
// The state of the queue pair in the device; RESET if the device does not answer.
enum ibv_qp_state ibverbs_qp_state(struct ibverbs_qp *qp);
// true: the ports of this device can use the address vector.
bool ibverbs_av_valid(struct ibverbs_context *context, const struct ibv_ah_attr *attr);
bool ibverbs_port_valid(const struct ibverbs_context *context, unsigned port);
// Checks all of a request that can be checked without the others; a positive errno.
int ibverbs_send_check(struct ibverbs_qp *qp, const struct ibv_send_wr *wr);

// ops: IBV_QP_EX_WITH_*: the operations whose functions the QP gets. -ENOMEM.
int ibverbs_builder_create(struct ibverbs_qp *qp, uint64_t ops);
void ibverbs_builder_destroy(struct ibverbs_builder *builder);
