// Processes and threads: how they start, wait for each other, and end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/attach_fixture.h"

#define KILLED (128 + 9)

static void expect_done(const struct attach_fixture *fixture)
{
    EXPECT_STREQ(fixture->result.text, "");
    EXPECT_EQ(fixture->result.outcome, SIM_RUN_DONE);
}

// Runs the same twice; both runs must print the same.
static void expect_same_twice(void (*add)(struct attach_fixture *fixture), unsigned program)
{
    uint64_t hash = 0;
    char *before = NULL;
    for (unsigned i = 0; i < 2; i++) {
        struct attach_fixture fixture;
        attach_fixture_init(&fixture);
        add(&fixture);
        attach_fixture_run(&fixture);
        expect_done(&fixture);
        EXPECT_EQ(fixture.result.statuses[program], 0);
        char *text = attach_fixture_output(&fixture, program);
        EXPECT_NE(text[0], '\0');
        if (i == 0) {
            before = text;
            hash = fixture.result.hash;
        } else {
            EXPECT_STREQ(text, before);
            EXPECT_EQ(fixture.result.hash, hash);
            free(text);
        }
        attach_fixture_fini(&fixture);
    }
    free(before);
}

TEST(AttachedLife, OutlivesAProgramThatIsKilledAtAnyMoment)
{
    for (unsigned i = 0; i < 12; i++) {
        struct attach_fixture fixture;
        char us[16];
        snprintf(us, sizeof us, "%u", 500 + i * i * 200);
        attach_fixture_init(&fixture);
        attach_fixture_add(&fixture, 0, "victim", us, NULL);
        attach_fixture_add(&fixture, 1, "pair", "3", NULL);
        attach_fixture_run(&fixture);
        expect_done(&fixture);
        EXPECT_EQ(fixture.result.statuses[0], KILLED);
        EXPECT_BETWEEN(fixture.result.statuses[1], 0, 1); // its waits have deadlines
        attach_fixture_fini(&fixture);
    }
}

static void family_add(struct attach_fixture *fixture)
{
    attach_fixture_add(fixture, 0, "family", "80", NULL);
}

// The HCA has 64 pages of doorbells, 64 protection domains and 256 queue pairs.
TEST(AttachedLife, TakesBackWhatAKilledProcessHadOfTheHca)
{
    expect_same_twice(family_add, 0);
}

// The number of lines in the file; 0: it cannot be read.
static uint64_t lines_of(const char *path)
{
    FILE *file = fopen(path, "r");
    uint64_t lines = 0;
    for (int c = file != NULL ? getc(file) : EOF; c != EOF; c = getc(file)) {
        lines += c == '\n';
    }
    if (file != NULL) {
        fclose(file);
    }
    return lines;
}

TEST(AttachedLife, EachCrossingIsALineOfTheFileThatIsAskedFor)
{
    char path[64];
    struct attach_fixture fixture;
    snprintf(path, sizeof path, "/tmp/tcasim-test-%d-attach calls", (int)getpid());
    attach_fixture_init(&fixture);
    fixture.options.ipc_trace = path;
    attach_fixture_add(&fixture, 0, "threads", NULL);
    attach_fixture_run(&fixture);
    expect_done(&fixture);
    EXPECT_GT(fixture.result.calls, 0);
    EXPECT_EQ(lines_of(path), fixture.result.calls);
    (void)unlink(path);
    attach_fixture_fini(&fixture);
}

static void threads_add(struct attach_fixture *fixture)
{
    attach_fixture_add(fixture, 0, "threads", NULL);
}

TEST(AttachedLife, LetsThreadsTakeTurnsAtTheSameTimesInEveryRun)
{
    expect_same_twice(threads_add, 0);
}

static void talkers_add(struct attach_fixture *fixture)
{
    attach_fixture_add(fixture, 0, "talk", "18515", "50", NULL);
    attach_fixture_add(fixture, 1, "talk", "18515", "50", NULL);
}

TEST(AttachedLife, ProgramsThatTalkOverTcpDoSoAtTheSameTimesInEveryRun)
{
    expect_same_twice(talkers_add, 1);
}

TEST(AttachedLife, NamesWhoWaitsForWhatWhenNobodyCanGoOn)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    fixture.options.wall_limit_ms = 300;
    attach_fixture_add(&fixture, 0, "talk", "18516", "1", NULL);
    attach_fixture_run(&fixture);
    EXPECT_EQ(fixture.result.outcome, SIM_RUN_STUCK);
    EXPECT_CONTAINS(fixture.result.text, "node0.process1.thread0 (attached_talk, process ");
    EXPECT_CONTAINS(fixture.result.text, "another program");
    attach_fixture_fini(&fixture);
}

static void expect_named(const char *program, const char *reason)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    fixture.options.wall_limit_ms = 300;
    attach_fixture_add(&fixture, 0, "gone", program, NULL);
    attach_fixture_run(&fixture);
    EXPECT_EQ(fixture.result.outcome, SIM_RUN_STUCK);
    EXPECT_CONTAINS(fixture.result.text, reason);
    attach_fixture_fini(&fixture);
}

TEST(AttachedLife, NamesSignalsAndEventsAsWhatIsWaitedFor)
{
    expect_named("pause", ") waits for a signal (since");
    expect_named("event", ") waits for an event of a device (since");
}

TEST(AttachedLife, NamesTheLineOfTheCallInWhichAThreadWaits)
{
    struct attach_fixture fixture;
    char expected[64];
    attach_fixture_init(&fixture);
    fixture.options.wall_limit_ms = 300;
    attach_fixture_add(&fixture, 0, "gone", "call", NULL);
    attach_fixture_run(&fixture);
    char *line = attach_fixture_output(&fixture, 0);
    snprintf(expected, sizeof expected, "called by call_last (gone_main.c:%s)", line);
    EXPECT_CONTAINS(fixture.result.text, expected);
    free(line);
    attach_fixture_fini(&fixture);
}

TEST(AttachedLife, EndsPollsForWhatNeverComesAtTheSameTimeInEveryRun)
{
    uint64_t hashes[2];
    for (unsigned i = 0; i < 2; i++) {
        struct attach_fixture fixture;
        attach_fixture_init(&fixture);
        attach_fixture_add(&fixture, 0, "gone", "poll", NULL);
        attach_fixture_run_before_limit(&fixture);
        EXPECT_TRUE(fixture.result.failed);
        EXPECT_CONTAINS(fixture.result.text, "no program has made progress for 1000 s of simulated time");
        EXPECT_CONTAINS(fixture.result.text, ") waits for a device to write to its memory (since");
        EXPECT_EQ(fixture.result.outside, 0);
        EXPECT_EQ(fixture.result.statuses[0], KILLED);
        hashes[i] = fixture.result.hash;
        attach_fixture_fini(&fixture);
    }
    EXPECT_EQ(hashes[0], hashes[1]);
}

// A program that sleeps for long may notify the others when it wakes.
TEST(AttachedLife, EndsShortSleepsForNothingUnlessSomebodySleepsLong)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 0, "gone", "naps", NULL);
    attach_fixture_run_before_limit(&fixture);
    EXPECT_CONTAINS(fixture.result.text, "no program has made progress for 100 s of simulated time");
    EXPECT_EQ(fixture.result.outside, 0);
    attach_fixture_fini(&fixture);
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 0, "gone", "naps", NULL);
    attach_fixture_add(&fixture, 1, "gone", "sleep", NULL);
    attach_fixture_run_before_limit(&fixture);
    EXPECT_CONTAINS(fixture.result.text, "no program has made progress for 100 s of simulated time");
    EXPECT_CONTAINS(fixture.result.text, ") waits for a time (since 300");
    attach_fixture_fini(&fixture);
}

TEST(AttachedLife, NamesAProgramThatNeverCallsIn)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    fixture.options.wall_limit_ms = 300;
    attach_fixture_add(&fixture, 0, "/bin/sleep", "30", NULL);
    attach_fixture_run(&fixture);
    EXPECT_TRUE(fixture.result.failed);
    EXPECT_CONTAINS(fixture.result.text, "has not called in");
    EXPECT_CONTAINS(fixture.result.text, "node0.process1.thread0 (sleep, process ");
    attach_fixture_fini(&fixture);
}

TEST(AttachedLife, NamesAProgramThatRanWithoutTheLibraries)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    fixture.options.library_directory = "/nonexistent";
    attach_fixture_add(&fixture, 0, "/bin/true", NULL);
    attach_fixture_run(&fixture);
    EXPECT_TRUE(fixture.result.failed);
    EXPECT_CONTAINS(fixture.result.text, "/bin/true (process ");
    EXPECT_CONTAINS(fixture.result.text, "ended with 0 and never attached itself");
    attach_fixture_fini(&fixture);
}

// A character that ends a name in LD_PRELOAD.
TEST(AttachedLife, TakesLibrariesFromAPathWithASpaceInIt)
{
    char folder[] = "/tmp/tcasim attached XXXXXX", path[64];
    ASSERT_NOT_NULL(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/lib", folder);
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    ASSERT_EQ(symlink(fixture.options.library_directory, path), 0);
    fixture.options.library_directory = path;
    attach_fixture_add(&fixture, 0, "pair", "3", NULL);
    attach_fixture_add(&fixture, 1, "pair", "3", NULL);
    attach_fixture_run(&fixture);
    expect_done(&fixture);
    EXPECT_EQ(fixture.result.statuses[0], 0);
    EXPECT_EQ(fixture.result.statuses[1], 0);
    attach_fixture_fini(&fixture);
    (void)unlink(path);
    (void)rmdir(folder);
}

TEST(AttachedLife, GivesTheStatusOfAProgramThatIsNotThere)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 0, "/nowhere/at/all", NULL);
    attach_fixture_run(&fixture);
    expect_done(&fixture);
    EXPECT_EQ(fixture.result.statuses[0], 127);
    attach_fixture_fini(&fixture);
}

TEST(AttachedLife, GivesTheStatusOfAProgramThatCannotBeExecuted)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 0, "/dev/null", NULL);
    attach_fixture_run(&fixture);
    expect_done(&fixture);
    EXPECT_EQ(fixture.result.statuses[0], 126);
    attach_fixture_fini(&fixture);
}

static void expect_crash_reported(const char *rest, bool polls)
{
    char *before = NULL;
    for (unsigned i = 0; i < 2; i++) {
        struct attach_fixture fixture;
        attach_fixture_init(&fixture);
        attach_fixture_add(&fixture, 0, "gone", rest, NULL);
        attach_fixture_add(&fixture, 1, "gone", "crash", NULL);
        attach_fixture_run_before_limit(&fixture);
        if (!fixture.result.failed) {
            EXPECT_EQ(fixture.result.outcome, SIM_RUN_STUCK);
        }
        EXPECT_CONTAINS(fixture.result.text, "node0.process1.thread0 (attached_gone, process ");
        EXPECT_CONTAINS(fixture.result.ends, "node1's attached_gone (process ");
        EXPECT_CONTAINS(fixture.result.ends, ") was killed by signal 11 (SIGSEGV) at 1.20");
        if (polls) {
            EXPECT_GT(fixture.result.simulated_ps, fixture.options.wall_limit_ms * SIM_PS_PER_MS);
        } else {
            EXPECT_LE(fixture.result.simulated_ps, fixture.options.wall_limit_ms * SIM_PS_PER_MS);
        }
        char *reported = strdup(strstr(fixture.result.ends, " was killed")); // without the number of the real process
        if (i == 1) {
            EXPECT_STREQ(reported, before);
        }
        free(before);
        before = reported;
        attach_fixture_fini(&fixture);
    }
    free(before);
}

TEST(AttachedLife, SaysWhoCrashedWhereTheOthersOnlyLookInVain)
{
    expect_crash_reported("poll", true);
}

TEST(AttachedLife, SaysWhoCrashedWhereTheOthersOnlyWait)
{
    expect_crash_reported("wait", false);
}

TEST(AttachedLife, RunsWithoutSimulatedTimeAsWell)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    fixture.options.functional = true;
    attach_fixture_add(&fixture, 0, "pair", "10", NULL);
    attach_fixture_add(&fixture, 1, "pair", "10", NULL);
    attach_fixture_run(&fixture);
    expect_done(&fixture);
    EXPECT_EQ(fixture.result.statuses[0], 0);
    EXPECT_EQ(fixture.result.statuses[1], 0);
    attach_fixture_fini(&fixture);
}

static void shell_add(struct attach_fixture *fixture)
{
    static char threads[] = TCASIM_BINARY_DIR "/attached/attached_threads";
    attach_fixture_add(fixture, 0, "/bin/sh", "-c", "exec \"$0\"", threads, NULL);
}

TEST(AttachedLife, AProgramThatBecomesAnotherIsTheSameProcess)
{
    expect_same_twice(shell_add, 0);
}

TEST(AttachedLife, NamesProgramsThatNeverCallInWithoutSimulatedTimeWhereALimitIsGiven)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    fixture.options.functional = true;
    fixture.options.silence_limit_ms = 300;
    attach_fixture_add(&fixture, 0, "/bin/sleep", "30", NULL);
    attach_fixture_run(&fixture);
    EXPECT_TRUE(fixture.result.failed);
    EXPECT_CONTAINS(fixture.result.text, "no program has called in for 0 s of real time");
    EXPECT_CONTAINS(fixture.result.text, "node0.process1.thread0 (sleep, process ");
    attach_fixture_fini(&fixture);
}

TEST(AttachedLife, NamesAProgramThatIsStopped)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    fixture.options.wall_limit_ms = 300;
    attach_fixture_add(&fixture, 0, "/bin/sh", "-c", "kill -STOP $$", NULL);
    attach_fixture_run(&fixture);
    EXPECT_TRUE(fixture.result.failed);
    EXPECT_CONTAINS(fixture.result.text, "node0.process1.thread0 (sh, process ");
    EXPECT_CONTAINS(fixture.result.text, "has not called in");
    attach_fixture_fini(&fixture);
}
