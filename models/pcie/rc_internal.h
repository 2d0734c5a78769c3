// What the files of the root complex share: root_complex.c (life, decode), rc_memory.c, rc_egress.c, rc_peer.c,
// rc_qpi.c, rc_cpu.c. Internal to models/pcie.
//
// Data flow: receive() decodes a TLP and passes it to memory (commit or read), to another port (peer) or to the
// processor; everything that leaves through a port goes through its egress, which keeps the order and waits for the
// link.
#pragma once

#include "models/pcie/egress.h"
#include "models/pcie/ring.h"
#include "models/pcie/root_complex.h"
#include "models/pcie/tags.h"
#include "sim/kernel/cause.h"

enum {
    PCIE_RC_NAME_MAX = 64,
    PCIE_RC_PORTS_MAX = 32,
    PCIE_RC_WINDOWS_MAX = 64,
    PCIE_RC_TAGS = 256,
    PCIE_RC_CPU_FIRST_TAG = 32,
    PCIE_RC_CPU_READ_BYTES = 64,
    PCIE_RC_SOCKETS = 2,
    PCIE_RC_LINE_BYTES = 64, // what crosses QPI in one transaction
    // Requester IDs of the root complex: its processors are device 0, its peer-to-peer bridge device 1.
    PCIE_RC_CPU_ID = 0x0000,
    PCIE_RC_PEER_ID = 0x0008,
};

enum pcie_rc_counter {
    PCIE_RC_MEMORY_WRITES,
    PCIE_RC_MEMORY_WRITE_BYTES,
    PCIE_RC_MEMORY_READS,
    PCIE_RC_MEMORY_READ_BYTES,
    PCIE_RC_PEER_WRITES,
    PCIE_RC_PEER_READS,
    PCIE_RC_QPI_WRITE_LINES,
    PCIE_RC_QPI_READ_LINES,
    PCIE_RC_CPU_WRITES,
    PCIE_RC_CPU_READS,
    PCIE_RC_CPU_REFUSALS,
    PCIE_RC_UNSUPPORTED_WRITES,
    PCIE_RC_UNSUPPORTED_READS,
    PCIE_RC_UNEXPECTED_COMPLETIONS,
    PCIE_RC_COUNTERS
};

struct pcie_rc_port;

// A TLP that waits to leave through a port.
struct pcie_rc_leaving {
    struct pcie_leaving base;
    pcie_tlp_t *held;             // stays in the receive buffer of held_at until the link takes tlp
    struct pcie_rc_port *held_at; // NULL: nothing held
    bool from_cpu;                // a processor's posted write
    bool ends_read;               // the last completion of a memory read
    struct pcie_rc_port *crossed; // a line that came across QPI: the port it came from
};

struct pcie_rc_cpu_read {
    pcie_rc_read_fn done;
    void *ctx;
    uint64_t address;
    uint32_t bytes;
    uint8_t data[PCIE_RC_CPU_READ_BYTES];
};

struct pcie_rc_retry {
    pcie_rc_retry_fn fn;
    void *ctx;
};

struct pcie_rc_peer_request;

// A piece of a read, forwarded to a port under that port's tag.
struct pcie_rc_peer_piece {
    struct pcie_rc_peer_request *request; // NULL: the tag is free
    struct pcie_rc_peer_piece *next;      // of the same request, by address
    uint32_t offset, bytes;               // in the request
    bool ended;                           // its last completion has arrived
    uint8_t tag;
    pcie_tlp_t *early, **early_end;       // completions that wait for those of earlier pieces
};

// A read from port to port: in the queue of its port until all of it is forwarded, afterwards known only by its pieces.
struct pcie_rc_peer_request {
    pcie_tlp_t *tlp;
    struct pcie_rc_port *from, *to;
    uint32_t bytes, forwarded_bytes;
    struct pcie_rc_peer_piece *first, *last;
    bool waiting; // in the queue
    bool failed;  // answered with an error; later completions are dropped
};

struct pcie_rc_port {
    pcie_rc_t *rc;
    pcie_end_t *end;
    unsigned index;
    // egress
    struct pcie_egress egress; // struct pcie_rc_leaving
    sim_event_t leave_event;
    // the processor
    uint32_t cpu_writes_waiting; // in the egress
    struct pcie_ring retries;    // struct pcie_rc_retry
    struct pcie_tags cpu_tags;
    struct pcie_rc_cpu_read cpu_reads[PCIE_RC_TAGS]; // by tag
    struct pcie_ring cpu_reads_waiting; // struct pcie_rc_cpu_read, waiting for a tag
    // peer to peer
    struct pcie_tags peer_tags;
    struct pcie_rc_peer_piece peer_pieces[PCIE_RC_TAGS]; // forwarded to this port, by tag
    uint32_t peer_outstanding[PCIE_RC_PORTS_MAX]; // pieces by the port they came from
    struct pcie_ring peer_waiting;                // struct pcie_rc_peer_request * from this port
    // QPI
    unsigned socket;
    struct pcie_ring behind;  // struct pcie_rc_crossing: a crossing write, and all that arrived after it
    uint32_t lines_in_flight; // of its writes: not yet in order at the far port
};

// A TLP that came through a port; `to` is NULL for one that does not cross but must stay behind crossing ones.
struct pcie_rc_crossing {
    pcie_tlp_t *tlp;
    struct pcie_rc_port *to;
    uint32_t crossed_dwords;
};

// A line in flight to the far socket.
struct pcie_rc_line {
    pcie_tlp_t *tlp, *held; // held: the TLP whose last line this is, or NULL
    struct pcie_rc_port *from, *to;
    uint64_t due_ps;
};

// An acknowledgement in flight back.
struct pcie_rc_line_ack {
    uint64_t due_ps;
    unsigned socket;
};

// A write that waits to become visible, or a completion for the processor behind writes.
struct pcie_rc_commit {
    pcie_tlp_t *tlp;
    uint64_t visible_ps;
    struct pcie_rc_port *port;
    sim_cause_t cause; // of its becoming visible
};

struct pcie_rc_memory_read {
    pcie_tlp_t *request;
    struct pcie_rc_port *port;
    uint64_t due_ps;   // of the first completion
    sim_cause_t cause; // of its arrival, then of the completion
};

// A processor's read that ended without being sent.
struct pcie_rc_refused_read {
    pcie_rc_read_fn done;
    void *ctx;
};

struct pcie_rc_window {
    uint64_t base, size;
    struct pcie_rc_port *port;
};

struct pcie_rc {
    sim_t *sim;
    pcie_pool_t *pool;
    struct pcie_rc_config config;
    const struct pcie_memory_ops *memory;
    void *memory_ctx;
    struct pcie_rc_port *ports[PCIE_RC_PORTS_MAX];
    unsigned port_count;
    struct pcie_rc_window windows[PCIE_RC_WINDOWS_MAX];
    unsigned window_count;
    // memory
    struct pcie_ring commits; // struct pcie_rc_commit
    uint64_t visible_ps;      // time at which everything that has arrived is visible
    sim_event_t commit_event;
    uint64_t far_memory_base;                       // memory of socket 1 begins here
    struct pcie_ring reads_waiting;                 // struct pcie_rc_memory_read
    struct pcie_ring reads_active[PCIE_RC_SOCKETS]; // the same: of the port's own socket, and of the other
    uint32_t reads_at_work;                         // active, or with completions that the link has not taken yet
    sim_event_t read_event;
    // QPI, by the socket a line comes from
    bool two_sockets;
    struct pcie_ring lines, line_acks; // struct pcie_rc_line, struct pcie_rc_line_ack
    sim_event_t line_event, line_ack_event;
    unsigned line_turn; // the port that first uses entries that became free
    uint32_t write_lines[PCIE_RC_SOCKETS], read_lines[PCIE_RC_SOCKETS]; // outstanding
    // the processor
    struct pcie_ring refused_reads; // struct pcie_rc_refused_read
    sim_event_t refuse_event;
    uint64_t counters[PCIE_RC_COUNTERS];
    char name[PCIE_RC_NAME_MAX];
};

// The port whose window holds the whole range, or NULL.
struct pcie_rc_port *pcie_rc_decode(const pcie_rc_t *rc, uint64_t address, uint64_t bytes);

// Handles a TLP by its kind, once nothing that came before it blocks it.
void pcie_rc_arrived(struct pcie_rc_port *port, pcie_tlp_t *tlp);

void pcie_rc_egress_init(struct pcie_rc_port *port);
void pcie_rc_egress_fini(struct pcie_rc_port *port);
void pcie_rc_egress_push(struct pcie_rc_port *port, const struct pcie_rc_leaving *leaving); // takes the references
void pcie_rc_egress_pump(struct pcie_rc_port *port);
void pcie_rc_egress_ready(void *ctx, pcie_end_t *end); // the link has room again

void pcie_rc_memory_init(pcie_rc_t *rc);
void pcie_rc_memory_fini(pcie_rc_t *rc);
void pcie_rc_memory_write(struct pcie_rc_port *port, pcie_tlp_t *tlp);
void pcie_rc_memory_read(struct pcie_rc_port *port, pcie_tlp_t *tlp);
void pcie_rc_memory_read_left(pcie_rc_t *rc); // a read's last completion was taken by the link
// A completion for the processor, once every write that arrived before it is visible.
void pcie_rc_memory_behind_writes(struct pcie_rc_port *port, pcie_tlp_t *completion);

void pcie_rc_peer_init(struct pcie_rc_port *port);
void pcie_rc_peer_fini(struct pcie_rc_port *port);
void pcie_rc_peer_write(struct pcie_rc_port *from, struct pcie_rc_port *to, pcie_tlp_t *tlp);
void pcie_rc_peer_read(struct pcie_rc_port *from, struct pcie_rc_port *to, pcie_tlp_t *tlp);
void pcie_rc_peer_complete(struct pcie_rc_port *port, pcie_tlp_t *completion);
void pcie_rc_peer_port_down(struct pcie_rc_port *port);

void pcie_rc_qpi_init(pcie_rc_t *rc);
void pcie_rc_qpi_fini(pcie_rc_t *rc);
void pcie_rc_qpi_port_init(struct pcie_rc_port *port);
void pcie_rc_qpi_port_fini(struct pcie_rc_port *port);
// A TLP came through the port: a write that crosses, one that must stay behind such a write, or one that
// pcie_rc_arrived handles at once.
void pcie_rc_qpi_receive(struct pcie_rc_port *port, pcie_tlp_t *tlp);
void pcie_rc_qpi_line_left(struct pcie_rc_port *crossed); // the link of the far port took a line

void pcie_rc_cpu_init(struct pcie_rc_port *port);
void pcie_rc_cpu_fini(struct pcie_rc_port *port);
void pcie_rc_cpu_complete(struct pcie_rc_port *port, pcie_tlp_t *completion);
void pcie_rc_cpu_port_down(struct pcie_rc_port *port);
void pcie_rc_cpu_retry(struct pcie_rc_port *port); // there may be room for posted writes
void pcie_rc_cpu_refuse_run(void *rc);             // event

// Does the memory there belong to the other socket?
static inline bool pcie_rc_memory_is_far(const struct pcie_rc_port *port, uint64_t address)
{
    return port->socket != (address >= port->rc->far_memory_base ? 1u : 0u);
}

// rc_stream.c, of struct pcie_end_ops
void pcie_rc_writes_on(void *ctx, pcie_end_t *end, struct flow_path *path, uint64_t address, uint64_t bytes);
void pcie_rc_reads_from(void *ctx, pcie_end_t *end, struct flow_path *path, uint64_t address, uint64_t bytes);
