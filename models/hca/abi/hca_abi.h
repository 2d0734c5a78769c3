// The HCA's interface to its drivers: doorbells, queue entries in host memory, attributes of its objects.
//
// Declared once, for the device (models/hca) and for the drivers above it (verbs-shim, sim/platform). Addresses are bus
// addresses unless marked as addresses of a region (iova). All fields are little endian. The layout is this model's own
// (no vendor's); the contents follow the InfiniBand Architecture Specification 1.2.1, chapters 9 to 11. Leaves out:
// memory windows, RD, raw packets, automatic path migration, several ports, P_Keys.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// --- the UAR BAR ----------------------------------------------------------------------------------------------------
// A process has its own page of doorbells and its own page of BlueFlame buffers, side by side.

#define HCA_UAR_BYTES            8192u
#define HCA_UAR_PAGES            64u
#define HCA_UAR_SEND_DOORBELL    0x00u // 8 B: hca_doorbell_send
#define HCA_UAR_CQ_ARM           0x08u // 8 B: hca_doorbell_arm
#define HCA_UAR_RECEIVE_DOORBELL 0x10u // 8 B: a QPN in the error state: flushes what was posted since
#define HCA_UAR_BLUEFLAME        4096u // buffers used in turn, so that write combining never merges two requests
#define HCA_BLUEFLAME_BYTES      512u
#define HCA_BLUEFLAME_BUFFERS    8u

// producer: count of requests posted so far, low 16 bits
static inline uint64_t hca_doorbell_send(uint32_t qpn, uint16_t producer)
{
    return qpn | (uint64_t)producer << 32;
}
// consumer: count of completions taken so far. A completion after it that is already there raises the event at once.
static inline uint64_t hca_doorbell_arm(uint32_t cqn, bool solicited_only, uint32_t consumer)
{
    return cqn | (solicited_only ? UINT64_C(1) << 31 : 0) | (uint64_t)consumer << 32;
}

// --- send queue ------------------------------------------------------------------------------------------------------

enum hca_opcode {
#define OPCODE(id, verb, completion, packet, transports, operands) HCA_OP_##id,
#include "models/hca/abi/opcodes.def"
#undef OPCODE
    HCA_OPCODES
};

enum hca_opcode_trait {
    HCA_HAS_DATA = 1, // data to send: segments, or inline
    HCA_HAS_IMMEDIATE = 2,
    HCA_HAS_REMOTE = 4,    // address and key
    HCA_HAS_ATOMIC = 8,    // operands of 8 B
    HCA_HAS_RESPONSE = 16, // data of the peer, which are written to the segments
    HCA_HAS_RECEIVE = 32,  // uses a receive request of the peer
    HCA_ON_UD = 64,
    HCA_ON_UC = 128,
    HCA_ON_RC = 256,
    HCA_ON_TCA0 = 512, // and the provider of tca0 carries it out (verbs-shim/tca-verbs)
    HCA_IS_WORD = 1024 // exactly 8 B of data, or of a response
};

// Does the operation have any of these traits? An invalid opcode has no trait.
static inline bool hca_opcode_has(unsigned opcode, unsigned traits)
{
    static const uint16_t all[HCA_OPCODES] = {
#define OPCODE(id, verb, completion, packet, transports, operands) [HCA_OP_##id] = (transports) | (operands),
#include "models/hca/abi/opcodes.def"
#undef OPCODE
    };
    return opcode < HCA_OPCODES && (all[opcode] & traits) != 0;
}

#define HCA_WQE_SIGNALED  0x01u // a completion also without an error
#define HCA_WQE_SOLICITED 0x02u
#define HCA_WQE_FENCE     0x04u // waits for the earlier reads and atomics of the queue
#define HCA_WQE_INLINE    0x08u // inline_bytes of data follow instead of data segments

#define HCA_WQE_UNIT_BYTES 16u
#define HCA_WQE_BYTES_MAX  1024u
#define HCA_SEGMENTS_MAX   32u

// A request: control; datagram (UD) or the receive queue (XRC), remote (write, read, atomics), atomic (atomics) if the
// opcode has them; then data segments, or the data itself.
struct hca_wqe_control {
    uint32_t qpn;
    uint16_t index; // position in the queue, low 16 bits; the completion returns it
    uint8_t opcode;
    uint8_t flags;
    uint16_t inline_bytes;
    uint8_t units; // of the whole request, 16 B each
    uint8_t reserved;
    uint32_t immediate;
};
struct hca_wqe_remote {
    uint64_t address;
    uint32_t rkey;
    uint32_t reserved;
};
struct hca_wqe_atomic {
    uint64_t swap_add; // the value to add, or to swap in
    uint64_t compare;
};
struct hca_wqe_datagram {
    uint32_t qpn, qkey;
    uint16_t dlid;
    uint8_t sl;
    uint8_t global; // 1: the packet has a GRH with these fields and the port's own GID
    uint8_t traffic_class, hop_limit;
    uint16_t reserved;
    uint32_t flow_label, reserved2[3];
    uint8_t dgid[16];
};
struct hca_wqe_xrc {
    uint32_t srqn; // of the peer, in the domain of its queue pair
    uint32_t reserved[3];
};
struct hca_wqe_data {
    uint64_t address; // of the region
    uint32_t lkey;
    uint32_t bytes;
};

// --- receive queues -------------------------------------------------------------------------------------------------
// Entries are used in order. An entry may be rewritten once its completion, or the count of entries after it, shows
// that the HCA has taken it.

struct hca_wqe_receive {
    uint32_t cookie; // returned in the completion
    uint32_t segments;
    uint64_t reserved;
};

// --- completions ----------------------------------------------------------------------------------------------------

// IBA 11.6.2.
enum hca_status {
    HCA_OK,
    HCA_LOCAL_LENGTH,
    HCA_LOCAL_OPERATION,
    HCA_LOCAL_PROTECTION,
    HCA_FLUSHED,
    HCA_BAD_RESPONSE,
    HCA_LOCAL_ACCESS,
    HCA_REMOTE_INVALID_REQUEST,
    HCA_REMOTE_ACCESS,
    HCA_REMOTE_OPERATION,
    HCA_RETRY_EXCEEDED,
    HCA_RNR_RETRY_EXCEEDED,
    HCA_STATUSES
};

enum hca_fault {
    HCA_FAULT_NONE,
#define FAULT(name, text) HCA_FAULT_##name,
#include "models/hca/abi/faults.def"
#undef FAULT
    HCA_FAULTS
};

enum hca_cqe_kind {
    HCA_CQE_SEND,
    HCA_CQE_RECEIVE,
    HCA_CQE_RECEIVE_WRITE_IMM,
    HCA_CQE_RESIZED // no completion: the last entry of a ring that was resized
};

#define HCA_CQE_IMMEDIATE 0x01u
#define HCA_CQE_GRH       0x02u // UD: it is in the bytes before the datagram
#define HCA_UD_PREFIX     40u   // bytes for a GRH in front of a received datagram, unchanged without one (IBA 11.4.1.2)

// The owner bit is 1 in entries of the first pass through the ring, 0 in the second, and so on.
struct hca_cqe {
    uint32_t qpn;
    uint32_t index; // send: the request's index; receive: its cookie
    uint32_t bytes;
    uint32_t immediate;  // in error: enum hca_fault
    uint32_t source_qpn; // UD
    uint16_t source_lid; // UD
    uint8_t sl, opcode;  // of a send: enum hca_opcode
    uint32_t srqn;       // of a receive by XRC: the queue of the cookie; else HCA_NO_SRQ
    uint8_t kind, flags, status, owner;
};

// --- events ---------------------------------------------------------------------------------------------------------

enum hca_event_type {
    HCA_EVENT_COMPLETION, // object: CQ
    HCA_EVENT_CQ_ERROR,   // overrun
    HCA_EVENT_QP_FATAL,
    HCA_EVENT_QP_REQUEST_ERROR,
    HCA_EVENT_QP_ACCESS_ERROR,
    HCA_EVENT_COMMUNICATION_ESTABLISHED,
    HCA_EVENT_SEND_QUEUE_DRAINED,
    HCA_EVENT_LAST_WQE_REACHED, // QP with an SRQ went to the error state
    HCA_EVENT_SRQ_ERROR,
    HCA_EVENT_SRQ_LIMIT,
    HCA_EVENT_PORT_ACTIVE,
    HCA_EVENT_PORT_ERROR,
    HCA_EVENT_DEVICE_FATAL, // the last one of its queue: events after it are lost
    HCA_EVENTS
};

struct hca_eqe {
    uint32_t object;
    uint32_t reserved;
    uint8_t type, unused[6], owner; // owner as in struct hca_cqe
};

// --- objects (the control plane) ------------------------------------------------------------------------------------

// XRC (annex A14 of the specification): the initiator sends like RC, and each request names a shared receive queue; the
// target accepts requests like RC, for any of the shared receive queues of its domain.
enum hca_qp_type { HCA_RC, HCA_UC, HCA_UD, HCA_XRC_INITIATOR, HCA_XRC_TARGET, HCA_QP_TYPES };
static inline bool hca_is_reliable(enum hca_qp_type type)
{
    return type != HCA_UC && type != HCA_UD;
}
static inline bool hca_sends(enum hca_qp_type type)
{
    return type != HCA_XRC_TARGET;
}
static inline bool hca_receives(enum hca_qp_type type)
{
    return type != HCA_XRC_INITIATOR;
}
// The requests that a service type supports. The driver refuses others, and so does the HCA.
static inline bool hca_opcode_allowed(enum hca_qp_type type, unsigned opcode)
{
    static const uint16_t on[HCA_QP_TYPES] = {
        [HCA_RC] = HCA_ON_RC, [HCA_XRC_INITIATOR] = HCA_ON_RC, [HCA_UC] = HCA_ON_UC, [HCA_UD] = HCA_ON_UD};
    return type < HCA_QP_TYPES && hca_opcode_has(opcode, on[type]);
}

enum hca_qp_state { HCA_RESET, HCA_INIT, HCA_RTR, HCA_RTS, HCA_SQD, HCA_SQE, HCA_ERROR, HCA_QP_STATES };

#define HCA_LOCAL_WRITE   0x1u
#define HCA_REMOTE_WRITE  0x2u
#define HCA_REMOTE_READ   0x4u
#define HCA_REMOTE_ATOMIC 0x8u

// A record is an 8-byte word in host memory that the driver writes and the HCA reads when it needs it: the number of
// entries posted to a receive queue, or of completions taken from a CQ.

// The key is both lkey and rkey. The key of a deregistered region is not used again soon.
struct hca_mr_init {
    uint32_t pdn, access;
    uint64_t iova, bytes;
    uint64_t displacement; // the region's address in the program less iova, by which requests name it; of whole pages
    // Address of the region. 0: memory of the program, of any kind (heap, static data, stacks), which the
    // kernel's driver pins until the region is deregistered. If a program releases the memory before that, accesses to
    // the region's bytes fail.
    uint64_t bus_address;
    // Set by the kernel's driver for the firmware: page_bytes is a power of two; bus addresses, pages[0] holds iova.
    uint32_t page_bytes;
    const uint64_t *pages;
};
struct hca_eq_init {
    uint64_t base, record; // record: number of events taken
    uint32_t
        entries; // powers of two, here and below; an EQ uses one less, and the last one reports that events are lost
};
struct hca_cq_init {
    uint32_t eqn; // events of this CQ
    uint32_t uar; // the page of the doorbells that arm it; others are refused
    uint64_t base, record;
    uint32_t entries;
};
// The new ring. Nothing is written to the old ring after its last entry, which is of the kind HCA_CQE_RESIZED and has a
// count like any other. Later completions go to the new ring, after those that the driver has copied there: the ones
// not taken yet, each at its count plus one. Owner bits of the new ring mark it as empty.
struct hca_cq_resize {
    uint64_t base;
    uint32_t entries;
    uint32_t consumer; // completions taken so far
};
#define HCA_NO_XRCD 0u
struct hca_srq_init {
    uint32_t eqn, pdn;
    uint32_t xrcdn, cqn; // of XRC: its domain, and the CQ of its completions; else HCA_NO_XRCD
    uint64_t base, record;
    uint32_t entries, stride_bytes;
};
struct hca_srq_limit {
    uint32_t limit; // 0: not armed
};
#define HCA_NO_SRQ 0u
struct hca_qp_init {
    enum hca_qp_type type;
    uint32_t eqn, pdn, uar;
    uint32_t xrcdn; // of a target, which has no CQs; it uses the protection domain of the SRQ that a request names
    uint32_t send_cqn, receive_cqn, srqn;
    uint64_t send_base;
    uint32_t send_entries, send_stride_bytes;
    uint64_t receive_base, receive_record;
    uint32_t receive_entries, receive_stride_bytes;
};

#define HCA_QP_STATE         0x0001u
#define HCA_QP_CURRENT_STATE 0x0002u
#define HCA_QP_ACCESS        0x0004u
#define HCA_QP_PORT          0x0008u
#define HCA_QP_QKEY          0x0010u
#define HCA_QP_PATH          0x0020u // dlid, sl
#define HCA_QP_PATH_MTU      0x0040u
#define HCA_QP_TIMEOUT       0x0080u
#define HCA_QP_RETRY_COUNT   0x0100u
#define HCA_QP_RNR_RETRY     0x0200u
#define HCA_QP_RECEIVE_PSN   0x0400u
#define HCA_QP_SEND_PSN      0x0800u
#define HCA_QP_MAX_RD_ATOMIC 0x1000u // as initiator
#define HCA_QP_MAX_DEST_RD   0x2000u // as responder
#define HCA_QP_MIN_RNR_TIMER 0x4000u
#define HCA_QP_DEST_QPN      0x8000u
#define HCA_QP_DRAINED_EVENT 0x10000u

struct hca_qp_attr {
    enum hca_qp_state state, current_state;
    uint32_t access, qkey, dest_qpn, receive_psn, send_psn, path_mtu_bytes;
    uint16_t dlid;
    uint8_t port, sl;
    uint8_t timeout;       // IBA 11.2.5.2: 4.096 us x 2^timeout; 0: none
    uint8_t retry_count;   // 0..7
    uint8_t rnr_retry;     // 0..6; 7: no limit
    uint8_t min_rnr_timer; // code of IBA table 45
    uint8_t max_rd_atomic, max_dest_rd_atomic;
    uint8_t global; // part of the path: 1: packets have a GRH; 0 or 1
    uint8_t drained_event;
};
// Transitions and their attributes: IBA 10.3.1 and table 91.
struct hca_qp_modify {
    uint32_t mask; // HCA_QP_*: the attributes that are given
    struct hca_qp_attr attr;
};
// A multicast group of a UD queue pair.
struct hca_group {
    uint8_t mgid[16];
    uint16_t mlid;
};

#define HCA_VENDOR_ID 0x02c9u // of the modelled adapters; also the first bits of the GUID
#define HCA_FIRMWARE  "1.0.0" // of the model

struct hca_device_info {
    uint32_t max_qp, max_cq, max_srq, max_pd, max_mr;
    uint32_t max_qp_entries, max_cq_entries, max_srq_entries, max_segments, max_inline_bytes;
    uint32_t part_id; // PCI device id
    uint32_t max_responder_reads, max_initiator_reads;
    uint64_t max_message_bytes;
    uint32_t uar_pages;
    bool blueflame_all; // instruction for the driver: BlueFlame also for requests with data in memory
};
struct hca_port_info {
    bool active;
    uint16_t lid;
    uint64_t gid_prefix, guid; // the two halves of its GID
    uint32_t max_mtu_bytes, active_mtu_bytes;
    uint64_t rate_mbps; // of data, without line coding
};
// The LID of the subnet's manager. The platform acts as it, on the first node.
#define HCA_MANAGER_LID 1

// The LID of a group: a hash of its GID (FNV-1a), as there is no manager that counts groups. GIDs distinguish groups.
static inline uint16_t hca_group_lid(const uint8_t gid[16])
{
    enum { FIRST = 0xc000, LIDS = 0x3ffe };
    uint32_t hash = 2166136261u;
    for (unsigned i = 0; i < 16; i++) {
        hash = (hash ^ gid[i]) * 16777619u;
    }
    return (uint16_t)(FIRST + hash % LIDS);
}

// PortInfo's code for the rate of one of four lanes (IBA 14.2.5.6): SDR, DDR, QDR; FDR as in later revisions.
enum hca_speed { HCA_SPEED_SDR = 1, HCA_SPEED_DDR = 2, HCA_SPEED_QDR = 4, HCA_SPEED_FDR = 16 };
static inline enum hca_speed hca_speed_of(uint64_t rate_mbps)
{
    uint64_t lane_mbps = rate_mbps / 4;
    return lane_mbps >= 13000  ? HCA_SPEED_FDR
           : lane_mbps >= 8000 ? HCA_SPEED_QDR
           : lane_mbps >= 4000 ? HCA_SPEED_DDR
                               : HCA_SPEED_SDR;
}
struct hca_no_operand {
    uint8_t unused;
};

// --- commands -------------------------------------------------------------------------------------------------------
// Objects have numbers: of an event queue never 0, of an XRC domain never HCA_NO_XRCD, of a shared receive queue never
// HCA_NO_SRQ.

enum hca_object {
    HCA_OBJECT_DEVICE,
    HCA_OBJECT_UAR, // a page of the UAR BAR
    HCA_OBJECT_PD,
    HCA_OBJECT_XRCD,
    HCA_OBJECT_MR,
    HCA_OBJECT_EQ,
    HCA_OBJECT_CQ,
    HCA_OBJECT_SRQ,
    HCA_OBJECT_QP,
    HCA_OBJECTS
};

enum hca_command_effect { HCA_CREATES, HCA_DESTROYS, HCA_CHANGES, HCA_QUERIES };

enum hca_command_trait {
    HCA_NEEDS_DEVICE = 1,  // fails once the HCA is down; other commands work, so that a process can clean up
    HCA_SETTLES = 2,       // when it returns, no operation in progress needs the object's memory
    HCA_SETTLES_RESET = 4, // the same, if it moves a queue pair to the reset state
};

enum hca_command_id {
#define COMMAND(id, name, object, effect, traits, operand) HCA_CMD_##id,
#include "models/hca/abi/commands.def"
#undef COMMAND
    HCA_COMMANDS
};

struct hca_command {
    uint32_t id;     // enum hca_command_id
    uint32_t number; // of the object
    union {
#define COMMAND(id, name, object, effect, traits, operand) operand name;
#include "models/hca/abi/commands.def"
#undef COMMAND
    };
};

struct hca_command_info {
    const char *name;
    enum hca_object object;
    enum hca_command_effect effect;
    unsigned traits;
};

// NULL: there is no such command.
static inline const struct hca_command_info *hca_command_info(uint32_t id)
{
    static const struct hca_command_info all[HCA_COMMANDS] = {
#define COMMAND(id, name, object, effect, traits, operand) {#name, HCA_OBJECT_##object, HCA_##effect, traits},
#include "models/hca/abi/commands.def"
#undef COMMAND
    };
    return id < HCA_COMMANDS ? &all[id] : (const struct hca_command_info *)0;
}
