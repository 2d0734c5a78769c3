// What a device implements below the face of libibverbs.
//
// The face (the functions of <infiniband/verbs.h>) keeps the objects that programs see, their counts of references, the
// queues of events, and everything that all devices have in common: it checks each call as far as it can be checked
// without the device (ranges of attributes against ibverbs_device_info, access flags, transitions of queue pairs,
// opcodes, states, lengths of lists, EBUSY) and calls the device with what is left. A device checks what only it can
// know: whether a queue is full, whether memory exists, keys and addresses in work requests, what the peer answers.
//
// Work requests, completions and attributes are those of the public header, so that a device needs no third kind of
// struct. Fields that the mask, the opcode or the QP's type do not name are undefined.
//
// Functions return 0 or a negative errno, and set what they give back only on success. Objects are the device's own,
// opaque here. One thread of a process at a time calls them.
//
// Time: an operation pays for the whole call of the program, entry and exit included. What the face refuses, and what
// it answers by itself, takes no time.
//
// Leaves out: memory windows, flow steering, work queues, path migration, device memory, on-demand
// paging, re-registration. The face refuses them as a device without the feature does.
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs-shim/backend/backend.h"

// --- what it is -----------------------------------------------------------------------------------------------------

struct ibverbs_device_info {
    // The limits are enforced by the face; 0 of something: there is none of it. node_guid in network byte order.
    struct ibv_device_attr attr;
    uint32_t max_inline_bytes;
    uint32_t qp_types; // 1 << IBV_QPT_RC, UC, UD, XRC_SEND, XRC_RECV (both or none)
    uint32_t send_ops; // IBV_QP_EX_WITH_*: what its queue pairs can do as far as their type allows it
    int completion_vectors;
};

// --- events ---------------------------------------------------------------------------------------------------------

struct ibverbs_event {
    bool completion;          // a CQ's; or asynchronous:
    enum ibv_event_type type; // IBA 11.6.3
    // What the object was created with; NULL: it is gone, or the event is of the port or the device.
    void *user;
    uint8_t port;
};

#define IBVERBS_FOR_EVER 0u
#define IBVERBS_NO_WAIT  UINT64_MAX

// --- arguments ------------------------------------------------------------------------------------------------------

struct ibverbs_region {
    void *address; // of the program
    size_t bytes;  // at least 1; address + bytes does not wrap
    uint64_t iova; // what work requests call the first byte: the same place in a 4 KiB page as the address
    unsigned access;
    // GPU memory: where the face has pinned it for devices of the node. 0: memory of the program.
    uint64_t bus_address;
};

struct ibverbs_qp_create {
    enum ibv_qp_type type;
    void *xrcd;              // of XRC_RECV, which has neither CQs nor queues nor a protection domain
    void *send_cq, *recv_cq; // recv_cq: of XRC_SEND NULL
    void *srq;               // NULL: a receive queue of its own
    struct ibv_qp_cap cap;   // at least so much; what came out of it is written back
    bool all_signaled;
    void *user;
};

// A shared receive queue of a domain of XRC.
struct ibverbs_srq_xrc {
    void *xrcd, *cq;
    uint32_t number; // what peers name it by: written back
};

// --- operations -----------------------------------------------------------------------------------------------------

// A request that failed, as far as the device knows it.
struct ibverbs_failure {
    bool is_receive;
    uint32_t opcode; // enum ibv_wc_opcode
    uint64_t bytes;  // asked for; of a receive: that there was room for
    uint64_t remote_address;
    uint32_t rkey, lkey;
    uint64_t address, first_bytes; // of the first segment, which lkey is of; inline data has none
    uint32_t segments;
};

struct ibverbs_device_ops {
    // device: what ibverbs_device_add was called with. These may be called before open.
    int (*query_device)(void *device, struct ibverbs_device_info *info_out);
    int (*query_port)(void *device, unsigned port, struct ibv_port_attr *attr_out); // ports count from 1
    // index: less than gid_tbl_len and pkey_tbl_len of the port.
    int (*query_gid)(void *device, unsigned port, unsigned index, union ibv_gid *gid_out);
    int (*query_pkey)(void *device, unsigned port, unsigned index, uint16_t *pkey_out);

    int (*open)(void *device, struct backend_process *process, void **context_out);
    // Every object of the context is gone by now. -EBUSY otherwise.
    int (*close)(void *context);
    // The process has ended, wherever it was. The calls that destroy its objects and close the context follow; they
    // take no time, and need not reach the machine.
    void (*abandon)(void *context);
    // The next event of the context. timeout_ns: or IBVERBS_FOR_EVER, IBVERBS_NO_WAIT. -EAGAIN: none is there now.
    // -ETIMEDOUT. -EINTR: something else came.
    int (*event_get)(void *context, uint64_t timeout_ns, struct ibverbs_event *event_out);
    // Would event_get find one now? Takes no time. NULL: nobody knows before it is asked for.
    bool (*event_waits)(void *context);

    int (*pd_create)(void *context, void **pd_out);
    int (*pd_destroy)(void *pd);
    int (*xrcd_create)(void *context, void **xrcd_out);
    int (*xrcd_destroy)(void *xrcd);

    // -EFAULT: no such memory. -ENOMEM. -EOPNOTSUPP: an iova that is not the address.
    int (*mr_register)(void *pd, const struct ibverbs_region *region, void **mr_out, uint32_t *lkey_out,
                       uint32_t *rkey_out);
    // No device touches the memory any more when it returns 0. -EBUSY: one may, and the region is as it was.
    int (*mr_deregister)(void *mr);

    // Does the processor copy the region's data, as the device does not reach it? NULL: never.
    bool (*mr_is_copied)(void *mr);

    // entries: at least so many; what came out of it is written back.
    int (*cq_create)(void *context, unsigned *entries, unsigned vector, void *user, void **cq_out);
    int (*cq_destroy)(void *cq);
    // NULL: it cannot. -EINVAL: more completions than that are in it.
    int (*cq_resize)(void *cq, unsigned *entries);
    int (*cq_poll)(void *cq, int max, struct ibv_wc *wc_out); // returns how many; also of 0 it takes the time of a call
    int (*cq_arm)(void *cq, bool solicited_only);             // IBA 11.4.2.2
    // How many completions cq_poll would take now, and the first of them; without taking one, and without the lock.
    unsigned (*cq_waiting)(void *cq, struct ibv_wc *first_out);
    // The word in memory at which the device's next completion can be seen. NULL: there is no such word.
    const volatile void *(*cq_place)(void *cq);
    // Is all that the device's library does in polls to send again what the peer is not ready for? Without the lock.
    // NULL: its polls do nothing of the kind.
    bool (*cq_repeats)(void *cq);
    // As a program that polls an empty CQ in a loop, with the same time at the end of it. 0: there is a completion.
    // -ETIMEDOUT. timeout_ns 0: for ever.
    int (*cq_wait)(void *cq, uint64_t timeout_ns);

    int (*srq_create)(void *pd, struct ibv_srq_attr *attr, void *user, void **srq_out); // attr: as cap of a QP
    // NULL: the device has no XRC. So are the domain's.
    int (*srq_create_xrc)(void *pd, struct ibv_srq_attr *attr, struct ibverbs_srq_xrc *xrc, void *user, void **srq_out);
    int (*srq_destroy)(void *srq);
    int (*srq_arm)(void *srq, unsigned limit); // 0: disarm
    int (*srq_query)(void *srq, struct ibv_srq_attr *attr_out);

    // pd: NULL of XRC_RECV.
    int (*qp_create)(void *pd, struct ibverbs_qp_create *create, void **qp_out, uint32_t *number_out);
    int (*qp_destroy)(void *qp);
    // A transition that exists, from the state that qp_query gives, with the attributes that it needs (IBA 10.3.1).
    int (*qp_modify)(void *qp, const struct ibv_qp_attr *attr, int mask);
    // Asked before each qp_modify. attr holds what the program has set so far; the device puts in what it knows better:
    // qp_state (always), sq_psn, rq_psn, sq_draining.
    int (*qp_query)(void *qp, struct ibv_qp_attr *attr);

    // Of a UD: it receives what goes to the group, or no more. NULL: the device has no multicast. -EBUSY: it is so
    // already.
    int (*group_change)(void *qp, const union ibv_gid *gid, uint16_t lid, bool attach);

    int (*ah_create)(void *pd, const struct ibv_ah_attr *attr, void **ah_out);
    int (*ah_destroy)(void *ah);

    // The first `count` of the list, which the face has checked; there may be more behind them. Up to the first that
    // is refused, which *bad_out names. -ENOMEM: the queue is full.
    int (*post_send)(void *qp, const struct ibv_send_wr *wr, unsigned count, const struct ibv_send_wr **bad_out);
    int (*post_recv)(void *qp, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out);
    int (*post_srq_recv)(void *srq, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out);
    unsigned (*send_room)(void *qp); // requests that post_send would take now
    // Requests that were posted and did not come back yet; without the lock.
    // The last of its requests that came back in error, but for flushes. false: it is not known. NULL: never.
    bool (*qp_failure)(void *qp, struct ibverbs_failure *failure_out);
    void (*qp_outstanding)(void *qp, unsigned *sends_out, unsigned *receives_out);
};

// The device's address handle in a request to a UD queue pair.
void *ibverbs_ah_object(const struct ibv_ah *ah);

// --- the environment ------------------------------------------------------------------------------------------------

#define IBVERBS_DEVICES_MAX 4

// Gives the process a device, such as "ibsim0"; before its first instruction, so nothing of the device is called. name
// and device outlive the process.
// -ENOMEM, -ENOSPC.
int ibverbs_device_add(struct backend_process *process, const char *name, const struct ibverbs_device_ops *ops,
                       void *device);

// --- processes of their own -----------------------------------------------------------------------------------------

// What a process has whose threads are the operating system's. A simulated process is one thread and has none of it.
struct ibverbs_outside {
    // Of the process; a thread may take it more than once.
    void (*lock)(void);
    void (*unlock)(void);
    // Until a device may have written to memory of the process or raised an event for it; meanwhile others have the
    // lock, however often the caller has taken it.
    void (*wait)(void);
    // A poll of a completion queue was empty; site: from where, into which. place: the word at which it looked,
    // when the device has one. true: something was written to the process meanwhile, and the face looks again at once.
    // repeats: as of cq_repeats. Without the lock.
    bool (*polled_empty)(uint64_t site, const volatile void *place, bool repeats);
    // A look has found something.
    void (*found)(void);
    // Something was written to a descriptor on which another thread may wait.
    void (*signalled)(void);
    // What the calling thread has copied to device memory has left before another thread gets the lock.
    void (*settle)(void);
    // The program has opened a device.
    void (*opened)(void);
};

void ibverbs_outside_set(struct backend_process *process, const struct ibverbs_outside *outside);

// A function of environments that cannot add devices before the process's first instruction: called when the program
// first asks for them.
__attribute__((weak)) void ibverbs_process_begin(struct backend_process *process);

// Moves what devices have raised to the channels and contexts where programs wait, so that their descriptors become
// readable. For who waits for a descriptor in the program's place.
void ibverbs_look(struct backend_process *process);

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

// --- for programs that know where they are --------------------------------------------------------------------------

// Returns as soon as a loop of ibv_poll_cq would find a completion, at the time at which it would: 0; ETIMEDOUT. It
// spares the simulator the loop. timeout_ns 0: for ever.
int ibverbs_cq_wait(struct ibv_cq *cq, uint64_t timeout_ns);
