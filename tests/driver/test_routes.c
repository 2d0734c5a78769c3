// What node 1 of a line 0 - 1 - 2 - 3 programs; values typed from the layout of the window: a node is 32 GiB, a block
// 8 GiB.
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
    machine_register_set(&m, ROUTE(3) + 0x18, 1, 4); // as something before left it
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
