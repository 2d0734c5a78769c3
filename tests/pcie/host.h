// A root complex with 64 KiB of memory at 1 MiB and three devices behind links, for the tests of the root complex.
//
// A device has a window of 64 KiB of its own memory, answers reads of it, and sends reads and writes to other
// addresses.
#pragma once

#include "models/pcie/root_complex.h"
#include "sim/kernel/counter.h"

enum {
    HOST_DEVICES = 3,
    HOST_BYTES = 65536,
    HOST_TAGS = 64,
    HOST_LOG_MAX = 256,
};
#define HOST_MEMORY_BASE    UINT64_C(0x100000)
#define HOST_WINDOW(device) (UINT64_C(0x1000000000) + (uint64_t)(device)*HOST_BYTES)

struct host_access {
    uint64_t time_ps, address;
    uint32_t bytes;
};

struct device_read {
    uint64_t address;
    uint32_t bytes, received_bytes;
    unsigned completions;
    uint32_t completion_bytes[HOST_LOG_MAX];
    uint64_t first_ps, last_ps;
    enum pcie_cpl_status status;
    uint8_t data[PCIE_PAYLOAD_MAX];
};

struct device {
    struct host *host;
    unsigned index;
    pcie_link_t *link;
    pcie_end_t *end;
    uint8_t memory[HOST_BYTES];
    struct device_read reads[HOST_TAGS];
    uint32_t answer_bytes;      // largest completion, a multiple of 4; 0: never answers
    bool holds_writes;          // keeps writes in the receive buffer
    bool holds_reads;           // answers them when device_answer_backwards is called
    pcie_tlp_t *asked;          // reads held, the latest one first
    pcie_tlp_t *out, **out_end; // TLPs that the link refused, in order
    pcie_tlp_t *held, **held_end;
    unsigned writes;
    struct host_access log[HOST_LOG_MAX];
};

struct host {
    sim_t *sim;
    pcie_pool_t *pool;
    pcie_rc_t *rc;
    uint8_t memory[HOST_BYTES];
    unsigned writes, reads; // calls
    unsigned lost_after;    // calls; later calls find the memory released. 0: never
    struct host_access write_log[HOST_LOG_MAX];
    struct device devices[HOST_DEVICES];
};

struct host_config {
    struct pcie_rc_config rc;
    struct pcie_link_config link;
};

struct host_config host_config(void); // Gen2 x8, MPS 256, no link latencies
struct host *host_create(const struct host_config *config);
void host_destroy(struct host *host); // fails the test if a TLP leaked
uint64_t host_counter(const struct host *host, const char *name);

void device_write(struct device *device, uint64_t address, uint32_t bytes, const void *data);
void device_read(struct device *device, uint8_t tag, uint64_t address, uint32_t bytes);
void device_offer(struct device *device, pcie_tlp_t *tlp);
void device_release_writes(struct device *device);
void device_answer_backwards(struct device *device); // the latest read first
