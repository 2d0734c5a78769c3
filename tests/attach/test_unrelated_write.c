// Loops that read more than their polls name.
#include <stdlib.h>

#include "tests/support/attach_fixture.h"

TEST(AttachedLoop, SeesAMessageThatItsLooksDoNotNameAndLooksOnceMoreWithoutWaiting)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 1, "unrelated_write", NULL);
    attach_fixture_add(&fixture, 0, "unrelated_write", NULL);
    attach_fixture_run(&fixture);
    EXPECT_STREQ(fixture.result.text, "");
    EXPECT_EQ(fixture.result.statuses[0], 0);
    char *text = attach_fixture_output(&fixture, 1);
    EXPECT_BETWEEN(atoi(text), 1500, 2200); // twice the latency of a PIO write, and some iterations
    free(text);
    attach_fixture_fini(&fixture);
}
