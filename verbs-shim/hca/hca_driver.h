// The user-space driver of the HCA: what a verbs library calls.
//
// The kernel driver makes objects (backend_ops.hca_command); requests, completions and doorbells go straight to the
// device through memory and the UAR BAR. Semantics are those of the verbs (IBA 1.2.1, chapter 11). Structs are this
// driver's own; an interface such as libibverbs translates them.
//
// Functions return 0 or a negative errno unless they say otherwise. Objects belong to one thread at a time. An object
// in use is not destroyed: -EBUSY. Addresses in work requests are the program's pointers; the HCA checks them against
// their region.
//
// Time: posting pays a library call, the stores of the request, and the stores to the BAR; polling pays a library call
// and the loads.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/hca/abi/hca_abi.h"
#include "verbs-shim/backend/backend.h"

typedef struct hca_context hca_context_t;
typedef struct hca_pd hca_pd_t;
typedef struct hca_mr hca_mr_t;
typedef struct hca_cq hca_cq_t;
typedef struct hca_qp hca_qp_t;
typedef struct hca_srq hca_srq_t;
typedef struct hca_ah hca_ah_t;
typedef struct hca_xrcd hca_xrcd_t;

// --- device ---------------------------------------------------------------------------------------------------------

// Attributes of the node's HCA; it need not be open.
int hca_query_device(const struct backend *backend, struct hca_device_info *info_out);
int hca_query_port(const struct backend *backend, struct hca_port_info *info_out);
// -ENODEV: the node has no HCA. -ENOMEM.
int hca_open(const struct backend *backend, hca_context_t **context_out);
int hca_close(hca_context_t *context); // -EBUSY

// --- protection domains, regions ------------------------------------------------------------------------------------

int hca_pd_create(hca_context_t *context, hca_pd_t **pd_out);
int hca_pd_destroy(hca_pd_t *pd); // -EBUSY

// An XRC domain, and the protection domain that the driver needs for the domain's target queue pairs.
int hca_xrcd_create(hca_context_t *context, hca_xrcd_t **xrcd_out);
int hca_xrcd_destroy(hca_xrcd_t *xrcd); // -EBUSY

// Any memory of the program. -EINVAL: remote write or atomic without local write, or 0 bytes; -EFAULT: no such memory,
// or the region is writable and the memory is not.
int hca_mr_register(hca_pd_t *pd, void *address, size_t bytes, uint32_t access, hca_mr_t **mr_out);
// The same for requests that name it from iova on, which is as far behind a page's beginning as the address.
int hca_mr_register_at(hca_pd_t *pd, void *address, uint64_t iova, size_t bytes, uint32_t access, hca_mr_t **mr_out);
// Memory given by its bus address, such as a pinned range of a GPU's window; requests name it by iova.
int hca_mr_register_bus(hca_pd_t *pd, uint64_t iova, uint64_t bus_address, size_t bytes, uint32_t access,
                        hca_mr_t **mr_out);
int hca_mr_deregister(hca_mr_t *mr);
uint32_t hca_mr_lkey(const hca_mr_t *mr);
uint32_t hca_mr_rkey(const hca_mr_t *mr);

// --- completion queues ----------------------------------------------------------------------------------------------

struct hca_wc {
    uint64_t wr_id;
    enum hca_status status;
    enum hca_cqe_kind kind;
    enum hca_opcode opcode; // of a send; undefined for a receive
    uint32_t bytes;         // receives, reads and atomics
    uint32_t immediate;
    bool has_immediate;
    bool has_route; // a GRH is before the datagram
    uint32_t qpn, source_qpn;
    uint16_t source_lid;
    uint8_t sl;
    enum hca_fault fault; // of a completion in error
};

// A request of a queue pair that failed and was not flushed. address, lkey, first_bytes: of its first segment.
struct hca_failure {
    bool known;
    bool is_receive;
    enum hca_opcode opcode; // of a send
    uint64_t bytes, remote_address, address, first_bytes;
    uint32_t rkey, lkey, segments;
};

// The queue has at least `entries`; user: passed back with events.
int hca_cq_create(hca_context_t *context, unsigned entries, void *user, hca_cq_t **cq_out);
int hca_cq_destroy(hca_cq_t *cq); // -EBUSY
// Completions stay, in their order. -EINVAL: the queue holds more than `entries`, which may be less than its size now.
// -EIO: the device has failed.
int hca_cq_resize(hca_cq_t *cq, unsigned entries);
unsigned hca_cq_entries(const hca_cq_t *cq);
// Up to max completions; returns their number.
int hca_cq_poll(hca_cq_t *cq, int max, struct hca_wc *wc_out);
// Waits as a program that polls an empty CQ in a loop: returns 0 when there is a completion to poll, -ETIMEDOUT.
// timeout_ns 0: forever.
int hca_cq_wait(hca_cq_t *cq, uint64_t timeout_ns);
// The number of entries not polled yet, and the first of them; takes no time.
unsigned hca_cq_waiting(const hca_cq_t *cq, struct hca_wc *first_out);
const struct hca_failure *hca_qp_failure(const hca_qp_t *qp); // the last one polled
// The number of posted requests that have not completed.
void hca_qp_outstanding(const hca_qp_t *qp, unsigned *sends_out, unsigned *receives_out);
// The word whose first write shows the next completion.
const volatile uint64_t *hca_cq_next_word(const hca_cq_t *cq);
// What a poll of an empty queue costs.
enum { HCA_POLL_CALLS = 1, HCA_POLL_LOADS = 1 };
bool hca_cq_is_empty(const hca_cq_t *cq);
// The next completion (solicited ones only, or any; errors always) raises HCA_EVENT_COMPLETION once.
int hca_cq_arm(hca_cq_t *cq, bool solicited_only);

// --- events ---------------------------------------------------------------------------------------------------------

struct hca_event {
    enum hca_event_type type;
    void *user; // of the CQ, QP or SRQ; NULL for the port and the device, and if the object was destroyed
    uint32_t object;
};

// The next event of the context. timeout_ns 0: forever; HCA_NO_WAIT: -EAGAIN if there is none. -ETIMEDOUT.
#define HCA_NO_WAIT UINT64_MAX
int hca_event_get(hca_context_t *context, uint64_t timeout_ns, struct hca_event *event_out);
// true: an event waits. Takes no time: it is called for a thread that sleeps in the kernel.
bool hca_event_waits(const hca_context_t *context);

// --- queue pairs, shared receive queues, address handles ------------------------------------------------------------

// A target has no CQs and no queues of its own; an initiator receives nothing.
struct hca_qp_create {
    enum hca_qp_type type;
    const hca_xrcd_t *xrcd; // of an XRC target
    hca_cq_t *send_cq, *receive_cq;
    hca_srq_t *srq; // NULL: a receive queue of its own
    unsigned send_entries, receive_entries, send_segments, receive_segments, inline_bytes; // the actual sizes are
                                                                                           // written back
    bool all_signaled;
    void *user;
};

int hca_qp_create(hca_pd_t *pd, struct hca_qp_create *create,
                  hca_qp_t **qp_out); // pd: NULL for a target. -EINVAL, -ENOMEM
int hca_qp_destroy(hca_qp_t *qp);
// Memory of a queue pair with these attributes, pinned and not pinned, without the HCA's own tables.
size_t hca_qp_bytes(const struct hca_qp_create *create);
uint32_t hca_qp_number(const hca_qp_t *qp);
enum hca_qp_type hca_qp_type(const hca_qp_t *qp);
unsigned hca_qp_send_room(const hca_qp_t *qp); // requests that hca_post_send accepts now
// mask: HCA_QP_*. -EINVAL: the transition does not exist, a required attribute is missing, an attribute is not allowed,
// or a value is out of range (IBA 10.3.1, table 91). To RESET: queues are emptied and unpolled completions of this QP
// removed.
int hca_qp_modify(hca_qp_t *qp, uint32_t mask, const struct hca_qp_attr *attr);
int hca_qp_query(hca_qp_t *qp, struct hca_qp_attr *attr_out);
// A UD queue pair joins or leaves the group. -EBUSY: it is a member. -EINVAL: no group, or not a member.
int hca_qp_group(hca_qp_t *qp, const uint8_t mgid[16], uint16_t mlid, bool joins);

// xrcd, cq: the XRC domain and the CQ of an XRC receive queue; both NULL: a queue for queue pairs that are created with
// it.
int hca_srq_create(hca_pd_t *pd, unsigned entries, unsigned segments, void *user, const hca_xrcd_t *xrcd, hca_cq_t *cq,
                   hca_srq_t **srq_out);
uint32_t hca_srq_number(const hca_srq_t *srq);
int hca_srq_destroy(hca_srq_t *srq); // -EBUSY
void hca_srq_size(const hca_srq_t *srq, unsigned *entries_out, unsigned *segments_out);
// Raises HCA_EVENT_SRQ_LIMIT once when fewer than `limit` entries are left. 0: disarms it.
int hca_srq_arm(hca_srq_t *srq, unsigned limit);
int hca_srq_limit(const hca_srq_t *srq, unsigned *limit_out); // the armed limit; 0: none, or the event was raised

// The GRH of datagrams; its source is the port's own GID.
struct hca_route {
    uint8_t dgid[16];
    uint32_t flow_label; // 20 bits
    uint8_t traffic_class, hop_limit;
};

// route: NULL: none.
int hca_ah_create(hca_pd_t *pd, uint16_t dlid, uint8_t sl, const struct hca_route *route, hca_ah_t **ah_out);
int hca_ah_destroy(hca_ah_t *ah);

// --- work requests --------------------------------------------------------------------------------------------------

struct hca_sge {
    uint64_t address;
    uint32_t bytes, lkey;
};

struct hca_send_wr {
    uint64_t wr_id;
    const struct hca_send_wr *next;
    const struct hca_sge *sges;
    unsigned sge_count;
    enum hca_opcode opcode;
    uint32_t flags; // HCA_WQE_*
    uint32_t immediate;
    uint64_t remote_address; // write, read, atomics
    uint32_t rkey;
    uint64_t compare, swap_add;
    uint32_t remote_srqn; // XRC
    const hca_ah_t *ah;   // UD
    uint32_t remote_qpn, remote_qkey;
};
struct hca_receive_wr {
    uint64_t wr_id;
    const struct hca_receive_wr *next;
    const struct hca_sge *sges;
    unsigned sge_count;
};

// Posts the list up to the first request that is refused, which *bad_out (may be NULL) names. -ENOMEM: the queue is
// full. -EINVAL: the QP's state allows no posting, too many segments, too much inline data, or an opcode that its type
// does not have.
int hca_post_send(hca_qp_t *qp, const struct hca_send_wr *wr, const struct hca_send_wr **bad_out);
int hca_post_receive(hca_qp_t *qp, const struct hca_receive_wr *wr, const struct hca_receive_wr **bad_out);
int hca_post_srq_receive(hca_srq_t *srq, const struct hca_receive_wr *wr, const struct hca_receive_wr **bad_out);
