// The ranks of tcaCreateHandleList are those of the program's MPI (verbs-shim/dropin/mpi_comm.c).
#include <string.h>

#include "doubles.h"
#include "tests/shim/test.h"
#include "verbs-shim/libtca/internal.h"

enum { RANKS = 4, BYTES = 8 };

TEST(DropinMpi, IsNotAskedForRanksBeforeItRuns)
{
    struct tcaComm comm;
    doubles_reset();
    doubles.ranks = RANKS;
    EXPECT_FALSE(tca_comm_of_environment(&comm));
    EXPECT_EQ(doubles.asked, 0); // MPI would end the program
    doubles.mpi_runs = true;
    doubles.rank = 2;
    ASSERT_TRUE(tca_comm_of_environment(&comm));
    EXPECT_EQ(comm.rank, 2);
    EXPECT_EQ(comm.ranks, RANKS);
}

// Of two ranks that contribute, each sends to all others; every rank receives from each of them.
TEST(DropinMpi, OnlyRanksThatContributeSend)
{
    enum { GIVERS = 2 };
    for (int rank = 0; rank < RANKS; rank++) {
        TEST_TRACE("rank %d", rank);
        unsigned char mine[BYTES], all[GIVERS * BYTES];
        doubles_reset();
        doubles.mpi_runs = true;
        doubles.rank = rank;
        doubles.ranks = RANKS;
        memset(mine, rank, sizeof mine);
        memset(all, 0xee, sizeof all);
        EXPECT_EQ(tca_gather_of_environment(mine, all, BYTES, GIVERS), 0);
        EXPECT_EQ(doubles.sent, rank < GIVERS ? RANKS - 1 : 0);
        EXPECT_EQ(doubles.received, rank < GIVERS ? GIVERS - 1 : GIVERS);
        for (unsigned i = 0; i < sizeof all; i++) {
            EXPECT_EQ(all[i], i / BYTES);
        }
    }
}
