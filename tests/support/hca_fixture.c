#include "hca_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CABLE_NS = 15, PHYS_NS = 60, CQ_ENTRIES = 4096 };

// --- the machine ---------------------------------------------------------------------------------------------------

static void node_init(struct hca_fixture *fixture, unsigned index)
{
    static const char *const NAMES[NODES][4] = {{"rc0", "memory0", "slot0", "hca0"},
                                                {"rc1", "memory1", "slot1", "hca1"}};
    struct hca_fixture_node *node = &fixture->nodes[index];
    const char *const *names = NAMES[index];
    ASSERT_EQ(host_memory_create(fixture->sim, names[1], 256ull << 20, &node->memory), SIM_OK);
    ASSERT_EQ(pcie_rc_create(fixture->sim, fixture->pool, names[0], &fixture->host.rc, &host_memory_pcie_ops,
                             node->memory, &node->rc),
              SIM_OK);
    const struct pcie_link_config link = {.generation = fixture->config.pcie_generation,
                                          .lanes = fixture->config.pcie_lanes,
                                          .mps_bytes = fixture->config.mps_bytes,
                                          .flight_ps = 2 * NS,
                                          .ends = {fixture->host.root_port, hca_slot_end(&fixture->config)}};
    ASSERT_EQ(pcie_link_create(fixture->sim, fixture->pool, names[2], &link, &node->slot), SIM_OK);
    unsigned port = pcie_rc_add_port(node->rc, pcie_link_end(node->slot, 0));
    ASSERT_EQ(pcie_rc_add_window(node->rc, port, UAR_BASE, hca_uar_bytes()), SIM_OK);
    ASSERT_EQ(hca_create(fixture->sim, fixture->pool, fixture->packets, names[3], &fixture->config, &node->hca),
              SIM_OK);
    hca_connect_host(node->hca, pcie_link_end(node->slot, 1), UAR_BASE);
    plat_hca_watch(node->hca, node->memory);
    hca_connect_port(node->hca, ib_link_end(fixture->cable, index), (uint16_t)(index + 1));
}

static void init(struct hca_fixture *fixture, const struct hca_config *config, const char *host, bool flow)
{
    const struct sim_config sim_config = {.seed = 1};
    memset(fixture, 0, sizeof *fixture);
    fixture->config = *config;
    fixture->host = preset_host(host);
    fixture->host.rc.mps_bytes = config->mps_bytes;
    fixture->host.rc.adversary = config->adversary;
    ASSERT_EQ(sim_create(&sim_config, &fixture->sim), SIM_OK);
    ASSERT_EQ(pcie_pool_create(&fixture->pool), SIM_OK);
    fixture->packets = ib_pool_create();
    if (flow) {
        ASSERT_EQ(flow_net_create(fixture->sim, &fixture->flows), SIM_OK);
        fixture->config.flows = fixture->flows;
    }
    const struct ib_link_config cable = {.ps_per_byte = config->port_ps_per_byte,
                                         .flight_ps = (CABLE_NS + PHYS_NS) * NS,
                                         .buffer_blocks = {config->port_buffer_blocks, config->port_buffer_blocks},
                                         .mtu_bytes = config->active_mtu_bytes,
                                         .gap_bytes = config->port_gap_bytes};
    ASSERT_EQ(ib_link_create(fixture->sim, fixture->packets, "cable", &cable, &fixture->cable), SIM_OK);
    for (unsigned i = 0; i < NODES; i++) {
        node_init(fixture, i);
    }
}

void hca_fixture_init_with(struct hca_fixture *fixture, const struct hca_config *config, const char *host)
{
    init(fixture, config, host, false);
}

void hca_fixture_init_flow(struct hca_fixture *fixture, const struct hca_config *config, const char *host)
{
    init(fixture, config, host, true);
}

void hca_fixture_init(struct hca_fixture *fixture, const char *preset)
{
    const struct hca_config config = preset_hca(preset);
    // akimoto2012 measured the first generations, sato2015 ConnectX-3.
    hca_fixture_init_with(fixture, &config, strncmp(preset, "connectx3", 9) == 0 ? "xeon-e5-2680v2" : "core-i7-2600k");
}

// Closes everything of the process; a test that closed an object itself set its pointer to NULL.
static void process_close(struct hca_fixture_process *process)
{
    while (process->open != NULL) {
        hca_fixture_qp_close(process->open);
    }
    if (process->other_mr != NULL) {
        EXPECT_EQ(hca_mr_deregister(process->other_mr), 0);
    }
    if (process->mr != NULL) {
        EXPECT_EQ(hca_mr_deregister(process->mr), 0);
    }
    if (process->context != NULL) {
        EXPECT_EQ(hca_pd_destroy(process->pd), 0);
        EXPECT_EQ(hca_close(process->context), 0);
    }
}

void hca_fixture_fini(struct hca_fixture *fixture)
{
    for (unsigned i = 0; i < fixture->process_count; i++) {
        process_close(fixture->processes[i]);
        host_core_destroy(fixture->processes[i]->inproc.core);
        free(fixture->processes[i]);
    }
    for (unsigned i = 0; i < NODES; i++) {
        hca_destroy(fixture->nodes[i].hca);
    }
    ib_link_destroy(fixture->cable);
    EXPECT_EQ(ib_pool_destroy(fixture->packets), 0);
    for (unsigned i = 0; i < NODES; i++) {
        pcie_rc_destroy(fixture->nodes[i].rc);
        pcie_link_destroy(fixture->nodes[i].slot);
        host_memory_destroy(fixture->nodes[i].memory);
    }
    flow_net_destroy(fixture->flows);
    EXPECT_EQ(pcie_pool_destroy(fixture->pool), 0);
    sim_destroy(fixture->sim);
}

void hca_fixture_run(struct hca_fixture *fixture)
{
    char text[512];
    if (sim_run(fixture->sim) != SIM_RUN_DONE) {
        (void)sim_describe_waiters(fixture->sim, text, sizeof text);
        FAIL("stuck: %s", text);
    }
}

void hca_fixture_spawn(struct hca_fixture *fixture, const char *name, void (*fn)(void *), void *arg)
{
    ASSERT_EQ(sim_thread_spawn(fixture->sim, name, fn, arg), SIM_OK);
}

uint64_t hca_fixture_counter(const struct hca_fixture *fixture, unsigned node, const char *name)
{
    bool found;
    uint64_t value = sim_counter_value(fixture->sim, node == 0 ? "hca0" : "hca1", name, &found);
    EXPECT_TRUE(found);
    return value;
}

// --- processes -----------------------------------------------------------------------------------------------------
// Set up before the programs run: commands cost no simulated time and need no thread.

struct hca_fixture_process *hca_fixture_process_bare(struct hca_fixture *fixture, unsigned node)
{
    struct hca_fixture_process *process = calloc(1, sizeof *process);
    fixture->processes[fixture->process_count++] = process;
    process->fixture = fixture;
    process->node = node;
    process->inproc = (struct plat_backend_inproc){.sim = fixture->sim,
                                                   .memory = fixture->nodes[node].memory,
                                                   .interrupt_ps = fixture->host.interrupt_ps,
                                                   .hca = fixture->nodes[node].hca};
    process->inproc.bars[BACKEND_BAR_HCA_UAR] = (struct plat_bar){UAR_BASE, hca_uar_bytes()};
    char core[16];
    snprintf(core, sizeof core, "core%u", fixture->process_count);
    EXPECT_EQ(host_core_create(fixture->sim, core, &fixture->host.core, fixture->nodes[node].rc,
                               fixture->nodes[node].memory, &process->inproc.core),
              SIM_OK);
    process->backend = plat_backend_inproc(&process->inproc);
    EXPECT_EQ(process->backend.ops->alloc_pinned(process->backend.ctx, REGION_BYTES, &process->buffer), 0);
    process->memory = process->buffer.address;
    return process;
}

struct hca_fixture_process *hca_fixture_process(struct hca_fixture *fixture, unsigned node)
{
    struct hca_fixture_process *process = hca_fixture_process_bare(fixture, node);
    EXPECT_EQ(hca_open(&process->backend, &process->context), 0);
    EXPECT_EQ(hca_pd_create(process->context, &process->pd), 0);
    EXPECT_EQ(hca_mr_register(process->pd, process->memory, REGION_BYTES, EVERY_ACCESS, &process->mr), 0);
    return process;
}

// --- queue pairs -----------------------------------------------------------------------------------------------------

struct hca_qp_create hca_fixture_qp_create(enum hca_qp_type type)
{
    return (struct hca_qp_create){.type = type,
                                  .send_entries = 128,
                                  .receive_entries = 512,
                                  .send_segments = 4,
                                  .receive_segments = 4,
                                  .inline_bytes = 64,
                                  .all_signaled = true};
}

struct hca_fixture_qp hca_fixture_qp_on(struct hca_fixture_process *process, struct hca_qp_create create,
                                        unsigned cq_entries)
{
    struct hca_fixture_qp *qp = calloc(1, sizeof *qp);
    qp->process = process;
    EXPECT_EQ(hca_cq_create(process->context, cq_entries, NULL, &qp->cq), 0);
    create.send_cq = qp->cq;
    create.receive_cq = qp->cq;
    EXPECT_EQ(hca_qp_create(process->pd, &create, &qp->qp), 0);
    qp->next = process->open;
    process->open = qp;
    return *qp;
}

struct hca_fixture_qp hca_fixture_qp_with(struct hca_fixture_process *process, struct hca_qp_create create)
{
    return hca_fixture_qp_on(process, create, CQ_ENTRIES);
}

struct hca_fixture_qp hca_fixture_qp(struct hca_fixture_process *process, enum hca_qp_type type)
{
    return hca_fixture_qp_with(process, hca_fixture_qp_create(type));
}

struct hca_qp_attr hca_fixture_attr(const struct hca_fixture_qp *peer)
{
    return (struct hca_qp_attr){.access = EVERY_ACCESS,
                                .qkey = 0x1234,
                                .dest_qpn = hca_qp_number(peer->qp),
                                .receive_psn = 0xfffff0,
                                .send_psn = 0xfffff0,
                                .path_mtu_bytes = 2048,
                                .dlid = (uint16_t)(peer->process->node + 1),
                                .port = 1,
                                .timeout = 4,
                                .retry_count = 7,
                                .rnr_retry = 7,
                                .min_rnr_timer = 1,
                                .max_rd_atomic = 16,
                                .max_dest_rd_atomic = 16};
}

// To RTS, with the attributes that each transition needs.
void hca_fixture_connect_with(const struct hca_fixture_qp *qp, const struct hca_qp_attr *attr)
{
    struct hca_qp_attr step = *attr;
    for (enum hca_qp_state state = HCA_INIT; state <= HCA_RTS; state++) {
        uint32_t required = 0, optional = 0;
        bool found = false;
        for (enum hca_qp_type type = HCA_RC; type <= HCA_UD && !found; type++) {
            step.state = state;
            (void)hca_qp_transition(type, (enum hca_qp_state)(state - 1), state, &required, &optional);
            found = hca_qp_modify(qp->qp, required | HCA_QP_STATE, &step) == 0;
        }
        EXPECT_TRUE(found);
    }
}

void hca_fixture_connect(const struct hca_fixture_qp *a, const struct hca_fixture_qp *b)
{
    const struct hca_qp_attr to_b = hca_fixture_attr(b), to_a = hca_fixture_attr(a);
    hca_fixture_connect_with(a, &to_b);
    hca_fixture_connect_with(b, &to_a);
}

void hca_fixture_qp_close(struct hca_fixture_qp *qp)
{
    struct hca_fixture_qp **link = &qp->process->open;
    while ((*link)->qp != qp->qp) {
        link = &(*link)->next;
    }
    struct hca_fixture_qp *kept = *link;
    *link = kept->next;
    EXPECT_EQ(hca_qp_destroy(kept->qp), 0);
    EXPECT_EQ(hca_cq_destroy(kept->cq), 0);
    free(kept);
}

// --- requests ------------------------------------------------------------------------------------------------------

struct hca_send_wr hca_fixture_wr(const struct hca_fixture_qp *qp, enum hca_opcode opcode, uint32_t offset,
                                  uint32_t bytes, struct hca_sge *sge)
{
    *sge = (struct hca_sge){.address = (uint64_t)(uintptr_t)(qp->process->memory + offset),
                            .bytes = bytes,
                            .lkey = hca_mr_lkey(qp->process->mr)};
    return (struct hca_send_wr){.wr_id = offset, .sges = sge, .sge_count = 1, .opcode = opcode};
}

int hca_fixture_send(const struct hca_fixture_qp *qp, enum hca_opcode opcode, uint32_t offset, uint32_t bytes,
                     const struct hca_fixture_process *remote, uint32_t remote_offset)
{
    struct hca_sge sge;
    struct hca_send_wr wr = hca_fixture_wr(qp, opcode, offset, bytes, &sge);
    wr.remote_address = (uint64_t)(uintptr_t)(remote->memory + remote_offset);
    wr.rkey = hca_mr_rkey(remote->mr);
    wr.swap_add = 1;
    wr.immediate = 0xabcd;
    return hca_post_send(qp->qp, &wr, NULL);
}

int hca_fixture_receive(const struct hca_fixture_qp *qp, uint64_t wr_id, uint32_t offset, uint32_t bytes)
{
    const struct hca_sge sge = {.address = (uint64_t)(uintptr_t)(qp->process->memory + offset),
                                .bytes = bytes,
                                .lkey = hca_mr_lkey(qp->process->mr)};
    const struct hca_receive_wr wr = {.wr_id = wr_id, .sges = &sge, .sge_count = 1};
    return hca_post_receive(qp->qp, &wr, NULL);
}

struct hca_wc hca_fixture_completion(const struct hca_fixture_qp *qp)
{
    struct hca_wc wc = {0};
    EXPECT_EQ(hca_cq_wait(qp->cq, 100000000), 0);
    EXPECT_EQ(hca_cq_poll(qp->cq, 1, &wc), 1);
    return wc;
}
