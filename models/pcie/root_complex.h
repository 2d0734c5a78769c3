// A root complex with its memory: the host's side of PCI Express.
//
// Models: address decode into memory and the windows (BARs) of the devices behind its root ports; memory writes that
// become visible after a latency, in order; memory reads with a latency, a bounded number in progress, and completions
// split at the read completion boundary into at most Max_Payload_Size; peer-to-peer forwarding between ports with a
// bounded number of outstanding reads, which may be cut into cache lines; the processor's own posted writes and
// non-posted reads; Unsupported Request for unclaimed addresses; two sockets joined by QPI. Ordering: a completion
// never overtakes posted writes that arrived before its read; reads see every write that arrived before them. Leaves
// out: caches (latencies are for warm lines), configuration space, interrupts as messages, QPI's bandwidth for memory
// accesses (far above that of a link).
#pragma once

#include "models/pcie/link.h"

typedef struct pcie_rc pcie_rc_t;

struct pcie_rc_config {
    uint64_t memory_read_ps;   // request at the transaction layer to its first completion
    uint64_t memory_write_ps;  // arrival at the transaction layer to visible
    uint32_t memory_reads_max; // inbound memory reads in progress at once; others wait in order
    uint32_t rcb_bytes;        // 64 or 128
    uint32_t mps_bytes;
    uint64_t peer_ps;        // port to port
    uint32_t peer_reads_max; // outstanding reads between two ports, counted in the pieces passed on
    // Largest piece in which a read is passed from port to port: a power of two, at least 64; pieces end at multiples
    // of it. 0: reads are passed on whole. Clause 1.3.1 allows pieces.
    uint32_t peer_read_bytes;
    // Two sockets. From port to port across QPI everything goes in lines of 64 B, each a transaction of its own: a
    // write line crosses, is put in order at its port, leaves, and is acknowledged; a read line is outstanding until
    // its data are back.
    uint64_t qpi_ps;             // one way
    uint64_t qpi_peer_write_ps;  // time of the far side to put a line in order at its port
    uint64_t qpi_peer_read_ps;   // time of the far side to pass the request for a line on, besides peer_ps
    uint32_t qpi_peer_lines_max; // outstanding lines, of writes and of reads each, in each direction
    struct adversary *adversary; // delays memory answers and the visibility of writes; NULL: no delay
};

// The memory behind the root complex. Called at the simulated instant when bytes are read or become visible.
struct pcie_memory_ops {
    bool (*claims)(void *ctx, uint64_t address, uint64_t bytes);
    // false: the memory was released after it was claimed. A read ends with Unsupported Request, a write is dropped.
    bool (*read)(void *ctx, uint64_t address, void *data, uint32_t bytes);
    // Byte enables are resolved: each call is one contiguous run of enabled bytes.
    bool (*write)(void *ctx, uint64_t address, const void *data, uint32_t bytes);
    // Optional: announces bytes that will be read or written. Changes no state; the memory may prefetch them into a
    // cache of the simulating machine.
    void (*soon)(void *ctx, uint64_t address, uint32_t bytes);
    // Optional: a read for a stream, without a copy: the bytes where the simulator has them. NULL: not at one place.
    const void *(*at)(void *ctx, uint64_t address, uint32_t bytes);
};

enum sim_status pcie_rc_create(sim_t *sim, pcie_pool_t *pool, const char *name, const struct pcie_rc_config *config,
                               const struct pcie_memory_ops *memory, void *memory_ctx, pcie_rc_t **rc_out);
void pcie_rc_destroy(pcie_rc_t *rc);

// Attaches the root complex as owner of `end`. Returns the port's number.
unsigned pcie_rc_add_port(pcie_rc_t *rc, pcie_end_t *end);
// Addresses [base, base + size) go to that port. SIM_ERR_EXISTS when it overlaps another window or memory.
enum sim_status pcie_rc_add_window(pcie_rc_t *rc, unsigned port, uint64_t base, uint64_t size);

// Ports, memory and the processor belong to socket 0 by default; the processor stays there. Call before the first TLP.
// SIM_ERR_INVALID: no such port or socket (0, 1), or qpi_peer_lines_max is 0.
enum sim_status pcie_rc_set_port_socket(pcie_rc_t *rc, unsigned port, unsigned socket);
// Memory from base on belongs to socket 1.
void pcie_rc_set_far_memory(pcie_rc_t *rc, uint64_t base);

// --- the processor's accesses ---------------------------------------------------------------------------------------
// To windows. The processor reaches its memory without the root complex: here an address of memory is unclaimed.

// Does the address belong to a device that is not on the processor's socket?
bool pcie_rc_is_far(const pcie_rc_t *rc, uint64_t address);

// A posted write of up to Max_Payload_Size bytes, in program order, from the instant at which it reaches the root
// complex of the device's socket. false: the queue to that port is full; retry when `retry` is called (once).
typedef void (*pcie_rc_retry_fn)(void *ctx);
bool pcie_rc_cpu_write(pcie_rc_t *rc, uint64_t address, const void *data, uint32_t bytes, pcie_rc_retry_fn retry,
                       void *ctx);

// A non-posted read of 1..64 bytes within a line of 64. done is called later, never from inside, with the data or with
// a status other than SC (data NULL). Reads of unclaimed addresses, or through a link that is down, complete with UR;
// the caller reads them as all ones.
typedef void (*pcie_rc_read_fn)(void *ctx, enum pcie_cpl_status status, const uint8_t *data, uint32_t bytes);
void pcie_rc_cpu_read(pcie_rc_t *rc, uint64_t address, uint32_t bytes, pcie_rc_read_fn done, void *ctx);
