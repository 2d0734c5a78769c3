// Who a process is, and calls that a process can make last (sim/attach/reach.h, aside.h).
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "sim/attach/internal.h"
#include "sim/attach/startup.h"
#include "tests/shim/test.h"

// --- identity --------------------------------------------------------------------------------------------------------

// A connection of a child, which then ends or waits. The caller closes it, and ends the child.
static int connection_of_child(bool ends, pid_t *child_out)
{
    const struct sockaddr_un any = {.sun_family = AF_UNIX}; // the kernel chooses an abstract name
    struct sockaddr_un name = {0};
    socklen_t size = sizeof name;
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(listener, (const struct sockaddr *)&any, sizeof any.sun_family), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, (struct sockaddr *)&name, &size), 0);
    *child_out = fork();
    if (*child_out == 0) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        int status = connect(fd, (const struct sockaddr *)&name, size) == 0 ? 0 : 1;
        if (!ends) {
            (void)pause();
        }
        _exit(status);
    }
    if (ends) {
        EXPECT_EQ(waitpid(*child_out, NULL, 0), *child_out); // its number may belong to anybody now
    }
    int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    EXPECT_GE(connection, 0);
    close(listener);
    return connection;
}

TEST(Reach, AProcessThatHasEndedSinceItConnectedIsNotTaken)
{
    pid_t child;
    struct attach_reach reach;
    int connection = connection_of_child(true, &child);
    EXPECT_FALSE(attach_reach_take(connection, &reach));
    close(connection);
}

TEST(Reach, AProcessIsTakenAndLivesUntilItEnds)
{
    const struct timespec later = {.tv_nsec = 50000000};
    pid_t child;
    struct attach_reach reach, again;
    int connection = connection_of_child(false, &child);
    ASSERT_TRUE(attach_reach_take(connection, &reach));
    EXPECT_EQ(reach.pid, child);
    EXPECT_NE(reach.started, 0);
    EXPECT_TRUE(attach_reach_lives(&reach));
    again = (struct attach_reach){.pid = child};
    attach_reach_note(&again);
    EXPECT_TRUE(attach_reach_same(&reach, &again));
    again.started++; // another process with that number
    EXPECT_FALSE(attach_reach_same(&reach, &again));
    (void)kill(child, SIGKILL);
    EXPECT_EQ(waitpid(child, NULL, 0), child);
    (void)nanosleep(&later, NULL); // the kernel is asked once in some milliseconds
    EXPECT_FALSE(attach_reach_lives(&reach));
    close(reach.pidfd);
    close(connection);
}

TEST(Reach, MemoryOfAProcessThatHasEndedIsNeitherReadNorWritten)
{
    pid_t child;
    struct attach_server server = {0};
    struct attach_process process = {.server = &server};
    uint64_t word = 1, copy = 2; // at the same address in the child
    const struct iovec own = {&copy, sizeof copy}, piece = {&word, sizeof word};
    int connection = connection_of_child(false, &child);
    ASSERT_TRUE(attach_reach_take(connection, &process.reach));
    EXPECT_EQ(attach_reach_read(&process, &own, &piece, 1), (ssize_t)sizeof word);
    EXPECT_EQ(copy, 1);
    process.reach.gone = true; // the number belongs to somebody else
    copy = 3;
    EXPECT_EQ(attach_reach_read(&process, &own, &piece, 1), -1);
    EXPECT_EQ(attach_reach_write(&process, &own, 1, &piece, 1), -1);
    EXPECT_EQ(copy, 3);
    (void)kill(child, SIGKILL);
    EXPECT_EQ(waitpid(child, NULL, 0), child);
    close(process.reach.pidfd);
    close(connection);
}

// --- the watch -------------------------------------------------------------------------------------------------------

// Calls of a process that last so long each, one after another; 0: one that returns when the process has ended.
static void expect_killed(unsigned each_ms)
{
    const struct attach_run_options options = {.wall_limit_ms = 300};
    const struct timespec call = {.tv_nsec = (long)each_ms * 1000000};
    struct attach_run_result result = {0};
    struct attach_server server = {.options = &options, .result = &result, .real_percent = 10};
    struct attach_process process = {.server = &server, .name = "slow"};
    pid_t child, ended = 0;
    int status;
    int connection = connection_of_child(false, &child);
    ASSERT_TRUE(attach_reach_take(connection, &process.reach));
    ASSERT_TRUE(attach_watchdog_start(&server));
    while (ended == 0) {
        attach_reach_begin(&process);
        (void)nanosleep(&call, NULL);
        ended = waitpid(child, &status, each_ms == 0 ? 0 : WNOHANG);
        attach_reach_end(&process);
    }
    attach_watchdog_stop(&server);
    EXPECT_EQ(ended, child);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    EXPECT_EQ(result.outside, ATTACH_RUN_OUTSIDE_CLOCK);
    close(process.reach.pidfd);
    close(connection);
}

TEST(Reach, AProcessThatKeepsTheSimulatorInACallIsKilled)
{
    expect_killed(0);
}

TEST(Reach, AProcessThatKeepsTheSimulatorInOneCallAfterAnotherIsKilled)
{
    expect_killed(100);
}

// --- aside -----------------------------------------------------------------------------------------------------------

static void answer(void *ctx, char *text, size_t room)
{
    snprintf(text, room, "%s", (const char *)ctx);
}

static void fall(void *ctx, char *text, size_t room)
{
    snprintf(text, room, "%s", (const char *)ctx);
    (void)raise(SIGSEGV);
}

TEST(Aside, ReturnsTheTextAndNothingOfWorkThatFalls)
{
    char text[16];
    EXPECT_TRUE(attach_aside(answer, "main", text, sizeof text));
    EXPECT_STREQ(text, "main");
    EXPECT_FALSE(attach_aside(fall, "main", text, sizeof text));
    EXPECT_STREQ(text, "");
}

static void counter_read(void *ctx, char *text, size_t room)
{
    snprintf(text, room, "%s", __rdtsc() != 0 ? (const char *)ctx : "");
}

static void *counter_read_by_thread(void *arg)
{
    *(bool *)arg = __rdtsc() != 0;
    return NULL;
}

// The C library's clock reads the counter on most machines, and what works aside has no handler of its own.
TEST(Aside, MayReadTheCounterWhileTheSimulatorMayNot)
{
    char text[16];
    pthread_t thread;
    bool has_read = false;
    attach_timestamps_begin();
    EXPECT_TRUE(attach_aside(counter_read, "read", text, sizeof text));
    EXPECT_TRUE(attach_aside_thread(&thread, counter_read_by_thread, &has_read));
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    int counter = 0;
    (void)prctl(PR_GET_TSC, &counter);
    attach_timestamps_end();
    EXPECT_STREQ(text, "read");
    EXPECT_TRUE(has_read);
    EXPECT_EQ(counter, PR_TSC_SIGSEGV);
}

#ifndef __SANITIZE_ADDRESS__ // its allocator ends the work instead

// More memory than it may have.
static void grow(void *ctx, char *text, size_t room)
{
    void *memory = malloc((size_t)16 << 30);
    snprintf(text, room, "%s", memory == NULL ? (const char *)ctx : "");
    free(memory);
}

TEST(Aside, LimitsTheMemoryOfItsWork)
{
    char text[16];
    EXPECT_TRUE(attach_aside(grow, "refused", text, sizeof text));
    EXPECT_STREQ(text, "refused");
}

#endif
