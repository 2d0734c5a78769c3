// Copies between ranks, in every direction.
#include <string.h>

#include "crew.h"

static void put_and_get(struct crew_rank *rank)
{
    uint64_t *own = crew_own(0);
    own[0] = 100u + (unsigned)acp_rank();
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number == 0) {
        acp_complete(acp_copy(crew_at(1, 8), crew_at(0, 0), 8, ACP_HANDLE_NULL));
        acp_complete(acp_copy(crew_at(0, 8), crew_at(1, 0), 8, ACP_HANDLE_NULL));
        EXPECT_EQ(own[1], 101u);
    }
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number == 1) {
        EXPECT_EQ(own[1], 100u);
    }
}

TEST(AcpCopy, PutsAndGetsStarterMemory)
{
    crew_do(CREW_IBSIM0, 2, put_and_get, NULL);
}

TEST(AcpCopy, PutsAndGetsStarterMemoryOnBoards)
{
    crew_do(CREW_TCA0, 2, put_and_get, NULL);
}
