// Sets up a root complex with 4 MiB of memory, the FPGA on a Gen3 x8 link, and a partner (peer.h) on a Gen3 x16 link.
#pragma once

#include "models/fpga/fpga.h"
#include "models/pcie/root_complex.h"
#include "peer.h"

enum { FIXTURE_HOST_BYTES = 4 << 20, FIXTURE_FPGA_BYTES = 2 << 20, FIXTURE_STORES_MAX = 2048 };
#define FIXTURE_HOST_BASE    UINT64_C(0x100000000)
#define FIXTURE_MEMORY_BASE  UINT64_C(0x2000000000)
#define FIXTURE_CONTROL_BASE UINT64_C(0x2100000000)
#define FIXTURE_PEER_BASE    UINT64_C(0x3000000000)
#define FIXTURE_NOWHERE      UINT64_C(0x4000000000)

struct fixture_config {
    struct fpga_config fpga;
    struct pcie_rc_config rc;
    struct pcie_link_config fpga_link, peer_link; // end 0 is the root complex's
};

struct fixture_store {
    uint32_t offset, value;
};

struct fixture {
    sim_t *sim;
    pcie_pool_t *pool;
    pcie_rc_t *rc;
    pcie_link_t *fpga_link, *peer_link;
    fpga_t *fpga;
    struct peer peer;
    uint8_t *host_memory;
    uint8_t *fpga_memory;
    // the processor's stores to the control BAR, in order
    struct fixture_store stores[FIXTURE_STORES_MAX];
    unsigned store_count, stores_done;
    // its last load
    bool loaded;
    enum pcie_cpl_status load_status;
    uint8_t load_data[64];
};

// Short latencies, ample credits, peer reads not limited by the root complex.
struct fixture_config fixture_config(void);
struct fixture *fixture_create(const struct fixture_config *config);
struct fixture *fixture_create_default(void);
void fixture_destroy(struct fixture *fixture); // fails the test if a TLP leaked

void fixture_run(struct fixture *fixture); // until no event is left
void fixture_run_for(struct fixture *fixture, uint64_t duration_ps);
void fixture_store_control(struct fixture *fixture, uint32_t offset, uint32_t value);
// Like rd_ast_rx() of kobayashi2018's figure 6, except that a length of more than 18 bits is masked here too.
void fixture_descriptor(struct fixture *fixture, enum fpga_direction direction, uint64_t source, uint64_t destination,
                        uint32_t bytes, uint8_t id);
// A load of 1..64 B by the processor; runs the simulation.
enum pcie_cpl_status fixture_load(struct fixture *fixture, uint64_t address, uint32_t bytes, void *data);
uint32_t fixture_control(struct fixture *fixture, enum fpga_direction direction, uint32_t offset);
uint32_t fixture_status(struct fixture *fixture, enum fpga_direction direction, uint8_t id);
uint32_t fixture_cycles(struct fixture *fixture, enum fpga_direction direction, uint8_t id);
uint64_t fixture_counter(const struct fixture *fixture, const char *name);
// Different at every offset, and different from the contents of the other memories.
void fixture_fill(uint8_t *memory, uint32_t bytes, uint32_t salt);

#define FIXTURE_DONE(id)          (FPGA_STATUS_DONE | (id))
#define FIXTURE_FAILED(id, error) (FPGA_STATUS_DONE | (uint32_t)(error) << FPGA_STATUS_ERROR_SHIFT | (id))
