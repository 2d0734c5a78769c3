#include <errno.h>

#include "machine.h"
#include "verbs-shim/peach2/peach2_proxy.h"

static int open_with(struct machine *machine, const struct peach2_routing *routing)
{
    peach2_handle_t *handle = NULL;
    int error = peach2_open(&machine->backend, routing, &handle);
    if (error == 0) {
        EXPECT_NOT_NULL(handle);
    } else {
        EXPECT_NULL(handle);
    }
    peach2_close(handle);
    return error;
}

static const struct peach2_routing alone = {.node = 0, .node_count = 1};

TEST(DriverOpen, RefusesWhatIsNoPeach2)
{
    struct machine m;
    machine_init(&m);
    machine_register_set(&m, PEACH2_CHIP_ID, 0x12345678, 4);
    EXPECT_EQ(open_with(&m, &alone), -ENXIO);
    machine_fini(&m);
}

TEST(DriverOpen, RefusesARegisterMapOfAnotherMajorVersion)
{
    struct machine m;
    machine_init(&m);
    machine_register_set(&m, PEACH2_CHIP_VERSION, PEACH2_CHIP_VERSION_RESET + 0x10000, 4);
    EXPECT_EQ(open_with(&m, &alone), -ENXIO);
    machine_register_set(&m, PEACH2_CHIP_VERSION, PEACH2_CHIP_VERSION_RESET + 1, 4);
    EXPECT_EQ(open_with(&m, &alone), 0);
    machine_fini(&m);
}

TEST(DriverOpen, RefusesABarThatDoesNotAnswer)
{
    struct machine m;
    machine_init(&m);
    m.silent = true;
    EXPECT_EQ(open_with(&m, &alone), -ENXIO);
    machine_fini(&m);
}

TEST(DriverOpen, RefusesRoutesThatTheRegistersCannotExpress)
{
    struct machine m;
    machine_init(&m);
    const struct peach2_routing three_ranges = {.node = 0, .node_count = 6, .port_of_node = {0, 1, 2, 1, 2, 1}};
    const struct peach2_routing through_host = {.node = 0, .node_count = 2, .port_of_node = {0, 0}};
    const struct peach2_routing no_port = {.node = 0, .node_count = 2, .port_of_node = {0, 4}};
    const struct peach2_routing outside = {.node = 2, .node_count = 2};
    const struct peach2_routing too_many = {.node = 0, .node_count = 17};
    EXPECT_EQ(open_with(&m, &three_ranges), -EINVAL);
    EXPECT_EQ(open_with(&m, &through_host), -EINVAL);
    EXPECT_EQ(open_with(&m, &no_port), -EINVAL);
    EXPECT_EQ(open_with(&m, &outside), -EINVAL);
    EXPECT_EQ(open_with(&m, &too_many), -EINVAL);
    machine_fini(&m);
}

TEST(DriverOpen, RefusesNull)
{
    struct machine m;
    peach2_handle_t *handle;
    machine_init(&m);
    EXPECT_EQ(peach2_open(NULL, &alone, &handle), -EINVAL);
    EXPECT_EQ(peach2_open(&m.backend, NULL, &handle), -EINVAL);
    EXPECT_EQ(peach2_open(&m.backend, &alone, NULL), -EINVAL);
    machine_fini(&m);
}

TEST(DriverOpen, PaysOneLibraryCall)
{
    struct machine m;
    machine_init(&m);
    EXPECT_EQ(open_with(&m, &alone), 0);
    EXPECT_EQ(m.calls, 1);
    machine_fini(&m);
}

// --- after a reset of the board --------------------------------------------------------------------------------------

// Position in the log of the last access of that kind to BAR 0, plus 1; 0: there is none.
static unsigned last_access(const struct machine *machine, enum access access)
{
    unsigned last = 0;
    for (unsigned i = 0; i < machine->log_count; i++) {
        bool fits = machine->log[i].access == access && machine->log[i].bar == BACKEND_BAR_REGISTERS;
        last = fits ? i + 1 : last;
    }
    return last;
}

// Posted writes are in force when a read behind them has been answered.
TEST(DriverRestore, ReturnsWhenTheRoutesAreInForce)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    machine_register_set(&m, 0x138, 0, 4); // the route to E, as after a reset
    m.log_count = 0;
    EXPECT_EQ(peach2_restore(handle), 0);
    EXPECT_EQ(machine_register(&m, 0x138, 4), 1);
    EXPECT_GT(last_access(&m, ACCESS_WRITE), 0);
    EXPECT_GT(last_access(&m, ACCESS_READ), last_access(&m, ACCESS_WRITE));
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverRestore, FailsWhileTheBoardDoesNotAnswer)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    m.silent = true;
    EXPECT_EQ(peach2_restore(handle), -ENXIO);
    m.silent = false;
    EXPECT_EQ(peach2_restore(handle), 0);
    peach2_close(handle);
    machine_fini(&m);
}

// A program that is abandoned destroys no objects.
TEST(DriverClose, ReleasesReadersThatStillExist)
{
    const struct peach2_proxy_address address = {.ring = 0x1000, .node = 2};
    peach2_reader_t *readers[3];
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(peach2_reader_create(handle, &address, &readers[i]), 0);
    }
    EXPECT_EQ(m.pinned_live, 3);
    peach2_reader_destroy(readers[1]);
    EXPECT_EQ(m.pinned_live, 2);
    peach2_close(handle);
    EXPECT_EQ(m.pinned_live, 0);
    machine_fini(&m);
}
