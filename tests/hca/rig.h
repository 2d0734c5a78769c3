// Two nodes with an HCA each, joined by a cable, and programs on their cores that use the driver.
#pragma once

#include "models/hca/ib_switch.h"
#include "preset.h"
#include "sim/kernel/counter.h"
#include "sim/platform/backend_inproc.h"
#include "tests/shim/test.h"
#include "verbs-shim/hca/hca_driver.h"

#define NS           1000ull
#define US           1000000ull
#define UAR_BASE     0x6000000000ull
#define NODES        2
#define PROGRAMS_MAX 4
#define REGION_BYTES (1u << 20)
#define EVERY_ACCESS (HCA_LOCAL_WRITE | HCA_REMOTE_WRITE | HCA_REMOTE_READ | HCA_REMOTE_ATOMIC)

struct rig_node {
    pcie_rc_t *rc;
    host_memory_t *memory;
    pcie_link_t *slot;
    hca_t *hca;
};

struct rig {
    sim_t *sim;
    pcie_pool_t *pool;
    ib_pool_t *packets;
    struct hca_config config;
    struct preset_host host;
    struct rig_node nodes[NODES];
    ib_link_t *cable; // node 0 is side 0
    struct rig_process *processes[16];
    unsigned process_count;
};

// A process on a node: its backend and a region of memory that everybody may use.
struct rig_process {
    struct rig *rig;
    unsigned node;
    struct plat_backend_inproc inproc;
    struct backend backend;
    hca_context_t *context;
    hca_pd_t *pd;
    struct backend_buffer buffer;
    uint8_t *memory;
    hca_mr_t *mr, *other_mr; // other: registered by a test, or NULL
    struct rig_qp *open;     // closed by rig_fini
};

void rig_init(struct rig *rig, const char *preset);
void rig_init_with(struct rig *rig, const struct hca_config *config, const char *host);
void rig_fini(struct rig *rig); // fails the test when something leaked
struct rig_process *rig_process(struct rig *rig, unsigned node);
struct rig_process *rig_process_bare(struct rig *rig, unsigned node); // it has memory and opens the HCA itself
void rig_run(struct rig *rig); // until nothing is left to do; fails when something is stuck
uint64_t rig_counter(const struct rig *rig, unsigned node, const char *name);

// A queue pair with a CQ of its own for both directions.
struct rig_qp {
    struct rig_process *process;
    hca_cq_t *cq;
    hca_qp_t *qp;
    struct rig_qp *next; // of the copies that the process keeps
};
struct hca_qp_create rig_qp_create(enum hca_qp_type type);
struct rig_qp rig_qp(struct rig_process *process, enum hca_qp_type type);
struct rig_qp rig_qp_with(struct rig_process *process, struct hca_qp_create create);
struct hca_qp_attr rig_attr(const struct rig_qp *peer);
void rig_connect_with(const struct rig_qp *qp, const struct hca_qp_attr *attr);
void rig_connect(const struct rig_qp *a, const struct rig_qp *b); // both to RTS
struct rig_qp rig_qp_on(struct rig_process *process, struct hca_qp_create create, unsigned cq_entries);
void rig_qp_close(struct rig_qp *qp);

// Requests of one segment of the process's region.
struct hca_send_wr rig_wr(const struct rig_qp *qp, enum hca_opcode opcode, uint32_t offset, uint32_t bytes,
                          struct hca_sge *sge);
int rig_send(const struct rig_qp *qp, enum hca_opcode opcode, uint32_t offset, uint32_t bytes,
             const struct rig_process *remote, uint32_t remote_offset);
int rig_receive(const struct rig_qp *qp, uint64_t wr_id, uint32_t offset, uint32_t bytes);
struct hca_wc rig_completion(const struct rig_qp *qp); // waits for the next
// Runs fn as a program.
void rig_spawn(struct rig *rig, const char *name, void (*fn)(void *), void *arg);
