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
