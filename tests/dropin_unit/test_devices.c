// The devices of a node, in the order in which a program lists them.
#include "doubles.h"
#include "tests/shim/test.h"
#include "verbs-shim/dropin/dropin.h"

struct hca_command;

static int hca_command(void *ctx, struct hca_command *command)
{
    (void)ctx, (void)command;
    return 0;
}

static void add(bool board, bool hca)
{
    static int any_board;
    const struct backend_ops ops = {.hca_command = hca ? hca_command : NULL};
    struct backend_process process = {.backend = {.ops = &ops},
                                      .board = board ? (struct peach2_board_handle *)(void *)&any_board : NULL};
    doubles_reset();
    dropin_devices_add(&process, 0, 0);
}

TEST(DropinDevices, AreTheBoardAndThenTheHca)
{
    add(true, true);
    ASSERT_EQ(doubles.device_count, 2);
    EXPECT_STREQ(doubles.devices[0], "tca0");
    EXPECT_STREQ(doubles.devices[1], "ibsim0");
}

TEST(DropinDevices, AreThoseThatTheNodeHas)
{
    add(true, false);
    ASSERT_EQ(doubles.device_count, 1);
    EXPECT_STREQ(doubles.devices[0], "tca0");
    add(false, true);
    ASSERT_EQ(doubles.device_count, 1);
    EXPECT_STREQ(doubles.devices[0], "ibsim0");
    add(false, false);
    EXPECT_EQ(doubles.device_count, 0);
}
