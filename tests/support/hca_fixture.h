// Sets up two nodes with an HCA each, joined by a cable, and programs on their cores that use the driver of the HCA.
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

struct hca_fixture_node {
    pcie_rc_t *rc;
    host_memory_t *memory;
    pcie_link_t *slot;
    hca_t *hca;
};

struct hca_fixture {
    sim_t *sim;
    pcie_pool_t *pool;
    ib_pool_t *packets;
    flow_net_t *flows; // NULL: packets only
    struct hca_config config;
    struct preset_host host;
    struct hca_fixture_node nodes[NODES];
    ib_link_t *cable; // node 0 is side 0
    struct hca_fixture_process *processes[16];
    unsigned process_count;
};

// A process on a node: its backend and a region of memory with all access rights.
struct hca_fixture_process {
    struct hca_fixture *fixture;
    unsigned node;
    struct plat_backend_inproc inproc;
    struct backend backend;
    hca_context_t *context;
    hca_pd_t *pd;
    struct backend_buffer buffer;
    uint8_t *memory;
    hca_mr_t *mr, *other_mr;     // other: registered by a test, or NULL
    struct hca_fixture_qp *open; // closed by hca_fixture_fini
};

void hca_fixture_init(struct hca_fixture *fixture, const char *preset);
void hca_fixture_init_with(struct hca_fixture *fixture, const struct hca_config *config, const char *host);
// The same, with long messages as streams.
void hca_fixture_init_flow(struct hca_fixture *fixture, const struct hca_config *config, const char *host);
void hca_fixture_fini(struct hca_fixture *fixture); // fails the test if something leaked
struct hca_fixture_process *hca_fixture_process(struct hca_fixture *fixture, unsigned node);
// A process that has memory; the test opens the HCA.
struct hca_fixture_process *hca_fixture_process_bare(struct hca_fixture *fixture, unsigned node);
void hca_fixture_run(struct hca_fixture *fixture); // until no event is left; fails if the run is stuck
uint64_t hca_fixture_counter(const struct hca_fixture *fixture, unsigned node, const char *name);

// A queue pair with a CQ of its own for both directions.
struct hca_fixture_qp {
    struct hca_fixture_process *process;
    hca_cq_t *cq;
    hca_qp_t *qp;
    struct hca_fixture_qp *next; // of the copies that the process keeps
};
struct hca_qp_create hca_fixture_qp_create(enum hca_qp_type type);
struct hca_fixture_qp hca_fixture_qp(struct hca_fixture_process *process, enum hca_qp_type type);
struct hca_fixture_qp hca_fixture_qp_with(struct hca_fixture_process *process, struct hca_qp_create create);
struct hca_qp_attr hca_fixture_attr(const struct hca_fixture_qp *peer);
void hca_fixture_connect_with(const struct hca_fixture_qp *qp, const struct hca_qp_attr *attr);
void hca_fixture_connect(const struct hca_fixture_qp *a, const struct hca_fixture_qp *b); // both to RTS
struct hca_fixture_qp hca_fixture_qp_on(struct hca_fixture_process *process, struct hca_qp_create create,
                                        unsigned cq_entries);
void hca_fixture_qp_close(struct hca_fixture_qp *qp);

// Requests with one segment of the process's region.
struct hca_send_wr hca_fixture_wr(const struct hca_fixture_qp *qp, enum hca_opcode opcode, uint32_t offset,
                                  uint32_t bytes, struct hca_sge *sge);
int hca_fixture_send(const struct hca_fixture_qp *qp, enum hca_opcode opcode, uint32_t offset, uint32_t bytes,
                     const struct hca_fixture_process *remote, uint32_t remote_offset);
int hca_fixture_receive(const struct hca_fixture_qp *qp, uint64_t wr_id, uint32_t offset, uint32_t bytes);
struct hca_wc hca_fixture_completion(const struct hca_fixture_qp *qp); // waits for the next one
// Runs fn as a program.
void hca_fixture_spawn(struct hca_fixture *fixture, const char *name, void (*fn)(void *), void *arg);
