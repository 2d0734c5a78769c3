// Programs that do not know the simulator: what they see of time, of each other and of their children.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unistd.h>

#include "tests/support/attach_fixture.h"

#define WORLD TCASIM_BINARY_DIR "/world/world_"

static void set_up(struct attach_fixture *fixture)
{
    attach_fixture_init(fixture);
    fixture->options.library_directory = TCASIM_BINARY_DIR "/lib";
}

// Runs the programs of the fixture; every program must end with 0.
static void play(struct attach_fixture *fixture)
{
    attach_fixture_run(fixture);
    EXPECT_STREQ(fixture->result.text, "");
    EXPECT_EQ(fixture->result.outcome, SIM_RUN_DONE);
    for (uint32_t i = 0; i < fixture->count; i++) {
        EXPECT_EQ(fixture->result.statuses[i], 0);
    }
}

// A process outside of the run: waits until a program has opened the fifo, and writes to it some time later.
static pid_t outsider_start(const char *fifo)
{
    pid_t outsider = fork();
    if (outsider == 0) {
        int fd = open(fifo, O_WRONLY);
        (void)usleep(200000);
        _exit(write(fd, "hi", 2) == 2 ? 0 : 1);
    }
    return outsider;
}

// A run with one more program, a cat that reads what the process outside writes.
static void play_with_outsider(struct attach_fixture *fixture)
{
    char fifo[64];
    snprintf(fifo, sizeof fifo, "/tmp/tcasim-test-%d-fifo", (int)getpid());
    EXPECT_EQ(mkfifo(fifo, 0600), 0);
    uint32_t cat = fixture->count;
    attach_fixture_add(fixture, 0, "/bin/cat", NULL);
    fixture->programs[cat].stdin_path = fifo;
    pid_t outsider = outsider_start(fifo);
    attach_fixture_run(fixture);
    EXPECT_EQ(fixture->result.statuses[cat], 0);
    (void)waitpid(outsider, NULL, 0); // unless the run has reaped it with its own children
    (void)unlink(fifo);
}

TEST(World, ARunThatWaitsForSomebodyElseSaysSo)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    play_with_outsider(&fixture);
    EXPECT_STREQ(fixture.result.text, "");
    EXPECT_EQ(fixture.result.outcome, SIM_RUN_DONE);
    EXPECT_EQ(fixture.result.outside, ATTACH_RUN_OUTSIDE_EVENT);
    attach_fixture_fini(&fixture);
}

// mpirun reads the output of its ranks from terminals that it has created: no one else writes there.
TEST(World, ATerminalOfTheRunIsNotTheUsers)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    attach_fixture_add(&fixture, 0, "/usr/bin/perl", "-e", "open(P, '+<', '/dev/ptmx') or die; sysread(P, $_, 1)",
                       NULL);
    attach_fixture_run_before_limit(&fixture);
    EXPECT_EQ(fixture.result.outcome, SIM_RUN_STUCK);
    EXPECT_EQ(fixture.result.outside, 0);
    attach_fixture_fini(&fixture);
}

// While a program polls, no thread waits for the real world, and simulated time advances as fast as it can.
TEST(World, APollerKeepsNobodyFromWhatComesFromOutside)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    fixture.options.wall_limit_ms = 5000; // the other process's byte comes long before this
    attach_fixture_add(&fixture, 1, "/usr/bin/perl", "-e",
                       "alarm 100000000; 1 while select(undef, undef, undef, 0) == 0", NULL);
    play_with_outsider(&fixture);
    attach_fixture_fini(&fixture);
}

// The number after a line's first word; the first such line after *text.
static long number_of(const char **text, const char *word)
{
    char line[64];
    snprintf(line, sizeof line, "%s ", word);
    const char *at = strstr(*text, line);
    EXPECT_NOT_NULL(at);
    *text = at != NULL ? at + strlen(line) : *text;
    return at != NULL ? strtol(*text, NULL, 10) : -1;
}

static char *output_alone(const char *program)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    attach_fixture_add(&fixture, 0, program, NULL);
    play(&fixture);
    EXPECT_EQ(fixture.result.outside, 0);
    char *text = attach_fixture_output(&fixture, 0);
    attach_fixture_fini(&fixture);
    return text;
}

TEST(World, SleepsAndTimersTakeTheSimulatedTimeTheyAskFor)
{
    char *text = output_alone(WORLD "clocks");
    const char *at = text;
    EXPECT_EQ(number_of(&at, "nanosleep"), 2000000);
    EXPECT_EQ(number_of(&at, "usleep"), 1500);
    EXPECT_EQ(number_of(&at, "alarm"), 3000000);
    EXPECT_EQ(number_of(&at, "setitimer"), 700);
    EXPECT_EQ(number_of(&at, "timerfd"), 200);
    EXPECT_BETWEEN(number_of(&at, "timerfd"), 299, 300);
    EXPECT_EQ(number_of(&at, "alarms"), 2);
    free(text);
}

TEST(World, TheTimeStampCounterGoesAsTheClocks)
{
    char *text = output_alone(WORLD "clocks");
    const char *at = text;
    EXPECT_BETWEEN(number_of(&at, "cycles"), 2599, 2601); // a million a second
    EXPECT_BETWEEN(number_of(&at, "name"), 2595, 2605);
    EXPECT_BETWEEN(number_of(&at, "number"), 2595, 2605);
    EXPECT_BETWEEN(number_of(&at, "code"), 2595, 2605);
    EXPECT_EQ(number_of(&at, "time"), 0);
    free(text);
}

static uint64_t hash_of_reads(const char *times)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    attach_fixture_add(&fixture, 0, WORLD "reads", times, NULL);
    play(&fixture);
    uint64_t hash = fixture.result.hash;
    attach_fixture_fini(&fixture);
    return hash;
}

// Its list of stores is full after some hundreds.
TEST(World, TheHashDoesNotSayHowOftenAProgramReadsAndWritesAtATime)
{
    uint64_t once = hash_of_reads("1");
    EXPECT_EQ(hash_of_reads("2"), once);
    EXPECT_EQ(hash_of_reads("2000"), once);
}

// With breakpoints in the place of the instructions, as where neither they nor CPUID can be made to fault. Where CPUID can,
// it is the same without them.
TEST(World, CpuidIsTheNodesWhereTimeIsMeasuredByIt)
{
    ASSERT_EQ(setenv("TCASIM_TSC", "breakpoints", 1), 0);
    char *text = output_alone(WORLD "cpuid");
    (void)unsetenv("TCASIM_TSC");
    EXPECT_STREQ(text, "name Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz\nhypervisor 0\ninvariant 1\nfrequency 0\n"
                       "leaves 0\n");
    free(text);
}

TEST(World, ConstructorsOfLibrariesSeeTheSimulatedTimeStampCounter)
{
    char *text = output_alone(WORLD "early");
    const char *at = text;
    EXPECT_BETWEEN(number_of(&at, "later"), 0, 100);
    EXPECT_BETWEEN(number_of(&at, "loaded"), 0, 100);
    free(text);
}

// As on a machine whose processor cannot be told to fault.
TEST(World, TheTimeStampCounterIsSimulatedWhereItsInstructionsDoNotFault)
{
    ASSERT_EQ(setenv("TCASIM_TSC", "breakpoints", 1), 0);
    char *clocks = output_alone(WORLD "clocks"), *early = output_alone(WORLD "early");
    char *counter = output_alone(WORLD "counter");
    (void)unsetenv("TCASIM_TSC");
    const char *at = clocks;
    EXPECT_BETWEEN(number_of(&at, "cycles"), 2599, 2601);
    at = early;
    EXPECT_BETWEEN(number_of(&at, "later"), 0, 100);
    EXPECT_BETWEEN(number_of(&at, "loaded"), 0, 100);
    at = counter;
    long long step = number_of(&at, "step");
    EXPECT_GT(step, 0);
    EXPECT_EQ(number_of(&at, "step"), step);
    EXPECT_EQ(number_of(&at, "disturbed"), 0);
    free(clocks);
    free(early);
    free(counter);
}

TEST(World, TheTimeStampCounterIsReadByAJumpThatChangesNothingElse)
{
    char *text = output_alone(WORLD "counter");
    const char *at = text;
    long long step = number_of(&at, "step");
    EXPECT_GT(step, 0);
    EXPECT_EQ(number_of(&at, "step"), step);
    EXPECT_EQ(number_of(&at, "wrong"), 0);
    EXPECT_EQ(number_of(&at, "disturbed"), 0);
    EXPECT_EQ(number_of(&at, "opcode"), 0xe9);
    EXPECT_EQ(number_of(&at, "data"), 0x0f);
    free(text);
}

TEST(World, AProcessThatAProgramHasKilledIsGoneWhenTheCallReturns)
{
    char *text = output_alone(WORLD "killed");
    EXPECT_STREQ(text, "looks 1 after_ns 10 signal 9\n");
    free(text);
}

TEST(World, ATimerOfProcessorTimeIsNotedAsThatOfTheMachine)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    attach_fixture_add(&fixture, 0, WORLD "profiled", NULL);
    play(&fixture);
    EXPECT_EQ(fixture.result.outside, ATTACH_RUN_OUTSIDE_TIMER);
    attach_fixture_fini(&fixture);
}

TEST(World, ProgramsOnTwoNodesTalkOverTcpByHostName)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    fixture.options.together = false;
    attach_fixture_add(&fixture, 0, WORLD "talk", "listen", NULL);
    attach_fixture_add(&fixture, 1, WORLD "talk", "node0", NULL);
    play(&fixture);
    char *text = attach_fixture_output(&fixture, 1);
    const char *at = text;
    EXPECT_CONTAINS(text, "on node1");
    for (int i = 0; i < 10; i++) {
        EXPECT_BETWEEN(number_of(&at, "at"), 1000 * (2 * i + 1), 1000 * (2 * i + 1) + 30);
    }
    free(text);
    attach_fixture_fini(&fixture);
}

TEST(World, WhatIsSentOverTcpDoesNotWaitForAcknowledgementsOfRealTime)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    fixture.options.together = false;
    attach_fixture_add(&fixture, 0, WORLD "talk", "listen", NULL);
    attach_fixture_add(&fixture, 1, WORLD "talk", "node0", NULL);
    play(&fixture);
    for (uint32_t i = 0; i < 2; i++) {
        char *text = attach_fixture_output(&fixture, i);
        EXPECT_CONTAINS(text, "pieces go straight away");
        free(text);
    }
    attach_fixture_fini(&fixture);
}

TEST(World, BytesReachTheOtherEndOfATerminalAtOnce)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    attach_fixture_add(&fixture, 0, WORLD "terminals", NULL);
    play(&fixture);
    attach_fixture_fini(&fixture);
}

TEST(World, ClosingWhatIsNotOpenIsNoNewsForAnybody)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    attach_fixture_add(&fixture, 0, WORLD "closes", NULL);
    play(&fixture);
    EXPECT_BETWEEN(fixture.result.calls, 1, 10); // with 512 notifications each
    attach_fixture_fini(&fixture);
}

TEST(World, ThreadsTakeTurnsOverAConditionVariable)
{
    char *text = output_alone(WORLD "threads");
    EXPECT_CONTAINS(text, "turns 20");
    const char *at = strstr(text, "turns");
    EXPECT_BETWEEN(number_of(&at, "in"), 2000, 2010);
    EXPECT_CONTAINS(text, "timeout 1");
    EXPECT_BETWEEN(number_of(&at, "in"), 5000000, 5000010);
    free(text);
}

static uint64_t hash_alone(const char *program, const char *argument)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    attach_fixture_add(&fixture, 0, program, argument, NULL);
    play(&fixture);
    uint64_t hash = fixture.result.hash;
    attach_fixture_fini(&fixture);
    return hash;
}

TEST(World, ThreadsEndAtTheSameTimesInEveryRun)
{
    EXPECT_EQ(hash_alone(WORLD "threads", "join"), hash_alone(WORLD "threads", "join"));
}

TEST(World, AThreadIsThereUntilItHasPaidForWhatItDid)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    attach_fixture_add(&fixture, 0, WORLD "threads", "end", NULL);
    play(&fixture); // the program ends well
    EXPECT_EQ(fixture.result.outside, 0);
    attach_fixture_fini(&fixture);
}

TEST(World, ChildrenAreWaitedForInSimulatedTime)
{
    char *text = output_alone(WORLD "family");
    EXPECT_CONTAINS(text, "told\nfork 7 at 300");
    EXPECT_CONTAINS(text, "exec 5 at 2003\n");
    EXPECT_CONTAINS(text, "system 3 at 3003\n");
    free(text);
}

TEST(World, WhoWaitsForTheEndOfAChildIsNotAskedForEachOfItsCalls)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    attach_fixture_add(&fixture, 0, WORLD "family", "alone", NULL);
    play(&fixture);
    EXPECT_BETWEEN(fixture.result.calls, 1, 1500);
    attach_fixture_fini(&fixture);
}

TEST(World, EveryWaitOfTheCLibraryIsInSimulatedTime)
{
    char *text = output_alone(WORLD "waits"), *again = output_alone(WORLD "waits");
    const char *at = text;
    EXPECT_EQ(number_of(&at, "threads"), 50 * 40);    // the slowest of four
    EXPECT_EQ(number_of(&at, "locks"), 50 * 40 + 50); // and 50 sleeps of a microsecond
    EXPECT_BETWEEN(number_of(&at, "processes"), 3105, 3106);
    EXPECT_BETWEEN(number_of(&at, "timeout"), 5003105, 5003106);
    EXPECT_CONTAINS(text, "hello");
    EXPECT_STREQ(text, again);
    free(text);
    free(again);
}

// However it waits, and however long, it sees the store as soon as its own loop would.
TEST(World, AStoreToSharedMemoryIsSeenWithinAnIterationOfWhoWaitsForIt)
{
    char *text = output_alone(WORLD "shared"), *again = output_alone(WORLD "shared");
    const char *at = text;
    EXPECT_BETWEEN(number_of(&at, "plainly"), 0, 100);
    EXPECT_BETWEEN(number_of(&at, "counting"), 0, 100);
    EXPECT_BETWEEN(number_of(&at, "clock"), 0, 100);
    EXPECT_BETWEEN(number_of(&at, "yielding"), 0, 200);
    EXPECT_BETWEEN(number_of(&at, "widely"), 0, 100);
    EXPECT_STREQ(text, again);
    free(text);
    free(again);
}

TEST(World, AffinityIsAThreadsOwnWord)
{
    free(output_alone(WORLD "affinity"));
}

TEST(World, WaitsThatCallTheKernelThemselvesAreSeen)
{
    char *latch = output_alone(WORLD "latch"), *openmp = output_alone(WORLD "openmp");
    EXPECT_STREQ(latch, "3\n");
    EXPECT_STREQ(openmp, "9990004\n");
    free(latch);
    free(openmp);
}

TEST(World, NumbersOfProcessesFitTogetherAndAreTheSameInEveryRun)
{
    char *first = output_alone(WORLD "numbers"), *second = output_alone(WORLD "numbers");
    EXPECT_CONTAINS(first, "process 4194305\n");
    EXPECT_CONTAINS(first, "child ");
    EXPECT_STREQ(first, second);
    free(first);
    free(second);
}

TEST(World, SystemCallsByNumberDoWhatTheFunctionsDo)
{
    char *text = output_alone(WORLD "bynumber");
    EXPECT_STREQ(text, "");
    free(text);
}

TEST(World, AProgramsHandlerOfTrapsSeesItsOwnAlone)
{
    free(output_alone(WORLD "trap"));
}

TEST(World, ASignalIsWaitedForInSimulatedTime)
{
    char *text = output_alone(WORLD "signals");
    const char *at = text;
    EXPECT_BETWEEN(number_of(&at, "suspended"), 400, 410);
    EXPECT_BETWEEN(number_of(&at, "child"), 2000, 2500);
    EXPECT_EQ(number_of(&at, "status"), -1);
    EXPECT_BETWEEN(number_of(&at, "limit"), 300, 310);
    free(text);
}

TEST(World, AHandlerThatBlocksEverySignalReadsTheTimeStampCounter)
{
    char *text = output_alone(WORLD "signals");
    const char *at = text;
    EXPECT_EQ(number_of(&at, "handled"), 2);
    free(text);
}

TEST(World, CodeThatAProgramMakesItselfIsLeftAsItIs)
{
    free(output_alone(WORLD "generated"));
}

TEST(World, CodeThatComesToThePlaceOfAPollingLoopIsNotTakenForIt)
{
    free(output_alone(WORLD "replaced"));
}

TEST(World, ThreadsThatHaveEndedLeaveNoTimerOfTheKernels)
{
    char *text = output_alone(WORLD "ended");
    const char *at = text;
    long before = number_of(&at, "before");
    EXPECT_EQ(number_of(&at, "after"), before);
    free(text);
}

static bool shared_memory_has(const char *run)
{
    bool has = false;
    DIR *shared = opendir("/dev/shm");
    for (struct dirent *entry = readdir(shared); entry != NULL; entry = readdir(shared)) {
        has = has || strstr(entry->d_name, run) != NULL;
    }
    closedir(shared);
    return has;
}

// On two nodes at once, so that each would find the other's.
TEST(World, SharedMemoryAndTemporaryFilesAreTheRunsAndGoWithIt)
{
    for (unsigned run = 0; run < 2; run++) {
        struct attach_fixture fixture;
        set_up(&fixture);
        attach_fixture_add(&fixture, 0, WORLD "scratch", "make", NULL);
        attach_fixture_add(&fixture, 1, WORLD "scratch", "make", NULL);
        attach_fixture_add(&fixture, 1, WORLD "scratch", "find", NULL);
        play(&fixture);
        char *path = attach_fixture_output(&fixture, 0);
        path[strcspn(path, "\n")] = '\0';
        EXPECT_EQ(access(path, F_OK), -1);
        char *name = strstr(path, "tcasim-");
        ASSERT_NOT_NULL(name);
        name[strcspn(name, "/")] = '\0';
        EXPECT_FALSE(shared_memory_has(name));
        free(path);
        attach_fixture_fini(&fixture);
    }
}

TEST(World, ObjectsOfOneKeyAreOtherOnesOnEachNode)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    attach_fixture_add(&fixture, 0, WORLD "keys", NULL);
    attach_fixture_add(&fixture, 1, WORLD "keys", NULL);
    play(&fixture);
    attach_fixture_fini(&fixture);
}

TEST(World, AProcessWaitsForItsFirstTurnAsLongAsItTakes)
{
    struct attach_fixture fixture;
    set_up(&fixture);
    fixture.options.wall_limit_ms = 10000;
    attach_fixture_add(&fixture, 0, WORLD "late", NULL);
    play(&fixture);
    attach_fixture_fini(&fixture);
}
