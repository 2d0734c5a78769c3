// An InfiniBand host channel adapter with one port: a PCI Express endpoint on one side, an InfiniBand link on the
// other.
//
// Models, each as a resource with a queue before it: the doorbell and BlueFlame pages; fetching of requests by DMA with
// prefetch; a send engine that serves the queue pairs in turn, packet by packet; gathering by DMA reads with a bounded
// number of tags; the port with its transmit and receive pipelines, and loopback without the wire; a receive engine;
// the order of accesses at the responder with its atomics unit; read responses; completions and events by DMA writes.
// The interference between flows follows from those queues. Semantics: InfiniBand Architecture Specification 1.2.1,
// chapters 9 to 11, services RC, UC and UD, and XRC (annex A14).
// Leaves out: memory windows, RD, automatic path migration, address translation caches (their hits are part of the
// engines' times), management.
//
// Times are picoseconds; sources are in configs/hca/ and docs/decisions/0009-hca.md. The control plane is the
// firmware's commands: they take effect at once, and the caller accounts for their time. The caller owns sim, pools,
// and the two links' ends; the HCA is destroyed before them.
#pragma once

#include "models/flow/flow.h"
#include "models/hca/abi/hca_abi.h"
#include "models/hca/ib_link.h"
#include "models/hca/loss.h"
#include "models/pcie/link.h"
#include "sim/kernel/sim.h"

typedef struct hca hca_t;

struct hca_config {
    // PCI Express endpoint
    uint32_t pcie_generation, pcie_lanes;
    uint64_t pcie_tx_ps, pcie_rx_ps;
    uint32_t mps_bytes, mrrs_bytes;
    uint32_t read_tags;  // outstanding DMA reads
    uint32_t write_tlps; // queued posted writes before the engines stall
    uint16_t requester_id;
    // port
    uint32_t port_ps_per_byte; // of data
    uint32_t port_gap_bytes;   // between packets
    uint64_t port_tx_ps;       // from a complete packet (or the decision for an acknowledge) to the port
    uint64_t port_rx_ps;       // from the port to the receive engine
    uint32_t port_buffer_blocks;
    uint32_t max_mtu_bytes, active_mtu_bytes; // limit for queue pairs; limit for packets on the link
    // engines
    uint64_t doorbell_ps;       // from the BAR to the scheduler
    uint64_t command_ps;        // a command that stops or destroys a queue pair; others take no time
    uint64_t send_request_ps;   // from a request to its first packet; one request of a queue pair at a time
    uint64_t send_packet_ps;    // part of that, and for each other packet: the send engine, shared by all queue pairs
    uint64_t receive_packet_ps; // the receive engine, for each packet
    uint64_t read_packet_ps;    // the read response engine, for each packet
    uint64_t write_dispatch_ps;          // order at the responder: a packet that writes memory
    uint64_t atomic_ps;         // an atomic, in addition to its read of memory
    uint64_t atomic_answer_ps;  // from there until it may be answered, while the next one is executed
    // depths
    uint32_t prefetch_requests; // of a send or receive queue, read ahead of use
    uint32_t gather_packets;    // packets being gathered or waiting for the port, requests and responses separately
    uint32_t order_entries;     // accesses that wait for their turn at the responder
    uint32_t window_packets;    // unacknowledged packets of a queue pair
    uint32_t ack_every_packets; // long messages request an acknowledge after this many packets
    // limits
    uint32_t max_qp, max_cq, max_srq, max_pd, max_mr, max_eq;
    uint32_t max_entries /* of a send or receive queue */, max_cq_entries, max_inline_bytes, responder_reads,
        initiator_reads;
    bool blueflame_all;          // reported to the driver
    uint32_t part_id;            // PCI device id, which the driver reports to programs
    flow_net_t *flows;           // of long messages, which go as streams; NULL: everything is packets
    struct adversary *adversary; // owned by the caller: delays what may be late (adversity.c); NULL: no delays
};

// SIM_ERR_INVALID: a limit or depth of 0, or an invalid maximum payload. name is copied; counters are registered under
// it.
enum sim_status hca_create(sim_t *sim, pcie_pool_t *pool, ib_pool_t *packets, const char *name,
                           const struct hca_config *config, hca_t **hca_out);
void hca_destroy(hca_t *hca);

// Becomes the owner of the end; requests of the host to [uar_base, uar_base + hca_uar_bytes) are for the UAR BAR.
void hca_connect_host(hca_t *hca, pcie_end_t *end, uint64_t uar_base);
uint64_t hca_uar_bytes(void);
// The HCA's end of its slot, for the caller that creates the link.
struct pcie_end_config hca_slot_end(const struct hca_config *config);
void hca_connect_port(hca_t *hca, ib_end_t *end, uint16_t lid);
// Called when the link to the host goes down: the HCA cannot notify its programs any more, so its driver does.
typedef void (*hca_gone_fn)(void *ctx, hca_t *hca);
void hca_set_gone(hca_t *hca, hca_gone_fn gone, void *ctx);
bool hca_is_gone(const hca_t *hca);
// What the port has counted. false: it has no cable.
struct hca_port_counts {
    struct ib_traffic sent, received;
    uint64_t damaged, downs, stalls; // packets that came with a wrong CRC; downs of the link; waits for credits
};
bool hca_port_count(const hca_t *hca, struct hca_port_counts *counts_out);

// Called when a packet or completion is lost (loss.h). name: of the adapter.
typedef void (*hca_lost_fn)(void *ctx, const char *name, const struct hca_loss *loss);
void hca_set_lost(hca_t *hca, hca_lost_fn lost, void *ctx);

// Called when a queue pair joins or leaves a group: the fabric must forward the group's packets to this adapter, or
// stop.
typedef void (*hca_joined_fn)(void *ctx, hca_t *hca, uint16_t mlid, bool joins);
void hca_set_joined(hca_t *hca, hca_joined_fn joined, void *ctx);

// A fault: the adapter forgets its connections. All queue pairs fail, and their requests and receives are flushed, as a
// driver does for a device that had to be reset; then the event of a fatal error. What the port still sends is dropped.
void hca_reset(hca_t *hca);

// --- control plane --------------------------------------------------------------------------------------------------
// SIM_ERR_INVALID: a wrong number or attribute; SIM_ERR_NO_MEMORY: no more objects of this kind; SIM_ERR_BUSY: in use.

// Calls done when everything that the adapter has accepted or written so far is in host memory. A command that destroys
// an object takes effect at once; its caller may release the object's memory after a fence. The caller owns the fence.
struct hca_fence {
    struct hca_fence *next;
    uint32_t mark;
    void (*done)(void *ctx);
    void *ctx;
};
bool hca_fw_fence(hca_t *hca, struct hca_fence *fence); // false: it never had an event queue, so it wrote nothing

// Executes a command. In addition to the above, CQ_RESIZE returns SIM_ERR_INVALID also when the queue holds more
// completions than the new ring, or is overrun, and SIM_ERR_BUSY when the old ring has no free entry for its last one;
// GROUP_ATTACH returns SIM_ERR_BUSY when the queue pair is attached already.
enum sim_status hca_fw_command(hca_t *hca, struct hca_command *command);
// How long the command takes before it has an effect. The caller lets this time pass.
uint64_t hca_fw_command_ps(const hca_t *hca, const struct hca_command *command);

enum sim_status hca_eq_query(const hca_t *hca, uint32_t eqn, struct hca_eq_init *init_out); // as created

// The attributes that a transition requires and allows; false: there is no such transition.
bool hca_qp_transition(enum hca_qp_type type, enum hca_qp_state from, enum hca_qp_state to, uint32_t *required_out,
                       uint32_t *optional_out);
// IBA table 45: the time of an RNR timer code.
uint64_t hca_rnr_timer_ps(unsigned code);
