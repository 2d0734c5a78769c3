// `exec --explain` after the run.
#include "sim/cli/observing.h"

#include "tests/shim/test.h"

static const struct sim_work call = {"library", "calls", false};

// Ends `exec --explain` after one operation was shown.
static bool explained(bool inexact)
{
    static const struct cli_observing_options given = {.explain = ""};
    const struct breakdown_case of = {"send", "node0", 8, 1, 10};
    const struct sim_piece piece = {"node0.core", &call, 0, 10};
    struct cli_observing observing = {.given = &given, .explained = 1, .taken = true, .inexact = inexact};
    char error[256] = "";
    EXPECT_EQ(breakdown_create(&observing.breakdown), SIM_OK);
    EXPECT_EQ(breakdown_add(observing.breakdown, &of, &piece, 1, error, sizeof error), SIM_OK);
    return cli_observing_end(&observing, NULL);
}

TEST(Observing, FailsWherePiecesDoNotAddUp)
{
    EXPECT_TRUE(explained(false));
    EXPECT_FALSE(explained(true));
}
