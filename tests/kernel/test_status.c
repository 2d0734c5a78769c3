// Texts of status codes.
#include "sim/kernel/status.h"

#include <string.h>

#include "tests/shim/test.h"

TEST(Status, HasATextOfItsOwnForEveryCode)
{
    for (int a = SIM_OK; a <= SIM_ERR_UNSUPPORTED; a++) {
        EXPECT_STRNE(sim_status_text((enum sim_status)a), "unknown status");
        for (int b = a + 1; b <= SIM_ERR_UNSUPPORTED; b++) {
            EXPECT_STRNE(sim_status_text((enum sim_status)a), sim_status_text((enum sim_status)b));
        }
    }
    EXPECT_STREQ(sim_status_text(SIM_ERR_BUSY), "in use");
}
