// Numbers of processes: the machine's to the run's, and the reverse.
#include <sys/syscall.h>
#include <unistd.h>

#include "doubles.h"
#include "tests/shim/test.h"

TEST(WorldIds, OfTheCallingProcessAndThreadAreKnownWithoutAsking)
{
    doubles_reset();
    EXPECT_EQ(world_id_real((pid_t)DOUBLE_OWN_ID), getpid());
    EXPECT_EQ(world_id_real((pid_t)DOUBLE_OWN_TID), syscall(SYS_gettid));
    EXPECT_EQ(world_id_of(getpid()), DOUBLE_OWN_ID);
    EXPECT_EQ(doubles.asked, 0);
}

TEST(WorldIds, OfOtherProcessesOfTheRunAreAskedFor)
{
    doubles_reset();
    EXPECT_EQ(world_id_real((pid_t)DOUBLE_OTHER_ID), DOUBLE_OTHER_REAL);
    EXPECT_EQ(world_id_of(DOUBLE_OTHER_REAL), DOUBLE_OTHER_ID);
    EXPECT_EQ(doubles.asked, 2);
}

TEST(WorldIds, TheLowestOneOfTheRunIsTheSimulators)
{
    doubles_reset();
    EXPECT_EQ(world_id_real((pid_t)ATTACH_ID_BASE), DOUBLE_SIMULATOR_REAL);
    EXPECT_EQ((uint64_t)world_id_real_signed(-(pid_t)ATTACH_ID_BASE), (uint64_t)-DOUBLE_SIMULATOR_REAL);
    EXPECT_EQ(world_id_of(DOUBLE_SIMULATOR_REAL), ATTACH_ID_BASE);
}

TEST(WorldIds, OfProcessesOutsideOfTheRunStay)
{
    doubles_reset();
    EXPECT_EQ(world_id_real(1), 1);
    EXPECT_EQ(doubles.asked, 0);
    EXPECT_EQ(world_id_of(99), 99);
    EXPECT_EQ(world_id_real((pid_t)ATTACH_ID_BASE + 500), ATTACH_ID_BASE + 500); // the kernel refuses it
    EXPECT_EQ(world_id_of(0), 0);
    EXPECT_EQ(world_id_of(-1), (uint64_t)-1); // an error
}

TEST(WorldIds, OfAGroupAreNegative)
{
    doubles_reset();
    EXPECT_EQ((uint64_t)world_id_real_signed(-(pid_t)DOUBLE_OWN_ID), (uint64_t)-getpid());
    EXPECT_EQ((uint64_t)world_id_real_signed(-1), (uint64_t)-1); // all processes
    EXPECT_EQ(world_id_real_signed((pid_t)DOUBLE_OWN_ID), getpid());
}

TEST(WorldIds, AreThoseOfTheMachineWhereTheProcessIsNotTimed)
{
    doubles_reset();
    doubles.timed = false;
    EXPECT_EQ(world_id_real((pid_t)DOUBLE_OWN_ID), DOUBLE_OWN_ID);
    EXPECT_EQ(world_id_of(getpid()), getpid());
}

TEST(WorldIds, OfChildrenAreKnownUntilTheMachineGivesTheirNumberAgain)
{
    doubles_reset();
    world_id_known((pid_t)ATTACH_ID_BASE + 20, 3000);
    world_id_known((pid_t)ATTACH_ID_BASE + 21, 3001);
    EXPECT_EQ(world_id_real((pid_t)ATTACH_ID_BASE + 20), 3000);
    EXPECT_EQ(world_id_of(3001), ATTACH_ID_BASE + 21);
    EXPECT_EQ(doubles.asked, 0);
    world_id_known((pid_t)ATTACH_ID_BASE + 22, 3000);
    EXPECT_EQ(world_id_of(3000), ATTACH_ID_BASE + 22);
    EXPECT_EQ(doubles.asked, 0);
    (void)world_id_real((pid_t)ATTACH_ID_BASE + 20); // forgotten
    EXPECT_EQ(doubles.asked, 1);
}

// The table keeps the numbers of the newest children; others are queried from the simulator.
TEST(WorldIds, OfManyChildrenStayRight)
{
    doubles_reset();
    for (pid_t i = 0; i < 1000; i++) {
        world_id_known((pid_t)ATTACH_ID_BASE + 1000 + i, 5000 + i);
    }
    EXPECT_EQ(world_id_of(5999), ATTACH_ID_BASE + 1999);
    EXPECT_EQ(world_id_of(5950), ATTACH_ID_BASE + 1950);
    EXPECT_EQ(doubles.asked, 0);
    (void)world_id_of(5000);
    EXPECT_EQ(doubles.asked, 1);
}
