// A root complex with 4 MiB of memory, the FPGA on Gen3 x8, and a partner (peer.h) on Gen3 x16.
#pragma once

#include "models/fpga/fpga.h"
#include "models/pcie/root_complex.h"
#include "peer.h"

enum { RIG_HOST_BYTES = 4 << 20, RIG_FPGA_BYTES = 2 << 20, RIG_STORES_MAX = 2048 };
#define RIG_HOST_BASE    UINT64_C(0x100000000)
#define RIG_MEMORY_BASE  UINT64_C(0x2000000000)
#define RIG_CONTROL_BASE UINT64_C(0x2100000000)
#define RIG_PEER_BASE    UINT64_C(0x3000000000)
#define RIG_NOWHERE      UINT64_C(0x4000000000)

struct rig_config {
    struct fpga_config fpga;
    struct pcie_rc_config rc;
    struct pcie_link_config fpga_link, peer_link; // end 0 is the root complex's
};

struct rig_store {
    uint32_t offset, value;
};

struct rig {
    sim_t *sim;
    pcie_pool_t *pool;
    pcie_rc_t *rc;
    pcie_link_t *fpga_link, *peer_link;
    fpga_t *fpga;
    struct peer peer;
    uint8_t *host_memory;
    uint8_t *fpga_memory;
    // the processor's stores to the control BAR, in order
    struct rig_store stores[RIG_STORES_MAX];
    unsigned store_count, stores_done;
    // its last load
    bool loaded;
    enum pcie_cpl_status load_status;
    uint8_t load_data[64];
};

// Short latencies, ample credits, peer reads not limited by the root complex.
struct rig_config rig_config(void);
struct rig *rig_create(const struct rig_config *config);
struct rig *rig_create_default(void);
void rig_destroy(struct rig *rig); // fails the test when a TLP leaked

void rig_run(struct rig *rig); // until nothing is left to do
void rig_run_for(struct rig *rig, uint64_t duration_ps);
void rig_store_control(struct rig *rig, uint32_t offset, uint32_t value);
// As rd_ast_rx() of kobayashi2018's figure 6, except that a length that does not fit its 18 bits is masked here too.
void rig_descriptor(struct rig *rig, enum fpga_direction direction, uint64_t source, uint64_t destination,
                    uint32_t bytes, uint8_t id);
// A load of 1..64 B by the processor; runs the simulation.
enum pcie_cpl_status rig_load(struct rig *rig, uint64_t address, uint32_t bytes, void *data);
uint32_t rig_control(struct rig *rig, enum fpga_direction direction, uint32_t offset);
uint32_t rig_status(struct rig *rig, enum fpga_direction direction, uint8_t id);
uint32_t rig_cycles(struct rig *rig, enum fpga_direction direction, uint8_t id);
uint64_t rig_counter(const struct rig *rig, const char *name);
// Different in every place, and from what the other memories hold.
void rig_fill(uint8_t *memory, uint32_t bytes, uint32_t salt);

#define RIG_DONE(id)          (FPGA_STATUS_DONE | (id))
#define RIG_FAILED(id, error) (FPGA_STATUS_DONE | (uint32_t)(error) << FPGA_STATUS_ERROR_SHIFT | (id))
