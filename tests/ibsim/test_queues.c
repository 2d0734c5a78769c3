// Contexts of ibsim0; tests/conformance tests queues, channels and limits.
#include "fixture.h"

static void leave_open(struct fixture_side *side)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    EXPECT_NOT_NULL(ibv_create_cq(context, 8, NULL, NULL, 0));
    EXPECT_NOT_NULL(ibv_alloc_pd(context));
    EXPECT_EQ(ibv_close_device(context), 0);
    (void)side;
}

TEST(IbsimQueues, ClosingADeviceEndsWhatWasLeftOnIt)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, leave_open, NULL);
    fixture_end(fixture);
}
