// Redirection of paths of an attached program.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doubles.h"
#include "tests/shim/test.h"

static char buffer[WORLD_PATH_BYTES];

static const char *path_of(const char *path)
{
    return world_path(path, buffer);
}

static void node_set(void)
{
    doubles_reset();
    setenv("TCASIM_SYSFS", "/tmp/tcasim-Ab12cd/node0", 1);
}

TEST(WorldPaths, OfDevicesAndOfTheMachinesIdentityAreThoseOfTheNode)
{
    node_set();
    EXPECT_STREQ(path_of("/sys/class/infiniband/ibsim0/ports/1/rate"),
                 "/tmp/tcasim-Ab12cd/node0/sys/class/infiniband/ibsim0/ports/1/rate");
    EXPECT_STREQ(path_of("/sys/class/infiniband_verbs"), "/tmp/tcasim-Ab12cd/node0/sys/class/infiniband_verbs");
    EXPECT_STREQ(path_of("/dev/infiniband/uverbs0"), "/tmp/tcasim-Ab12cd/node0/dev/infiniband/uverbs0");
    EXPECT_STREQ(path_of("/etc/machine-id"), "/tmp/tcasim-Ab12cd/node0/etc/machine-id");
}

TEST(WorldPaths, OfPortsAreWrittenAnewFirst)
{
    node_set();
    (void)path_of("/sys/class/infiniband/ibsim0/ports/1/counters/port_xmit_data");
    EXPECT_EQ(doubles.port_files, 1u);
    (void)path_of("/sys/class/infiniband/ibsim0/node_guid");
    (void)path_of("/sys/class/net/eth0/ports/1");
    EXPECT_EQ(doubles.port_files, 1u);
}

TEST(WorldPaths, AboutTheMachineAreThoseOfTheNode)
{
    static const char *const paths[] = {"/sys",         "/sys/devices/system/cpu/online", "/proc/cpuinfo",
                                        "/proc/net/dev", "/proc/sys/kernel/osrelease",     "/etc/hosts",
                                        "/dev/dri/card0", "/dev/nvidia0",                   "/proc/sys/kernel/random/boot_id"};
    char expected[WORLD_PATH_BYTES];
    node_set();
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        snprintf(expected, sizeof expected, "/tmp/tcasim-Ab12cd/node0%s", paths[i]);
        EXPECT_STREQ(path_of(paths[i]), expected);
    }
}

TEST(WorldPaths, OfDevicesThatNoNodeHasAreTold)
{
    node_set();
    (void)path_of("/dev/infiniband/uverbs0");
    EXPECT_EQ(doubles.told, 0);
    (void)path_of("/dev/dri/card0");
    (void)path_of("/dev/nvidiactl");
    EXPECT_EQ(doubles.told, 2);
}

TEST(WorldPaths, OfControlGroupsAndMountsOfAnyProcessAreThoseOfTheNode)
{
    node_set();
    EXPECT_STREQ(path_of("/proc/self/cgroup"), "/tmp/tcasim-Ab12cd/node0/proc/self/cgroup");
    EXPECT_STREQ(path_of("/proc/1/mounts"), "/tmp/tcasim-Ab12cd/node0/proc/self/mounts");
}

TEST(WorldPaths, OfEverythingElseStay)
{
    node_set();
    static const char *const paths[] = {"/etc/hostsx",      "/etc/machine-id2", "sys/class/infiniband",
                                        "/dev/shm",         "/dev/shm/",        "",
                                        "/proc",            "/proc/1/status",   "/proc/self/maps",
                                        "/system",          "/dev/null",        "/dev/urandom"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        EXPECT_EQ(path_of(paths[i]), paths[i]);
    }
    EXPECT_NULL(path_of(NULL));
}

// Another folder than "/", whose name is then not part of the path.
TEST(WorldPaths, ThatAreRelativeToTheRootOrToProcAreThoseOfTheNode)
{
    node_set();
    int root = open("/", O_RDONLY | O_DIRECTORY), proc = open("/proc", O_RDONLY | O_DIRECTORY),
        usr = open("/usr", O_RDONLY | O_DIRECTORY);
    EXPECT_STREQ(world_path_at(root, "sys/block", buffer), "/tmp/tcasim-Ab12cd/node0/sys/block");
    EXPECT_STREQ(world_path_at(proc, "cpuinfo", buffer), "/tmp/tcasim-Ab12cd/node0/proc/cpuinfo");
    EXPECT_STREQ(world_path_at(usr, "sys/block", buffer), "sys/block");
    EXPECT_STREQ(world_path_at(root, "usr/lib", buffer), "usr/lib");
    (void)close(root);
    (void)close(proc);
    (void)close(usr);
}

TEST(WorldPaths, OfSharedMemoryCarryTheNamesOfRunAndNode)
{
    node_set();
    EXPECT_STREQ(path_of("/dev/shm/vader"), "/dev/shm/tcasim-Ab12cd.node0.vader");
    EXPECT_STREQ(path_of("/dev/shm/folder/file"), "/dev/shm/tcasim-Ab12cd.node0.folder/file");
    EXPECT_STREQ(world_shared_name("/vader", buffer), "/tcasim-Ab12cd.node0.vader");
    EXPECT_STREQ(world_shared_name("vader", buffer), "/tcasim-Ab12cd.node0.vader");
    EXPECT_STREQ(world_shared_name("/", buffer), "/");
    EXPECT_NULL(world_shared_name(NULL, buffer));
}

// realpath shows programs where the files are.
TEST(WorldPaths, OfTheNodesOwnFilesInMemoryStay)
{
    static const char path[] = "/dev/shm/tcasim-Ab12cd.nodes/node0/sys/devices/system/cpu";
    node_set();
    EXPECT_EQ(path_of(path), path);
    EXPECT_STREQ(path_of("/dev/shm/tcasim-Ab12cd.other"), "/dev/shm/tcasim-Ab12cd.node0.tcasim-Ab12cd.other");
}

TEST(WorldPaths, OfProcessesOfTheRunAreThoseOfTheMachine)
{
    char path[64], expected[64];
    node_set();
    snprintf(path, sizeof path, "/proc/%u/maps", DOUBLE_OWN_ID);
    snprintf(expected, sizeof expected, "/proc/%d/maps", (int)getpid());
    EXPECT_STREQ(path_of(path), expected);
    snprintf(path, sizeof path, "/proc/%u", DOUBLE_OTHER_ID);
    EXPECT_STREQ(path_of(path), "/proc/4321");
    snprintf(path, sizeof path, "/proc/%ux/maps", DOUBLE_OWN_ID); // not a number
    EXPECT_STREQ(path_of(path), path);
    EXPECT_STREQ(path_of("/proc/99999999999999999999/maps"), "/proc/99999999999999999999/maps");
}

TEST(WorldPaths, ThatWouldBecomeTooLongStay)
{
    static char path[2 * WORLD_PATH_BYTES];
    node_set();
    memset(path, 'x', sizeof path - 1);
    memcpy(path, "/dev/shm/", 9);
    EXPECT_EQ(path_of(path), path);
    memcpy(path, "/dev/infiniband/", 16);
    EXPECT_EQ(path_of(path), path);
}

TEST(WorldPaths, StayWhereTheSimulatorHasMadeNoFolder)
{
    doubles_reset();
    unsetenv("TCASIM_SYSFS");
    EXPECT_STREQ(path_of("/dev/infiniband/uverbs0"), "/dev/infiniband/uverbs0");
    EXPECT_STREQ(path_of("/dev/shm/vader"), "/dev/shm/vader");
    EXPECT_STREQ(world_shared_name("/vader", buffer), "/vader");
}
