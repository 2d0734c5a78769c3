// What a device implements below libibverbs.
//
// The library (the functions of <infiniband/verbs.h>) keeps the objects that programs see, their reference counts, the
// queues of events, and everything that all devices have in common. It checks of each call what can be checked without
// the device (ranges of attributes against ibverbs_device_info, access flags, transitions of queue pairs, opcodes,
// states, lengths of lists, EBUSY) and calls the device with what is left. A device checks what only it can know:
// whether a queue is full, whether memory exists, keys and addresses in work requests, the peer's answers.
//
// Work requests, completions and attributes are those of the public header, so a device needs no third kind of struct.
// Fields that the mask, the opcode or the QP's type do not name are undefined.
//
// Functions return 0 or a negative errno, and set their outputs only on success. Objects are the device's own and
// opaque to the library. One thread of a process at a time calls them.
//
// Time: an operation pays for the whole call of the program, entry and exit included. Calls that the library refuses or
// answers by itself take no time.
//
// Not modelled: memory windows, flow steering, work queues, path migration, device memory, on-demand paging,
// re-registration. The library refuses them as a device without the feature does.
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs-shim/backend/backend.h"

// --- attributes -----------------------------------------------------------------------------------------------------

struct ibverbs_device_info {
    // The library enforces the limits; 0: the device has none of that object. node_guid in network byte order.
    struct ibv_device_attr attr;
    uint32_t max_inline_bytes;
    uint32_t qp_types; // 1 << IBV_QPT_RC, UC, UD, XRC_SEND, XRC_RECV (both or none)
    uint32_t send_ops; // IBV_QP_EX_WITH_*: operations of its queue pairs, as far as their type allows them
    int completion_vectors;
};

// --- events ---------------------------------------------------------------------------------------------------------

struct ibverbs_event {
    bool completion;          // true: an event of a CQ; false: asynchronous
    enum ibv_event_type type; // IBA 11.6.3
    // What the object was created with; NULL: it was destroyed, or the event belongs to the port or the device.
    void *user;
    uint8_t port;
};

#define IBVERBS_FOR_EVER 0u
#define IBVERBS_NO_WAIT  UINT64_MAX

// --- arguments ------------------------------------------------------------------------------------------------------

struct ibverbs_region {
    void *address; // the program's address
    size_t bytes;  // at least 1; address + bytes does not wrap
    uint64_t iova; // address of the first byte in work requests: the same offset in a 4 KiB page as the address
    unsigned access;
    // GPU memory: the address at which the library has pinned it for devices of the node. 0: memory of the program.
    uint64_t bus_address;
};

struct ibverbs_qp_create {
    enum ibv_qp_type type;
    void *xrcd;              // of XRC_RECV, which has no CQs, no queues and no protection domain
    void *send_cq, *recv_cq; // recv_cq: NULL for XRC_SEND
    void *srq;               // NULL: a receive queue of its own
    struct ibv_qp_cap cap;   // the minimum; the actual values are written back
    bool all_signaled;
    void *user;
};

// A shared receive queue of an XRC domain.
struct ibverbs_srq_xrc {
    void *xrcd, *cq;
    uint32_t number; // by which peers name it: written back
};

// --- operations -----------------------------------------------------------------------------------------------------

// A failed request, as far as the device knows it.
struct ibverbs_failure {
    bool is_receive;
    uint32_t opcode; // enum ibv_wc_opcode
    uint64_t bytes;  // requested bytes; of a receive: the room of its buffers
    uint64_t remote_address;
    uint32_t rkey, lkey;
    uint64_t address, first_bytes; // first segment, to which lkey belongs; inline data has none
    uint32_t segments;
};

// A poll that finds nothing and does nothing else: what it costs (BACKEND_COST_*), and until when that holds.
struct ibverbs_idle_poll {
    const volatile void *word; // that it polls; NULL: all that devices write
    const uint64_t
        *state; // is another number if anything else has changed that the poll depends on; NULL: nothing else
    unsigned calls, locks, loads;
    uint64_t until_ps; // UINT64_MAX: for ever
};
enum ibverbs_idle { IBVERBS_IDLE, IBVERBS_FINDS, IBVERBS_IDLE_UNKNOWN }; // FINDS: or it does something else

struct ibverbs_device_ops {
    // device: the argument of ibverbs_device_add. These may be called before open.
    int (*query_device)(void *device, struct ibverbs_device_info *info_out);
    int (*query_port)(void *device, unsigned port, struct ibv_port_attr *attr_out); // ports count from 1
    // index: less than gid_tbl_len and pkey_tbl_len of the port.
    int (*query_gid)(void *device, unsigned port, unsigned index, union ibv_gid *gid_out);
    int (*query_pkey)(void *device, unsigned port, unsigned index, uint16_t *pkey_out);

    int (*open)(void *device, struct backend_process *process, void **context_out);
    // Every object of the context was destroyed before. -EBUSY otherwise.
    int (*close)(void *context);
    // The process has ended, at whatever point. The calls that destroy its objects and close the context follow; they
    // take no time, and need not reach the machine.
    void (*abandon)(void *context);
    // The next event of the context. timeout_ns: or IBVERBS_FOR_EVER, IBVERBS_NO_WAIT. -EAGAIN: there is none now.
    // -ETIMEDOUT. -EINTR: a different event ended the wait.
    int (*event_get)(void *context, uint64_t timeout_ns, struct ibverbs_event *event_out);
    // Would event_get return an event now? Takes no time. NULL: only event_get knows. Of a device with due_ps, event_get also
    // does the work that raises one.
    bool (*event_waits)(const void *context);
    // When event_get has work without a write by a device: for what was posted, or at a time; 0: now; UINT64_MAX: never.
    // Takes no time. NULL: never. events: there is also work if an event waits.
    uint64_t (*due_ps)(void *context, bool events);
    // Has a request been posted that has not left yet? The device would not send it once the process has ended. Takes no
    // time. NULL: never.
    bool (*sends_wait)(void *context);
    // true: all that the device's library does in polls and in event_get is to retransmit what the peer is not ready for.
    // Without the lock. NULL: it never retransmits.
    bool (*repeats)(void *context);

    int (*pd_create)(void *context, void **pd_out);
    int (*pd_destroy)(void *pd);
    int (*xrcd_create)(void *context, void **xrcd_out);
    int (*xrcd_destroy)(void *xrcd);

    // -EFAULT: no such memory. -ENOMEM. -EOPNOTSUPP: an iova that is not the address.
    int (*mr_register)(void *pd, const struct ibverbs_region *region, void **mr_out, uint32_t *lkey_out,
                       uint32_t *rkey_out);
    // After it returns 0, no device accesses the memory. -EBUSY: a device still may, and the region is unchanged.
    int (*mr_deregister)(void *mr);

    // true: the processor copies the region's data, as the device cannot reach it. NULL: never.
    bool (*mr_is_copied)(void *mr);

    // entries: the minimum; the actual number is written back.
    int (*cq_create)(void *context, unsigned *entries, unsigned vector, void *user, void **cq_out);
    int (*cq_destroy)(void *cq);
    // NULL: not supported. -EINVAL: the queue holds more completions.
    int (*cq_resize)(void *cq, unsigned *entries);
    int (*cq_poll)(void *cq, int max, struct ibv_wc *wc_out); // returns their number; 0 too takes the time of a call
    int (*cq_arm)(void *cq, bool solicited_only);             // IBA 11.4.2.2
    // The number of completions that cq_poll could take now, and the first of them; takes none, and is called without
    // the lock.
    unsigned (*cq_waiting)(void *cq, struct ibv_wc *first_out);
    // The word in memory at which the device's next completion can be seen. NULL: there is no such word.
    const volatile void *(*cq_next_word)(void *cq);
    // Would a poll find nothing, and do nothing else? Takes no lock.
    enum ibverbs_idle (*cq_idle)(void *cq, struct ibverbs_idle_poll *poll_out);
    // Waits as a program that polls an empty CQ in a loop, and ends at the same time. 0: there is a completion.
    // -ETIMEDOUT. timeout_ns 0: forever.
    int (*cq_wait)(void *cq, uint64_t timeout_ns);

    int (*srq_create)(void *pd, struct ibv_srq_attr *attr, void *user, void **srq_out); // attr: like cap of a QP
    // NULL: the device has no XRC. The same holds for the functions of XRC domains.
    int (*srq_create_xrc)(void *pd, struct ibv_srq_attr *attr, struct ibverbs_srq_xrc *xrc, void *user, void **srq_out);
    int (*srq_destroy)(void *srq);
    int (*srq_arm)(void *srq, unsigned limit); // 0: disarm
    int (*srq_query)(void *srq, struct ibv_srq_attr *attr_out);

    // pd: NULL for XRC_RECV.
    int (*qp_create)(void *pd, struct ibverbs_qp_create *create, void **qp_out, uint32_t *number_out);
    int (*qp_destroy)(void *qp);
    // The transition is valid from the state that qp_query returns, with the attributes that it needs (IBA 10.3.1).
    int (*qp_modify)(void *qp, const struct ibv_qp_attr *attr, int mask);
    // Called before each qp_modify. attr holds what the program has set so far; the device overwrites what it knows
    // better: qp_state (always), sq_psn, rq_psn, sq_draining.
    int (*qp_query)(void *qp, struct ibv_qp_attr *attr);

    // A UD queue pair starts or stops to receive messages to the group. NULL: the device has no multicast. -EBUSY: this
    // is its state already.
    int (*group_change)(void *qp, const union ibv_gid *gid, uint16_t lid, bool attach);

    int (*ah_create)(void *pd, const struct ibv_ah_attr *attr, void **ah_out);
    int (*ah_destroy)(void *ah);

    // Posts the first `count` of the list, which the library has checked; the list may be longer. Stops at the first
    // that is refused, which *bad_out names. -ENOMEM: the queue is full.
    int (*post_send)(void *qp, const struct ibv_send_wr *wr, unsigned count, const struct ibv_send_wr **bad_out);
    int (*post_recv)(void *qp, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out);
    int (*post_srq_recv)(void *srq, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out);
    unsigned (*send_room)(void *qp); // requests that post_send accepts now
    // The last of its requests that failed, except flushed ones. false: it is not known. NULL: never.
    bool (*qp_failure)(void *qp, struct ibverbs_failure *failure_out);
    // Requests that were posted and have not completed; without the lock.
    void (*qp_outstanding)(void *qp, unsigned *sends_out, unsigned *receives_out);
};

// The device's address handle for a request to a UD queue pair.
void *ibverbs_ah_object(const struct ibv_ah *ah);

// --- the environment ------------------------------------------------------------------------------------------------

#define IBVERBS_DEVICES_MAX 4

// Gives the process a device, such as "ibsim0", before the process's first instruction, so no function of the device is
// called. name and device must exist longer than the process. -ENOMEM, -ENOSPC.
int ibverbs_device_add(struct backend_process *process, const char *name, const struct ibverbs_device_ops *ops,
                       void *device);

// --- processes of their own -----------------------------------------------------------------------------------------

// Functions for a process whose threads are the operating system's. A simulated process is one thread and has none of
// them.
struct ibverbs_outside {
    // The lock of the process; a thread may acquire it more than once.
    void (*lock)(void);
    void (*unlock)(void);
    // Waits until a device may have written to memory of the process or raised an event for it, or a signal was handled.
    // Others may have the lock meanwhile, however often the caller has acquired it. A cancellation point
    // (pthread_cancel), as the read(2) in which a real library waits.
    void (*wait)(void);
    // How many signals the calling thread has handled by handlers that were set without SA_RESTART.
    unsigned (*interrupts)(void);
    // A poll of a completion queue was empty. site: identifies the call and its queue. word: the polled word in memory,
    // if the device has one. repeats: as of repeats. true: something was written to the process meanwhile, and the
    // library polls again at once. Called without the lock.
    bool (*polled_empty)(uint64_t site, const volatile void *word, bool repeats);
    // Has the program gone on in this call with its poll carried out already, and empty? *again_out: as the result of
    // polled_empty. NULL: it never has.
    bool (*resumed)(bool *again_out);
    // A poll has found something.
    void (*found)(void);
    // The program's entry of ibv_poll_cq, which calls ibverbs_poll_cq_at. NULL: ibverbs_poll_cq.
    int (*poll_cq)(struct ibv_cq *cq, int max, struct ibv_wc *wc);
    // Something was written to a file descriptor on which another thread may wait.
    void (*signalled)(void);
    // What the calling thread has copied to device memory must have left before another thread gets the lock.
    void (*settle)(void);
    // The program has opened a device.
    void (*opened)(void);
};

// ibv_poll_cq, called by the program at `site`.
int ibverbs_poll_cq_at(struct ibv_cq *cq, int max, struct ibv_wc *wc, uint64_t site);
enum ibverbs_idle ibverbs_poll_idle(struct ibv_cq *cq, struct ibverbs_idle_poll *poll_out); // cq_idle

void ibverbs_outside_set(struct backend_process *process, const struct ibverbs_outside *outside);

// Implemented by environments that cannot add devices before the process's first instruction; called when the program
// first asks for devices.
__attribute__((weak)) void ibverbs_process_begin(struct backend_process *process);

// Moves the events that devices have raised to the channels and contexts where programs wait, so that their descriptors
// become readable. Called by a thread that waits for a descriptor on behalf of the program.
void ibverbs_events_poll(struct backend_process *process);
void ibverbs_events_look(struct backend_process *process);                    // only those of devices without due_ps
uint64_t ibverbs_events_due_ps(struct backend_process *process, bool events); // the earliest due_ps of its contexts
bool ibverbs_sends_wait(const struct backend_process *process);               // of one of them
bool ibverbs_events_repeat(const struct backend_process *process);            // for all of them

enum ibverbs_kind {
    IBVERBS_CONTEXT,
    IBVERBS_PD,
    IBVERBS_XRCD,
    IBVERBS_MR,
    IBVERBS_CHANNEL,
    IBVERBS_CQ,
    IBVERBS_SRQ,
    IBVERBS_QP,
    IBVERBS_AH,
    IBVERBS_KINDS
};

// Objects that the process has created and not destroyed.
unsigned ibverbs_live(const struct backend_process *process, enum ibverbs_kind kind);

// --- for programs that know that they are simulated -----------------------------------------------------------------

// Returns when a loop of ibv_poll_cq would find a completion, at the same time as that loop: 0; ETIMEDOUT. It saves the
// simulator from executing the loop. timeout_ns 0: forever.
int ibverbs_cq_wait(struct ibv_cq *cq, uint64_t timeout_ns);
