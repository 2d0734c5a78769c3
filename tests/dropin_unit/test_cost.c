// Costs that a program declares (verbs-shim/dropin/tcasim.h).
#include "doubles.h"
#include "tests/shim/test.h"
#include "verbs-shim/dropin/tcasim.h"

TEST(DropinCost, IsTheTimeThatTheProgramDeclares)
{
    doubles_reset();
    tcasim_cost_ns(3);
    EXPECT_EQ(doubles.spent_ps, 3000);
}

TEST(DropinCost, BeyondTheClockIsAsLongAsTheClockHolds)
{
    doubles_reset();
    tcasim_cost_ns(UINT64_MAX / 1000 + 1);
    EXPECT_EQ(doubles.spent_ps, UINT64_MAX);
}

TEST(DropinCost, IsOfSimulatedTimeOnlyWhereTimeIsSimulated)
{
    doubles_reset();
    EXPECT_EQ(tcasim_simulated(), 1);
    doubles.mode = ATTACH_FUNCTIONAL;
    EXPECT_EQ(tcasim_simulated(), 0);
    doubles.mode = ATTACH_NONE;
    EXPECT_EQ(tcasim_simulated(), 0);
}
