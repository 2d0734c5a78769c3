// Objects of a process in kernel drivers that end while somebody uses them (sim/attach/objects.h).
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/attach_fixture.h"

static void expect_printed(const char *what, const char *how, const char *expected)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 0, "objects", what, how, NULL);
    attach_fixture_run(&fixture);
    EXPECT_STREQ(fixture.result.text, "");
    EXPECT_EQ(fixture.result.statuses[0], 0);
    char *text = attach_fixture_output(&fixture, 0);
    EXPECT_STREQ(text, expected);
    free(text);
    attach_fixture_fini(&fixture);
}

TEST(AttachedObjects, AQueueThatEndsIsFoundByNobodyElse)
{
    char expected[32];
    snprintf(expected, sizeof expected, "%d 0 %d\n", -EINVAL, -EINVAL);
    expect_printed("queue", "destroy", expected);
}

TEST(AttachedObjects, AQueueEndsAfterTheThreadsThatWaitForIt)
{
    char expected[32];
    snprintf(expected, sizeof expected, "0 0 %d\n", -EINVAL);
    expect_printed("queue", "wait", expected);
}

TEST(AttachedObjects, AQueueThatEndsIsPolledByNobodyElse)
{
    char expected[32];
    snprintf(expected, sizeof expected, "%d 0 %d\n", -EINVAL, -EINVAL);
    expect_printed("queue", "poll", expected);
}

TEST(AttachedObjects, MemoryThatIsFreedUnderARegionIsGivenToNobodyBeforeTheRegionEnds)
{
    char expected[32];
    snprintf(expected, sizeof expected, "0 %d 0 1\n", -EFAULT);
    expect_printed("memory", NULL, expected);
}

TEST(AttachedObjects, MemoryThatIsFreedUnderAnEventQueueIsGivenToNobodyBeforeTheQueueEnds)
{
    char expected[32];
    snprintf(expected, sizeof expected, "0 %d 0 1\n", -EFAULT);
    expect_printed("ring", NULL, expected);
}

TEST(AttachedObjects, AWaitForAWordOfARegionEndsWithTheRegion)
{
    char expected[32];
    snprintf(expected, sizeof expected, "0 %d\n", -EFAULT);
    expect_printed("word", NULL, expected);
}

TEST(AttachedObjects, WhoSubmitsMoreThanAGpuQueueHoldsWaits)
{
    expect_printed("rows", NULL, "1 0\n");
}

TEST(AttachedObjects, AKernelComputesInTheMemoryOfItsGpu)
{
    expect_printed("kernel", NULL, "10 11 ");
}
