// What the files of the root complex share: root_complex.c (life, decode), rc_memory.c, rc_egress.c, rc_peer.c,
// rc_cpu.c. Internal to models/pcie.
//
// Data flows: receive() decodes a TLP and hands it to memory (commit or read), to another port (peer) or to the
// processor; whatever leaves through a port goes through its egress, which keeps the order and waits for the link.
#pragma once

#include "models/pcie/ring.h"
#include "models/pcie/root_complex.h"

enum {
    PCIE_RC_NAME_MAX = 64,
    PCIE_RC_PORTS_MAX = 32,
    PCIE_RC_WINDOWS_MAX = 64,
    PCIE_RC_TAGS = 256,
    PCIE_RC_CPU_FIRST_TAG = 32,
    PCIE_RC_CPU_READ_BYTES = 64,
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
    PCIE_RC_CPU_WRITES,
    PCIE_RC_CPU_READS,
    PCIE_RC_CPU_REFUSALS,
    PCIE_RC_UNSUPPORTED_WRITES,
    PCIE_RC_UNSUPPORTED_READS,
    PCIE_RC_UNEXPECTED_COMPLETIONS,
    PCIE_RC_COUNTERS
};

struct pcie_rc_port;

// What waits to leave through a port.
struct pcie_rc_leaving {
    pcie_tlp_t *tlp;
    uint64_t ready_ps;
    uint64_t order;
    pcie_tlp_t *held;             // keeps its place in the receive buffer of held_at until the link takes tlp
    struct pcie_rc_port *held_at; // NULL: nothing held
    bool from_cpu;                // a processor's posted write
    bool ends_read;               // the last completion of a memory read
};

struct pcie_rc_cpu_read {
    pcie_rc_read_fn done;
    void *ctx;
    uint64_t address;
    uint32_t bytes;
    uint32_t received_bytes;
    bool active;
    uint8_t data[PCIE_RC_CPU_READ_BYTES];
};

struct pcie_rc_retry {
    pcie_rc_retry_fn fn;
    void *ctx;
};

// A read forwarded to a port, under that port's tag.
struct pcie_rc_peer_read {
    pcie_tlp_t *request; // NULL: the tag is free
    struct pcie_rc_port *from;
};

struct pcie_rc_peer_waiting {
    pcie_tlp_t *request;
    struct pcie_rc_port *to;
};

struct pcie_rc_port {
    pcie_rc_t *rc;
    pcie_end_t *end;
    unsigned index;
    // egress
    struct pcie_ring leaving[PCIE_CLASS_COUNT]; // struct pcie_rc_leaving
    uint64_t leaving_order;
    sim_event_t leave_event;
    // the processor
    uint32_t cpu_writes_waiting; // in leaving
    struct pcie_ring retries;    // struct pcie_rc_retry
    struct pcie_rc_cpu_read cpu_reads[PCIE_RC_TAGS];
    uint8_t cpu_free_tags[PCIE_RC_TAGS];
    uint32_t cpu_free_count;
    struct pcie_ring cpu_reads_waiting; // struct pcie_rc_cpu_read, for a tag
    // peer to peer
    struct pcie_rc_peer_read peer_reads[PCIE_RC_TAGS]; // forwarded to this port
    uint32_t peer_next_tag;
    uint32_t peer_outstanding[PCIE_RC_PORTS_MAX]; // by the port they came from
    struct pcie_ring peer_waiting;                // struct pcie_rc_peer_waiting, that came from this port
};

// A write on its way to visibility, or a completion for the processor behind writes.
struct pcie_rc_commit {
    pcie_tlp_t *tlp;
    uint64_t visible_ps;
    struct pcie_rc_port *port;
};

struct pcie_rc_memory_read {
    pcie_tlp_t *request;
    struct pcie_rc_port *port;
    uint64_t due_ps; // of the first completion
};

// A processor's read that ended without going anywhere.
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
    uint64_t visible_ps;      // when everything that has arrived is visible
    sim_event_t commit_event;
    struct pcie_ring reads_waiting, reads_active; // struct pcie_rc_memory_read
    uint32_t reads_at_work;                       // active, or with completions not yet taken by the link
    sim_event_t read_event;
    // the processor
    struct pcie_ring refused_reads; // struct pcie_rc_refused_read
    sim_event_t refuse_event;
    uint64_t counters[PCIE_RC_COUNTERS];
    char name[PCIE_RC_NAME_MAX];
};

// The port whose window holds all of the range, or NULL.
struct pcie_rc_port *pcie_rc_decode(const pcie_rc_t *rc, uint64_t address, uint64_t bytes);

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

void pcie_rc_cpu_init(struct pcie_rc_port *port);
void pcie_rc_cpu_fini(struct pcie_rc_port *port);
void pcie_rc_cpu_complete(struct pcie_rc_port *port, pcie_tlp_t *completion);
void pcie_rc_cpu_port_down(struct pcie_rc_port *port);
void pcie_rc_cpu_retry(struct pcie_rc_port *port); // there may be room for posted writes
void pcie_rc_cpu_refuse_run(void *rc);             // event
