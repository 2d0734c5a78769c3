// The periods of the boards' clocks.
#include "sim/platform/internal.h"
#include "tests/shim/test.h"

// A clock has two equal halves of whole picoseconds, so that its period is even.
TEST(Clocks, HaveTheNearestPeriodThatIsAnEvenNumberOfPicoseconds)
{
    for (uint32_t mhz = 50; mhz <= 500; mhz++) {
        TEST_TRACE("%u MHz", mhz);
        int64_t period_ps = (int64_t)plat_clock_period_ps(mhz);
        EXPECT_EQ(period_ps % 2, 0);
        EXPECT_BETWEEN(period_ps * mhz - 1000000, -(int64_t)mhz, mhz); // at most 1 ps
    }
    EXPECT_EQ(plat_clock_period_ps(250), 4000);
    EXPECT_EQ(plat_clock_period_ps(300), 3334); // of 3333.3
}
