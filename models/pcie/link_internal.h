// What the files of a link share: link.c (creation and destruction), transmitter.c, receiver.c, credits.c, dllp.c.
// Internal to models/pcie.
//
// Data flow: pcie_end_offer -> queues -> wire -> the peer's `arriving` -> receive(). A second reference stays in
// `replay` until an ACK arrives. An end keeps what is in flight towards it.
//
// Events of an end. A TLP costs two: its departure (send) and its delivery (deliver). The others run once in many TLPs.
// All but the delivery are update events (sim/kernel/sim.h): owners offer and release, TLPs and DLLPs arrive, and after
// all of that the end decides what it puts on the wire. The first update event of an instant also does the work of the
// others that are due (pcie_end_settle), so that their order does not matter.
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
    PCIE_COUNT_REPLAY_ROUNDS,
    PCIE_COUNT_TLPS_DISCARDED,
    PCIE_COUNT_TLPS_DROPPED,
    PCIE_COUNT_TLPS_LOST,
    PCIE_COUNT_DOWN_AT,
    PCIE_COUNT_UP_AT,
    PCIE_COUNT_TLPS_FLUSHED,
    PCIE_COUNT_TLPS_CORRUPTED,
    PCIE_COUNT_ACKS_LOST,
    PCIE_COUNT_NAKS_LOST,
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
    uint64_t headers, data; // UpdateFC: credits granted since the start
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

// Events of an end that update its state or send DLLPs, and that another one may handle (pcie_end_settle).
enum pcie_late { PCIE_UPDATE_DLLP, PCIE_UPDATE_ACK, PCIE_UPDATE_FREE, PCIE_UPDATE_FC, PCIE_UPDATES };

// The following structs are laid out by cache lines of the simulating machine, each with members that are used together:
// an end is idle for long between two of its events, so every line that it touches is a cache miss.
enum { PCIE_LINE_BYTES = 64 };
#define PCIE_LINE _Alignas(PCIE_LINE_BYTES)

// Outgoing TLPs of a class.
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
    uint8_t next;    // class that goes next, if no DLLP arrives before; PCIE_CLASS_COUNT: not chosen
    uint8_t waiting; // one bit for each class with a queue that is not empty
    uint8_t stalled; // one bit for each class that lacks credits
    bool refused[PCIE_CLASS_COUNT];
    bool crowded; // the owner was notified that there is no room
    bool resending;
    bool resend_begins;           // nothing has been sent again yet
    bool gap;                     // something was lost or corrupted and has not been sent again
    bool corrupt_next, drop_next; // fault injection
    bool replay_armed;            // replay_event is pending
    struct pcie_outbound classes[PCIE_CLASS_COUNT];
    PCIE_LINE sim_event_t send_event;
    PCIE_LINE struct pcie_ring replay; // pcie_tlp_t *, the oldest without an ACK first
    uint64_t offers;
    uint64_t until_corrupt;
    uint32_t resend_index; // into replay
    uint32_t until_lost;   // ACKs and NAKs until lose_every_acks hits one
    PCIE_LINE sim_event_t replay_event;
};

// Incoming TLPs of a class.
struct pcie_inbound {
    PCIE_LINE struct pcie_credits granted; // as last advertised
    struct pcie_credits freed;             // as could be advertised now
    struct pcie_credits to_free;           // the sum of `freeing`
    struct pcie_credits received;          // consumed by the peer, as far as known here
};

// The receiver's half (clauses 3.5.3 and 2.6.1.2).
struct pcie_receiver {
    PCIE_LINE uint64_t update_due_ps[PCIE_UPDATES]; // SIM_NEVER_PS: that event is not pending
    struct pcie_ring dllps;                         // struct pcie_dllp
    bool ack_due, nak_due;
    bool update_due[PCIE_CLASS_COUNT];
    PCIE_LINE struct pcie_ring arriving; // struct pcie_arriving
    uint64_t expected;                   // the next expected sequence number
    uint64_t acknowledged;               // the value of the last ACK or NAK
    uint64_t unacknowledged_since_ps;
    uint32_t checked; // TLPs of `arriving` that the data link layer has checked
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
    struct flow_stage stage; // the direction from this end on
    char name[PCIE_NAME_MAX];
};

struct pcie_link {
    PCIE_LINE bool up;
    uint64_t tlps_before_down; // still to be sent; 0: no such fault is set, or it has happened
    uint64_t interval_ps;      // of ACKs and UpdateFCs
    struct pcie_link_config config;
    uint64_t replay_timeout_ps;
    uint64_t down_ps, up_ps; // SIM_NEVER_PS: never
    uint64_t outage_ps;      // from down to up
    uint64_t offered_ps;     // while it is down: when an owner offered something last
    sim_t *sim;
    sim_event_t down_event, up_event;
    pcie_link_up_fn up_hook; // NULL: none
    void *up_ctx;
    pcie_end_t ends[2];
};

// The peer may be without an ACK for something: the receiver judges each TLP when it arrives, and the replay timer expires
// on time. Otherwise both may be late, because nothing depends on them.
static inline bool pcie_transmitter_is_prompt(const pcie_end_t *end)
{
    return end->tx.gap || end->link->config.lose_every_acks > 0;
}

void pcie_link_streams_interrupt(pcie_link_t *link); // stream.c: something happens to the link

// trace.c: a TLP at one of the link's two trace points, between two causes; no cost without a listener.
enum { PCIE_TRACE_FIELD_COUNT = 6 };
extern const struct sim_trace_field pcie_trace_fields[PCIE_TRACE_FIELD_COUNT];
#define PCIE_TRACE_FIELDS pcie_trace_fields, PCIE_TRACE_FIELD_COUNT
void pcie_trace_emit(const pcie_end_t *end, const struct sim_trace_point *point, const pcie_tlp_t *tlp,
                     sim_cause_t from, sim_cause_t to);

static inline void pcie_trace_tlp(const pcie_end_t *end, const struct sim_trace_point *point, const pcie_tlp_t *tlp,
                                  sim_cause_t from, sim_cause_t to)
{
    if (sim_trace_wanted(end->sim)) {
        pcie_trace_emit(end, point, tlp, from, to);
    }
}

// Schedules the event at due_ps unless it is pending for an earlier time.
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

// Called at the beginning of the event's function.
static inline void pcie_update_begun(pcie_end_t *end, enum pcie_late which)
{
    end->rx.update_due_ps[which] = SIM_NEVER_PS;
}

// Removes an event that is due now from the queue; the caller does its work.
static inline bool pcie_update_claim(pcie_end_t *end, enum pcie_late which)
{
    if (end->rx.update_due_ps[which] > sim_now_ps(end->sim)) {
        return false;
    }
    pcie_update_cancel(end, which);
    return true;
}

// Update phase, before any decision: takes what has arrived and was released by now, and marks the DLLPs that are due.
void pcie_end_settle(pcie_end_t *end);

void pcie_transmitter_init(pcie_end_t *end);
void pcie_transmitter_clear(pcie_end_t *end);   // drops what is queued and kept
void pcie_transmitter_restart(pcie_end_t *end); // the link comes up: the first sequence number, the peer's free buffers
void pcie_transmitter_fini(pcie_end_t *end);
void pcie_transmitter_room_notify(pcie_end_t *end); // notifies the owner when its room changed
void pcie_transmitter_wake(pcie_end_t *end);        // something may now be able to go
// An ACK or NAK arrived at arrive_ps: the peer has every TLP before `expected`.
void pcie_transmitter_acknowledge(pcie_end_t *end, uint64_t expected, uint64_t arrive_ps);
bool pcie_transmitter_waits(const pcie_end_t *end); // a DLLP changes its next action, at the instant of its arrival
void pcie_transmitter_replay(pcie_end_t *end);

void pcie_receiver_init(pcie_end_t *end);
// The link is down: drops what has not arrived by now; what has arrived is still delivered.
void pcie_receiver_cut(pcie_end_t *end);
uint32_t pcie_receiver_flush(pcie_end_t *end); // drops all that is arriving; returns the number of accepted TLPs
void pcie_receiver_restart(pcie_end_t *end);   // the link comes up: expects the first sequence number
void pcie_receiver_fini(pcie_end_t *end);
// A TLP is in flight to this end, with a reference of its own. at_once: the data link layer must check it as soon as it
// arrives.
void pcie_receiver_send_towards(pcie_end_t *end, const struct pcie_arriving *arriving, bool at_once);
void pcie_receiver_check(pcie_end_t *end);    // the data link layer's check of what has arrived by now
void pcie_receiver_ack_mark(pcie_end_t *end); // for ack_event

void pcie_credits_init(pcie_end_t *end);
void pcie_credits_clear(pcie_end_t *end);   // the link is down: counts announced releases, and reports none
void pcie_credits_restart(pcie_end_t *end); // the link comes up: advertises what is free
void pcie_credits_take(pcie_end_t *end);    // update phase: counts what was released by now
void pcie_credits_granted(pcie_end_t *end, enum pcie_class class); // the free credits have been reported
void pcie_credits_free_mark(pcie_end_t *end);                      // for free_event
void pcie_credits_update_mark(pcie_end_t *end);                    // for update_event
// A TLP arrived: a known future release may have become urgent.
void pcie_credits_watch(pcie_end_t *end, enum pcie_class class);

bool pcie_dllps_waiting(const pcie_end_t *end);
void pcie_dllps_send_one(pcie_end_t *end);
void pcie_dllps_flush(pcie_end_t *end); // update phase: sends what waits, now or when the wire is free
void pcie_dllps_take(pcie_end_t *end);  // those that have arrived by now
void pcie_dllps_await(pcie_end_t *end); // sets the event for the DLLP that the transmitter waits for
void pcie_dllps_arrive(void *end);      // event
