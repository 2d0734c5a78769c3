#include "cluster.h"

void cluster_init(struct cluster *cluster, unsigned nodes)
{
    *cluster = (struct cluster){0};
    site_init(&cluster->site, nodes);
    site_build(&cluster->site);
}

void cluster_fini(struct cluster *cluster)
{
    site_fini(&cluster->site);
}

void cluster_run(struct cluster *cluster, plat_program_fn first, plat_program_fn other)
{
    plat_machine_t *machine = cluster->site.machine;
    ASSERT_NOT_NULL(machine);
    for (uint32_t node = 0; node < cluster->site.scenario->node_count; node++) {
        plat_machine_set_program(machine, node, node == 0 ? first : other, cluster);
    }
    enum sim_run_outcome outcome = plat_machine_run(machine);
    if (outcome != SIM_RUN_DONE) {
        char waiters[1024];
        (void)sim_describe_waiters(plat_machine_sim(machine), waiters, sizeof waiters);
        FAIL("the run ended with %d: %s", (int)outcome, waiters);
    }
    if (plat_machine_failure(machine) != NULL) {
        FAIL("%s", plat_machine_failure(machine));
    }
    EXPECT_EQ(plat_machine_live_packets(machine), 0);
}

void cluster_await(peach2_handle_t *board, const bool *flag)
{
    const struct backend *backend = peach2_backend(board);
    while (!*flag) {
        backend->ops->cost(backend->ctx, BACKEND_COST_CALL, 10);
    }
}

void cluster_memory(struct cluster *cluster, peach2_handle_t *board, unsigned nodes)
{
    uint32_t node = peach2_node(board);
    void *memory = NULL;
    EXPECT_EQ(tcaInit(), tcaSuccess);
    EXPECT_EQ(tcaMalloc(&memory, CLUSTER_BYTES, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&cluster->handles[node], memory, CLUSTER_BYTES, tcaMemoryCPU), tcaSuccess);
    cluster->memory[node] = memory;
    cluster->ready[node] = true;
    for (unsigned i = 0; i < nodes; i++) {
        cluster_await(board, &cluster->ready[i]);
    }
}

void cluster_target(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    cluster_memory(cluster, board, cluster->site.scenario->node_count);
    cluster_await(board, &cluster->flag);
}

int cluster_copy(const tcaHandle *to, size_t to_offset, const tcaHandle *from, size_t from_offset, size_t size,
                 int flags)
{
    tcaDesc *desc = tcaDescNew();
    int error = tcaDescSetMemcpy(desc, to, to_offset, from, from_offset, size, flags, 0, 1);
    if (error == tcaSuccess) {
        error = tcaDescSet(desc, 0);
    }
    if (error == tcaSuccess) {
        error = tcaStartDMADesc(0);
    }
    if (error == tcaSuccess) {
        error = tcaWaitDMAC(0);
    }
    EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
    return error;
}
