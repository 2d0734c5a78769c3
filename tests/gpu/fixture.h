// Sets up a host with memory and a root complex, two GPUs, and a probe: an endpoint with reads and writes from the
// test.
#pragma once

#include "models/gpu/gpu.h"
#include "models/host/memory.h"
#include "models/pcie/root_complex.h"
#include "sim/kernel/counter.h"

#define NS  SIM_PS_PER_NS
#define US  SIM_PS_PER_US
#define KIB 1024ull
#define MIB (1024ull * KIB)

enum { FIXTURE_GPUS = 2, PROBE_TAGS = 64, PROBE_LOG_MAX = 4096 };

#define FIXTURE_BAR(gpu) (UINT64_C(0x1000000000) + (uint64_t)(gpu)*UINT64_C(0x800000000))

struct fixture_link {
    uint32_t generation, lanes;
    uint64_t tx_ps, rx_ps; // of the device's end
};

struct fixture_config {
    struct pcie_rc_config rc;
    uint64_t port_tx_ps, port_rx_ps; // of the root ports
    struct gpu_config gpu;
    struct fixture_link gpu_link, probe_link;
    bool far; // GPU 0 is behind the other socket
};

struct probe_read {
    uint64_t address;
    uint32_t bytes, received_bytes, completions;
    uint32_t completion_bytes[64];
    enum pcie_cpl_status status;
    uint64_t done_ps;
    uint8_t data[PCIE_PAYLOAD_MAX];
};

// Reads that the probe keeps outstanding itself.
struct probe_stream {
    uint64_t next, end;
    uint32_t bytes; // each
    uint8_t *data;  // of the whole stream
    uint64_t base, first_ps, last_ps, received_bytes;
};

struct probe {
    sim_t *sim;
    pcie_link_t *link;
    pcie_end_t *end;
    struct probe_read reads[PROBE_TAGS];
    struct probe_stream stream;
    pcie_tlp_t *out, **out_end;
    unsigned answered;          // completions in order of arrival
    uint8_t log[PROBE_LOG_MAX]; // their tags
};

struct fixture {
    sim_t *sim;
    pcie_pool_t *pool;
    host_memory_t *memory;
    pcie_rc_t *rc;
    pcie_link_t *links[FIXTURE_GPUS];
    gpu_t *gpus[FIXTURE_GPUS];
    struct probe probe;
    sim_event_t stop;
};

// No latencies except: read 200 ns, write 100 ns, port to port 50 ns. Gen2 x16 and x8, two copy engines.
struct fixture_config fixture_config(void);
// The values of docs/decisions/0007-gpu.md for K20 on Sandy Bridge, K20X on Ivy Bridge, and P100 on Broadwell.
struct fixture_config fixture_k20(void);
struct fixture_config fixture_k20x(void);
struct fixture_config fixture_p100(void);

void fixture_init(struct fixture *fixture, const struct fixture_config *config);
void fixture_fini(struct fixture *fixture); // fails the test if a TLP leaked
void fixture_run(struct fixture *fixture);  // until no event is left
void fixture_run_for(struct fixture *fixture, uint64_t delay_ps);
uint64_t fixture_counter(const struct fixture *fixture, unsigned gpu, const char *name);
// Allocates and pins; returns the bus address. device_out may be NULL.
uint64_t fixture_pinned(struct fixture *fixture, unsigned gpu, uint64_t bytes, uint64_t *device_out);
void fixture_pattern(void *data, uint64_t bytes, unsigned seed);

void probe_write(struct fixture *fixture, uint64_t address, uint32_t bytes, const void *data);
void probe_read(struct fixture *fixture, uint8_t tag, uint64_t address, uint32_t bytes);
// In 10^6 bytes per second, from the first data to the last; the data are compared with expected.
uint64_t probe_read_rate(struct fixture *fixture, uint64_t address, uint32_t bytes, uint32_t tags,
                         uint32_t request_bytes, const void *expected);
