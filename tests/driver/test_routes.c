// The routes that node 1 of a line 0 - 1 - 2 - 3 programs; values from the layout of the window: a node is 32 GiB, a
// block 8 GiB.
#include <errno.h>

#include "machine.h"

#define ROUTE(output) (0x100u + 0x20u * (output))

static void expect_route(const struct machine *m, unsigned output, uint64_t mask, uint64_t lower, uint64_t upper)
{
    EXPECT_EQ(machine_register(m, ROUTE(output) + 0x00, 8), mask);
    EXPECT_EQ(machine_register(m, ROUTE(output) + 0x08, 8), lower);
    EXPECT_EQ(machine_register(m, ROUTE(output) + 0x10, 8), upper);
    EXPECT_EQ(machine_register(m, ROUTE(output) + 0x18, 4), 1);
}

TEST(DriverRoutes, GiveEachCablePortItsRangeOfNodes)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    expect_route(&m, 1, 0x7800000000, 0x1000000000, 0x1800000000); // E: nodes 2 and 3
    expect_route(&m, 2, 0x7800000000, 0, 0);                       // W: node 0
    peach2_close(handle);
    machine_fini(&m);
}

// Node 6 of a ring of 8: E leads to 7, 0, 1 and 2, W to 3, 4 and 5.
static const struct peach2_routing wrapped = {
    .node = 6, .node_count = 8, .port_of_node = {1, 1, 1, 2, 2, 2, PEACH2_NO_PORT, 1}};

TEST(DriverRoutes, GiveAPortASecondRangeWhereNumbersWrapAround)
{
    struct machine m;
    peach2_handle_t *handle = NULL;
    machine_init(&m);
    ASSERT_EQ(peach2_open(&m.backend, &wrapped, &handle), 0);
    expect_route(&m, 1, 0x7800000000, 0, 0x1000000000);            // E: nodes 0 to 2
    expect_route(&m, 2, 0x7800000000, 0x1800000000, 0x2800000000); // W: nodes 3 to 5
    expect_route(&m, 5, 0x7800000000, 0x3800000000, 0x3800000000); // E again: node 7
    EXPECT_EQ(machine_register(&m, ROUTE(6) + 0x18, 4), 0);
    EXPECT_EQ(machine_register(&m, ROUTE(7) + 0x18, 4), 0);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverRoutes, LeaveTheOwnNodeOutOfARange)
{
    const struct peach2_routing around = {.node = 1, .node_count = 3, .port_of_node = {3, PEACH2_NO_PORT, 3}};
    struct peach2_route routes[PEACH2_ROUTES_MAX];
    ASSERT_EQ(peach2_routes_make(&around, routes), 0);
    EXPECT_EQ(routes[3].upper, 0);
    EXPECT_EQ(routes[7].port, 3);
    EXPECT_EQ(routes[7].lower, 0x1000000000);
}

TEST(DriverRoutes, LeaveANodeWithoutAWayOutOfARange)
{
    const struct peach2_routing gap = {.node = 0, .node_count = 4, .port_of_node = {0, 1, PEACH2_NO_PORT, 1}};
    struct peach2_route routes[PEACH2_ROUTES_MAX];
    ASSERT_EQ(peach2_routes_make(&gap, routes), 0);
    EXPECT_EQ(routes[1].lower, 0x0800000000); // E: node 1
    EXPECT_EQ(routes[1].upper, 0x0800000000);
    EXPECT_TRUE(routes[5].enabled); // E again: node 3
    EXPECT_EQ(routes[5].lower, 0x1800000000);
    EXPECT_EQ(routes[5].upper, 0x1800000000);
}

TEST(DriverRoutes, AreLeftAloneWhenTheyCannotBeExpressed)
{
    const struct peach2_routing three = {.node = 0, .node_count = 6, .port_of_node = {0, 1, 2, 1, 2, 1}};
    struct peach2_route routes[PEACH2_ROUTES_MAX] = {{.port = 9}};
    EXPECT_EQ(peach2_routes_make(&three, routes), -EINVAL);
    EXPECT_EQ(routes[0].port, 9);
}

TEST(DriverRoutes, GiveTheHostItsBlockAndTheBoardItsOwn)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    expect_route(&m, 0, 0x7e00000000, 0x0800000000, 0x0800000000); // N: node 1, block 0
    expect_route(&m, 4, 0x7e00000000, 0x0e00000000, 0x0e00000000); // this board: node 1, block 3
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverRoutes, DisableThePortThatLeadsNowhere)
{
    struct machine m;
    machine_init(&m);
    machine_register_set(&m, ROUTE(3) + 0x18, 1, 4); // as an earlier program left it
    peach2_handle_t *handle = machine_open(&m);
    EXPECT_EQ(machine_register(&m, ROUTE(3) + 0x18, 4), 0);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverRoutes, TakeARouteOutBeforeItChanges)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    bool enabled = true;
    for (unsigned i = 0; i < m.log_count; i++) {
        const struct log_entry *entry = &m.log[i];
        if (entry->access == ACCESS_WRITE && entry->offset == ROUTE(1) + 0x18) {
            enabled = entry->value != 0;
        } else if (entry->access == ACCESS_WRITE && entry->offset >= ROUTE(1) && entry->offset < ROUTE(2)) {
            EXPECT_FALSE(enabled);
        }
    }
    EXPECT_TRUE(enabled);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverRoutes, TranslateTheOwnHostBlockToBusAddresses)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    EXPECT_EQ(machine_register(&m, 0x10, 8), WINDOW_BASE);
    EXPECT_EQ(machine_register(&m, 0x200, 8), WINDOW_BASE + 0x0800000000);
    EXPECT_EQ(peach2_window_address(handle, 1, 0x123456) - machine_register(&m, 0x200, 8), 0x123456);
    peach2_close(handle);
    machine_fini(&m);
}

static void expect_gpus(unsigned gpus, uint64_t last_block)
{
    struct machine m;
    machine_init(&m);
    m.gpus = gpus;
    peach2_handle_t *handle = machine_open(&m);
    expect_route(&m, 0, 0x7e00000000, 0x0800000000, last_block);
    EXPECT_EQ(machine_register(&m, 0x208, 8), gpus > 0 ? WINDOW_BASE + 0x0a00000000 - GPU_BASE(0) : 0);
    EXPECT_EQ(machine_register(&m, 0x210, 8), gpus > 1 ? WINDOW_BASE + 0x0c00000000 - GPU_BASE(1) : 0);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverRoutes, GiveTheFirstTwoGpusTheirBlocks)
{
    expect_gpus(0, 0x0800000000);
    expect_gpus(1, 0x0a00000000);
    expect_gpus(2, 0x0c00000000);
    expect_gpus(4, 0x0c00000000);
}

TEST(DriverRoutes, HaveNoBlocksForMoreGpus)
{
    const struct peach2_routing routing = {.node = 0, .node_count = 1, .gpus = 3};
    struct peach2_route routes[PEACH2_ROUTES_MAX];
    EXPECT_EQ(peach2_routes_make(&routing, routes), -EINVAL);
}

TEST(DriverRoutes, NameWindowAddressesOfGpus)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    EXPECT_EQ(peach2_gpu_window_address(handle, 0, 0, 0x1000), 0x8200001000);
    EXPECT_EQ(peach2_gpu_window_address(handle, 3, 1, 0x1ffffffff), 0x9dffffffff);
    EXPECT_EQ(peach2_gpu_window_address(handle, 16, 0, 0), 0);
    EXPECT_EQ(peach2_gpu_window_address(handle, 0, 2, 0), 0);
    EXPECT_EQ(peach2_gpu_window_address(handle, 0, 0, 0x200000000), 0);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverRoutes, NameWindowAddressesOfAnyNode)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    EXPECT_EQ(peach2_window_address(handle, 0, 0x1000), 0x8000001000);
    EXPECT_EQ(peach2_window_address(handle, 3, 0x1000), 0x9800001000);
    EXPECT_EQ(peach2_window_address(handle, 15, 0x1ffffffff), 0xf9ffffffff);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverRoutes, NameNoWindowAddressBeyondANodeOrItsHostBlock)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    EXPECT_EQ(peach2_window_address(handle, 16, 0x1000), 0);
    EXPECT_EQ(peach2_window_address(handle, 0, 0x200000000), 0);
    peach2_close(handle);
    machine_fini(&m);
}
