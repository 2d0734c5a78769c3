// What the files of a link share: link.c (life and death), transmitter.c, receiver.c,
// credits.c, dllp.c. Internal to models/pcie.
//
// Data flows: pcie_end_offer -> queues -> wire -> the peer's `arriving` -> receive(). A copy of the reference stays in
// `replay` until an ACK comes back. What flies towards an end is kept by that end.
//
// Events of an end. A TLP costs two, its departure (send) and its delivery (deliver); the others run once in many TLPs.
// All but the delivery are update events (sim/kernel/sim.h): owners offer and release, TLPs and DLLPs arrive, and then,
// with all of that known, the end decides what it puts on the wire. The first update event of an instant settles what
// the others of that instant are about (pcie_end_settle), so that their order does not matter.
#pragma once

#include "models/pcie/link.h"
#include "models/pcie/ring.h"
#include "models/pcie/wire.h"
#include "sim/kernel/cause.h"
#include "sim/kernel/trace.h"

enum {
    PCIE_NAME_MAX = 64,
    // TLPs kept for replay; clause 3.5.2.1 stalls a transmitter at 2048 unacknowledged ones.
    PCIE_REPLAY_TLPS = 1024,
};

enum pcie_link_counter {
    PCIE_COUNT_TLPS_SENT,
    PCIE_COUNT_PAYLOAD_BYTES,
    PCIE_COUNT_WIRE_BYTES,
    PCIE_COUNT_DLLPS_SENT,
    PCIE_COUNT_TLPS_RECEIVED,
    PCIE_COUNT_ACKS,
    PCIE_COUNT_NAKS,
    PCIE_COUNT_UPDATE_FCS,
    PCIE_COUNT_REPLAYS,
    PCIE_COUNT_REPLAY_TIMEOUTS,
    PCIE_COUNT_TLPS_DISCARDED,
    PCIE_COUNT_TLPS_DROPPED,
    PCIE_COUNT_TLPS_LOST,
    PCIE_COUNT_DOWN_AT,
    PCIE_COUNT_STALL_POSTED,
    PCIE_COUNT_STALL_NONPOSTED,
    PCIE_COUNT_STALL_COMPLETION,
    PCIE_LINK_COUNTERS
};

struct pcie_queued {
    pcie_tlp_t *tlp;
    uint64_t ready_ps; // through the transmit pipeline
    uint64_t order;    // of the offer, over all classes
    uint32_t payload_bytes, data_credits;
};

struct pcie_arriving {
    pcie_tlp_t *tlp; // NULL: discarded by the data link layer
    uint64_t arrive_ps;
    uint64_t sequence;
    bool corrupt;
    sim_cause_t cause; // of its delivery
};

enum pcie_dllp_kind { PCIE_DLLP_ACK, PCIE_DLLP_NAK, PCIE_DLLP_UPDATE_FC };

struct pcie_dllp {
    uint64_t arrive_ps;
    enum pcie_dllp_kind kind;
    enum pcie_class class;  // UpdateFC
    uint64_t expected;      // ACK, NAK: every TLP before this one has arrived
    uint64_t headers, data; // UpdateFC: credits granted since the beginning
};

struct pcie_credits {
    uint64_t headers, data;
};

// A TLP that leaves the receive buffer at at_ps.
struct pcie_freeing {
    uint64_t at_ps;
    struct pcie_credits credits;
    enum pcie_class class;
};

// Events of an end that change what it knows or send DLLPs, and that may be settled by another one (pcie_end_settle).
enum pcie_late { PCIE_UPDATE_DLLP, PCIE_UPDATE_ACK, PCIE_UPDATE_FREE, PCIE_UPDATE_FC, PCIE_UPDATES };

// What follows is laid out by cache lines of the machine that simulates, each with what is used together: an end lies
// idle for long between two of its events, so that each line it touches comes from far away.
enum { PCIE_LINE_BYTES = 64 };
#define PCIE_LINE _Alignas(PCIE_LINE_BYTES)

// Of a class, on the way out.
struct pcie_outbound {
    PCIE_LINE struct pcie_ring queue; // struct pcie_queued
    struct pcie_credits limit, consumed;
    uint64_t stalled_since_ps; // SIM_NEVER_PS: not stalled
};

// The transmitter's half: queues, credits (clause 2.6.1), sequence numbers and replay (clause 3.5.2).
struct pcie_transmitter {
    PCIE_LINE struct pcie_wire wire;
    uint64_t next_sequence; // of the next TLP sent for the first time
    uint64_t replay_deadline_ps;
    uint8_t next;    // class that goes next, if no DLLP arrives before; PCIE_CLASS_COUNT: to be chosen
    uint8_t waiting; // a bit a class with a queue that is not empty
    uint8_t stalled; // a bit a class that lacks credits
    bool refused[PCIE_CLASS_COUNT];
    bool crowded; // the owner was told that there is no room
    bool resending;
    bool resend_begins;           // nothing was sent again yet
    bool gap;                     // something was lost or corrupted and not sent again yet
    bool corrupt_next, drop_next; // fault injection
    bool replay_armed;            // replay_event is pending
    struct pcie_outbound classes[PCIE_CLASS_COUNT];
    PCIE_LINE sim_event_t send_event;
    PCIE_LINE struct pcie_ring replay; // pcie_tlp_t *, the oldest without an ACK first
    uint64_t offers;
    uint64_t until_corrupt;
    uint32_t resend_index; // into replay
    PCIE_LINE sim_event_t replay_event;
};

// Of a class, on the way in.
struct pcie_inbound {
    PCIE_LINE struct pcie_credits granted; // as last advertised
    struct pcie_credits freed;             // as could be advertised now
    struct pcie_credits to_free;           // the sum of `freeing`
    struct pcie_credits received;          // consumed by the peer, as far as known here
};

// The receiver's half (clauses 3.5.3 and 2.6.1.2).
struct pcie_receiver {
    PCIE_LINE uint64_t update_due_ps[PCIE_UPDATES]; // SIM_NEVER_PS: that event is not pending
    struct pcie_ring dllps;                     // struct pcie_dllp
    bool ack_due, nak_due;
    bool update_due[PCIE_CLASS_COUNT];
    PCIE_LINE struct pcie_ring arriving; // struct pcie_arriving
    uint64_t expected;                   // the sequence number to come
    uint64_t acknowledged;               // what the last ACK or NAK said
    uint64_t unacknowledged_since_ps;
    uint32_t checked; // of `arriving`, seen by the data link layer
    bool nak_outstanding;
    struct pcie_inbound classes[PCIE_CLASS_COUNT];
    PCIE_LINE struct pcie_ring freeing; // struct pcie_freeing, in order of time
    uint64_t unreported_since_ps;       // SIM_NEVER_PS: everything is reported
    PCIE_LINE sim_event_t deliver_event;
    struct {
        PCIE_LINE sim_event_t event;
    } updates[PCIE_UPDATES];
};

struct pcie_end {
    PCIE_LINE pcie_link_t *link;
    sim_t *sim;
    pcie_end_t *peer;
    const struct pcie_end_ops *ops;
    void *ctx;
    unsigned side;
    struct pcie_end_config config;
    struct pcie_transmitter tx;
    struct pcie_receiver rx;
    PCIE_LINE uint64_t counters[PCIE_LINK_COUNTERS];
    char name[PCIE_NAME_MAX];
};

struct pcie_link {
    PCIE_LINE bool up;
    uint64_t tlps_before_down; // still to be sent; 0: no such fault is set, or it has come
    uint64_t interval_ps;      // of ACKs and UpdateFCs
    struct pcie_link_config config;
    uint64_t replay_timeout_ps;
    uint64_t down_ps; // SIM_NEVER_PS while it is up
    sim_t *sim;
    sim_event_t down_event;
    pcie_end_t ends[2];
};

// trace.c: a TLP at one of the link's two trace points, without cost while nobody listens.
enum { PCIE_TRACE_FIELD_COUNT = 6 };
extern const struct sim_trace_field pcie_trace_fields[PCIE_TRACE_FIELD_COUNT];
#define PCIE_TRACE_FIELDS pcie_trace_fields, PCIE_TRACE_FIELD_COUNT
void pcie_trace_emit(const pcie_end_t *end, const struct sim_trace_point *point, const pcie_tlp_t *tlp);

static inline void pcie_trace_tlp(const pcie_end_t *end, const struct sim_trace_point *point, const pcie_tlp_t *tlp)
{
    if (sim_trace_wanted(end->sim)) {
        pcie_trace_emit(end, point, tlp);
    }
}

// Schedules the event at due_ps unless it comes earlier anyway.
static inline void pcie_event_by(sim_t *sim, sim_event_t *event, uint64_t due_ps)
{
    if (!sim_event_pending(event) || event->due_ps > due_ps) {
        sim_event_schedule_at(sim, event, due_ps);
    }
}

static inline void pcie_update_at(pcie_end_t *end, enum pcie_late which, uint64_t due_ps)
{
    end->rx.update_due_ps[which] = due_ps;
    sim_event_schedule_at(end->sim, &end->rx.updates[which].event, due_ps);
}

static inline void pcie_update_by(pcie_end_t *end, enum pcie_late which, uint64_t due_ps)
{
    if (end->rx.update_due_ps[which] > due_ps) {
        pcie_update_at(end, which, due_ps);
    }
}

static inline void pcie_update_init(pcie_end_t *end, enum pcie_late which, sim_event_fn run)
{
    end->rx.update_due_ps[which] = SIM_NEVER_PS;
    sim_event_init_update(end->sim, &end->rx.updates[which].event, run, end);
}

static inline void pcie_update_cancel(pcie_end_t *end, enum pcie_late which)
{
    end->rx.update_due_ps[which] = SIM_NEVER_PS;
    sim_event_cancel(end->sim, &end->rx.updates[which].event);
}

// At the beginning of its function.
static inline void pcie_update_begun(pcie_end_t *end, enum pcie_late which)
{
    end->rx.update_due_ps[which] = SIM_NEVER_PS;
}

// Takes an event that is due now out of the queue; the caller does what it is for.
static inline bool pcie_update_claim(pcie_end_t *end, enum pcie_late which)
{
    if (end->rx.update_due_ps[which] > sim_now_ps(end->sim)) {
        return false;
    }
    pcie_update_cancel(end, which);
    return true;
}

// Update phase, before anything is decided: takes what has arrived and was released by now, and marks the DLLPs that are due.
void pcie_end_settle(pcie_end_t *end);

void pcie_transmitter_init(pcie_end_t *end);
void pcie_transmitter_clear(pcie_end_t *end); // drops what is queued and kept
void pcie_transmitter_fini(pcie_end_t *end);
void pcie_transmitter_room_tell(pcie_end_t *end); // to the owner, when its room changed
void pcie_transmitter_wake(pcie_end_t *end);      // something may have become possible
// An ACK or NAK arrived at that time: the peer has every TLP before `expected`.
void pcie_transmitter_acknowledge(pcie_end_t *end, uint64_t expected, uint64_t arrive_ps);
bool pcie_transmitter_waits(const pcie_end_t *end); // a DLLP changes what it does, at the instant of its arrival
void pcie_transmitter_replay(pcie_end_t *end);

void pcie_receiver_init(pcie_end_t *end);
// The link is down: drops what has not arrived by now; what has is still delivered.
void pcie_receiver_cut(pcie_end_t *end);
void pcie_receiver_fini(pcie_end_t *end);
// A TLP is on its way to this end, with a reference of its own. at_once: the data link layer has something to say as
// soon as it arrives.
void pcie_receiver_send_towards(pcie_end_t *end, const struct pcie_arriving *arriving, bool at_once);
void pcie_receiver_check(pcie_end_t *end);    // the data link layer's view of what has arrived by now
void pcie_receiver_ack_mark(pcie_end_t *end); // for ack_event

void pcie_credits_init(pcie_end_t *end);
void pcie_credits_clear(pcie_end_t *end);
void pcie_credits_take(pcie_end_t *end);                           // update phase: counts what was released by now
void pcie_credits_granted(pcie_end_t *end, enum pcie_class class); // what was free is reported
void pcie_credits_free_mark(pcie_end_t *end);                      // for free_event
void pcie_credits_update_mark(pcie_end_t *end);                    // for update_event
// A TLP arrived: a release to come may have become urgent.
void pcie_credits_watch(pcie_end_t *end, enum pcie_class class);

bool pcie_dllps_waiting(const pcie_end_t *end);
void pcie_dllps_send_one(pcie_end_t *end);
void pcie_dllps_flush(pcie_end_t *end); // update phase: sends what waits, now or when the wire is free
void pcie_dllps_take(pcie_end_t *end);  // what has arrived by now
void pcie_dllps_await(pcie_end_t *end); // sets the event for what the transmitter waits for
void pcie_dllps_arrive(void *end);      // event
