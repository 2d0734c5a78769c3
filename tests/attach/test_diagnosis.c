// What a diagnosis tells about the other side, which the simulator asks while it waits.
#include <stdio.h>

#include "tests/support/attach_fixture.h"

static void line_keep(void *ctx, const char *line)
{
    snprintf(ctx, 1024, "%s", line);
}

TEST(AttachedDiagnosis, TellsHowManyRequestsTheOtherSidesQueuePairHasPosted)
{
    struct attach_fixture fixture;
    char said[1024] = "";
    attach_fixture_init(&fixture);
    fixture.options.diagnosis = line_keep;
    fixture.options.ctx = said;
    attach_fixture_add(&fixture, 0, "describe", NULL);
    attach_fixture_add(&fixture, 1, "describe", NULL);
    attach_fixture_run(&fixture);
    EXPECT_STREQ(fixture.result.text, "");
    EXPECT_EQ(fixture.result.statuses[0], 0);
    EXPECT_EQ(fixture.result.statuses[1], 0);
    EXPECT_CONTAINS(said, "receive queue of node1 qp 7 empty (5 posted");
    attach_fixture_fini(&fixture);
}
