// A PCI Express link: two ends, each with a transmitter and a receiver.
//
// Models: serialisation at lanes x rate x encoding; framing, sequence number, LCRC; ACK/NAK with a replay buffer and
// replay timer; UpdateFC and ACK DLLPs taking their time on the wire; SKP ordered sets; header and data credits for
// posted, non-posted and completion with their return delay (a receiver returns credits when the update interval has
// passed, or at once when the peer has less than one maximum payload or no header left or a quarter is unreported);
// ordering (clause 2.4: nothing passes an earlier posted write, a completion and a posted write may pass a non-posted
// request); link down, and up again. Leaves out: the steps of training, power states, lane failures, virtual channels
// other than VC0.
//
// Sources: PCI Express Base Specification 3.0, clauses 2.4, 2.6, 3.5, 4.2; ACK and FC intervals: tables 2-46 and 3-7
// as listed in docs/component-facts.md.
//
// An end has one owner: the owner offers TLPs to send, and receives TLPs that arrived. A TLP that arrived occupies the
// receive buffer until the owner releases it. The release returns its credits, so an owner that holds TLPs back stalls
// the peer.
#pragma once

#include "models/flow/flow.h"
#include "models/pcie/tlp.h"
#include "sim/kernel/sim.h"

typedef struct pcie_link pcie_link_t;
typedef struct pcie_end pcie_end_t;

// Two packets of the bubble rule, and up to two that the owner has in flight when it is notified.
#define PCIE_ROOM_TLPS 4

#define PCIE_CREDITS_INFINITE 0xffffffffu

// Longer than any pause inside a transfer.
#define PCIE_QUIET_PS (20 * SIM_PS_PER_US)

// What one end offers and costs.
struct pcie_end_config {
    uint64_t tx_ps;                     // from pcie_end_offer to the first symbol, when the wire is free
    uint64_t rx_ps;                     // from the last symbol to the owner's receive()
    uint32_t headers[PCIE_CLASS_COUNT]; // receive buffer as advertised: header credits
    uint32_t data[PCIE_CLASS_COUNT];    // and data credits (16 B); PCIE_CREDITS_INFINITE allowed
    // TLPs of each class the transmitter holds before pcie_end_offer refuses. TLPs inside tx_ps count: a queue of fewer
    // than tx_ps worth of TLPs limits the rate.
    uint32_t tx_queue_tlps;
};

struct pcie_link_config {
    uint32_t generation; // 1..3
    uint32_t lanes;      // 1, 2, 4, 8, 16
    uint32_t mps_bytes;  // 128..4096, of the link; longer payloads are a broken invariant
    uint64_t flight_ps;
    bool is_cable;           // joins nodes: a breakdown counts its wire time as the cable's
    uint32_t ack_every_tlps; // 0: ACKs only by the timer
    // Fault injection, both directions: every n-th TLP, replays included, arrives with a wrong LCRC; 0: none. The first
    // TLP of a replay is spared and the next one hit, so that TLPs get through if the pattern is in step with the
    // replay buffer.
    uint32_t corrupt_every_tlps;
    // Fault injection, both directions: every n-th ACK or NAK is lost; 0: none. Its content reaches the other end with a
    // later one: after the next TLP, or when the replay timer has expired and TLPs arrive a second time.
    uint32_t lose_every_acks;
    struct pcie_end_config ends[2];
};

struct pcie_end_ops {
    // A TLP arrived; the owner gets the reference. The owner calls pcie_end_release(end, tlp) when the TLP has left the
    // receive buffer (at once if the owner never stalls); this call does not drop the reference.
    void (*receive)(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp);
    // After pcie_end_offer refused: there is room again. The owner may call pcie_end_offer from inside.
    void (*ready)(void *ctx, pcie_end_t *end);
    // Optional. The transmit queue of posted writes no longer has PCIE_ROOM_TLPS free slots, or has them again: what a
    // hard IP reports of its credits, for owners that must keep slots free.
    void (*room)(void *ctx, pcie_end_t *end, bool room);
    // The link went down. TLPs that this end took by offer and that the other end's data link layer has not accepted
    // are lost (lost_tlps). Accepted TLPs, whose ACK has arrived or would have arrived, are still received when they
    // come out of rx_ps, and nothing after them. A refused owner gets ready() next. Every TLP offered from then on is
    // taken, dropped and counted, until the link is up again.
    void (*down)(void *ctx, pcie_end_t *end, unsigned lost_tlps);
    // Optional: where a stream of writes goes that arrives at this end (models/flow): on through another end, with
    // pcie_end_stream_writes, or into memory. NULL: this owner wants packets.
    void (*writes_on)(void *ctx, pcie_end_t *end, struct flow_path *path, uint64_t address, uint64_t bytes);
    // Optional: where the data comes from that reads arriving at this end ask for. Sets path->packet_bytes and input to
    // those of the completions that it sends through this end.
    void (*reads_from)(void *ctx, pcie_end_t *end, struct flow_path *path, uint64_t address, uint64_t bytes);
};

// name is copied; counters are registered as "<name>.0" and "<name>.1". SIM_ERR_INVALID: no such width, generation or
// maximum payload, or an end that could not receive a single largest TLP (clause 2.6.1).
enum sim_status pcie_link_create(sim_t *sim, pcie_pool_t *pool, const char *name, const struct pcie_link_config *config,
                                 pcie_link_t **link_out);
void pcie_link_destroy(pcie_link_t *link); // drops TLPs in flight

pcie_end_t *pcie_link_end(pcie_link_t *link, unsigned side);
void pcie_end_attach(pcie_end_t *end, const struct pcie_end_ops *ops, void *ctx); // ops must stay valid
const char *pcie_end_name(const pcie_end_t *end);
bool pcie_end_is_up(const pcie_end_t *end);

// true: the link took the TLP and the caller's reference. false: no room in this class; ready() will be called.
bool pcie_end_offer(pcie_end_t *end, pcie_tlp_t *tlp);
// The same for a transmitter that begins before it has the whole packet: the first part was available at begun_ps <=
// now, and tx_ps counts from then. The last symbol never leaves before the packet is complete, as long as the owner's
// interface is no slower than the wire or tx_ps covers the packet.
bool pcie_end_offer_begun(pcie_end_t *end, pcie_tlp_t *tlp, uint64_t begun_ps);
bool pcie_end_has_room(const pcie_end_t *end, enum pcie_class class);
void pcie_end_release(pcie_end_t *end, const pcie_tlp_t *tlp);
// The same for a TLP that will leave the receive buffer at at_ps; calls with a future time come in the order of time.
void pcie_end_release_at(pcie_end_t *end, const pcie_tlp_t *tlp, uint64_t at_ps);

void pcie_link_set_down(pcie_link_t *link);
// Counts TLPs from now on, both directions together and replays excluded: the link goes down when the last symbol of
// that many TLPs has left. 0: at once.
void pcie_link_set_down_after(pcie_link_t *link, uint64_t tlps);
bool pcie_link_is_up(const pcie_link_t *link);
uint64_t pcie_link_down_ps(const pcie_link_t *link); // when it went down last; SIM_NEVER_PS: never
// Lets a link that is down come up again: both ends forget what they sent and received, and advertise their buffers
// anew. It stays closed until nothing has been offered to either end for PCIE_QUIET_PS, as Downstream Port Containment
// (PCI Express 3.1, clause 6.2.10) does until software opens the port: a transfer that lost a part loses all that
// follows, too, and does not end behind the gap with a word that says that everything is there.
void pcie_link_set_up(pcie_link_t *link);
// It comes up again so long after it goes down: calls pcie_link_set_up then. SIM_NEVER_PS: it does not, also if it is
// waiting for that.
void pcie_link_set_outage(pcie_link_t *link, uint64_t outage_ps);
// Called when it has come up again; fn NULL: nobody is told.
typedef void (*pcie_link_up_fn)(void *ctx);
void pcie_link_set_up_hook(pcie_link_t *link, pcie_link_up_fn fn, void *ctx);
// The owner of an end of a link that is down was reset: what the end has accepted and not yet delivered is lost.
void pcie_end_flush(pcie_end_t *end);
uint64_t pcie_link_up_ps(const pcie_link_t *link); // when it came up again last; SIM_NEVER_PS: never
// Fault injection at an instant: the next TLP sent from `side` is corrupted (NAK and replay), or lost (replay timer).
void pcie_link_corrupt_next(pcie_link_t *link, unsigned side);
void pcie_link_drop_next(pcie_link_t *link, unsigned side);

// --- streams --------------------------------------------------------------------------------------------------------
// The owner of an end adds to a path what its stream crosses from there on. A link refuses streams while faults are
// injected into single TLPs.

// Writes that leave through this end for [address, address + bytes), in packets of path->packet_bytes. ps_per_byte: of
// what feeds this end and serves the same inputs; path->input and path->enters are for it.
void pcie_end_stream_writes(pcie_end_t *end, struct flow_path *path, double ps_per_byte, uint64_t address,
                            uint64_t bytes);
// A read that goes as packets takes its part of both directions from the streams beside it.
void pcie_end_stream_beside_read(pcie_end_t *end, uint32_t bytes);
// Reads of read_bytes each that leave through this end, and the data that comes back, of which held_bytes may wait at
// the reader. path->latency_ps grows by that of one read.
void pcie_end_stream_reads(pcie_end_t *end, struct flow_path *path, uint32_t read_bytes, uint32_t held_bytes,
                           uint64_t address, uint64_t bytes);

// --- arithmetic, for tests and documentation ------------------------------------------------------------------------

// Time of `bytes` on the wire, rounded up to a picosecond.
uint64_t pcie_wire_ps(uint32_t generation, uint32_t lanes, uint64_t bytes);
// UpdateFC/ACK interval in symbol times (docs/component-facts.md; specification tables 2-46 and 3-7).
uint32_t pcie_ack_interval_symbols(uint32_t generation, uint32_t lanes, uint32_t mps_bytes);
