// Processes and threads: how they come, wait for each other, and go.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stage.h"

#define KILLED (128 + 9)

static void expect_done(const struct stage *stage)
{
    EXPECT_STREQ(stage->result.text, "");
    EXPECT_EQ(stage->result.outcome, SIM_RUN_DONE);
}

// Runs the same twice; both write the same.
static void expect_same_twice(void (*add)(struct stage *stage), unsigned program)
{
    uint64_t hash = 0;
    char *before = NULL;
    for (unsigned i = 0; i < 2; i++) {
        struct stage stage;
        stage_init(&stage);
        add(&stage);
        stage_run(&stage);
        expect_done(&stage);
        EXPECT_EQ(stage.result.statuses[program], 0);
        char *text = stage_output(&stage, program);
        EXPECT_TRUE(text[0] != '\0');
        if (i == 0) {
            before = text;
            hash = stage.result.hash;
        } else {
            EXPECT_STREQ(text, before);
            EXPECT_EQ(stage.result.hash, hash);
            free(text);
        }
        stage_fini(&stage);
    }
    free(before);
}

TEST(AttachedLife, OutlivesAProgramThatIsKilledAtAnyMoment)
{
    for (unsigned i = 0; i < 12; i++) {
        struct stage stage;
        char us[16];
        snprintf(us, sizeof us, "%u", 500 + i * i * 200);
        stage_init(&stage);
        stage_add(&stage, 0, "victim", us, NULL);
        stage_add(&stage, 1, "pair", "3", NULL);
        stage_run(&stage);
        expect_done(&stage);
        EXPECT_EQ(stage.result.statuses[0], KILLED);
        EXPECT_BETWEEN(stage.result.statuses[1], 0, 1); // its waits end by time
        stage_fini(&stage);
    }
}

static void family_add(struct stage *stage)
{
    stage_add(stage, 0, "family", "80", NULL);
}

// The HCA has 64 pages of doorbells, 64 protection domains and 256 queue pairs.
TEST(AttachedLife, TakesBackWhatAKilledProcessHadOfTheHca)
{
    expect_same_twice(family_add, 0);
}

// The file's lines; 0: it cannot be read.
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
    struct stage stage;
    snprintf(path, sizeof path, "/tmp/tcasim-test-%d-crossings", (int)getpid());
    stage_init(&stage);
    stage.options.crossings = path;
    stage_add(&stage, 0, "threads", NULL);
    stage_run(&stage);
    expect_done(&stage);
    EXPECT_TRUE(stage.result.crossings > 0);
    EXPECT_EQ(lines_of(path), stage.result.crossings);
    (void)unlink(path);
    stage_fini(&stage);
}

static void threads_add(struct stage *stage)
{
    stage_add(stage, 0, "threads", NULL);
}

TEST(AttachedLife, LetsThreadsTakeTurnsAtTheSameTimesInEveryRun)
{
    expect_same_twice(threads_add, 0);
}

static void talkers_add(struct stage *stage)
{
    stage_add(stage, 0, "talk", "18515", "50", NULL);
    stage_add(stage, 1, "talk", "18515", "50", NULL);
}

TEST(AttachedLife, ProgramsThatTalkOverTcpDoSoAtTheSameTimesInEveryRun)
{
    expect_same_twice(talkers_add, 1);
}

TEST(AttachedLife, NamesWhoWaitsForWhatWhenNobodyCanGoOn)
{
    struct stage stage;
    stage_init(&stage);
    stage.options.wall_limit_ms = 300;
    stage_add(&stage, 0, "talk", "18516", "1", NULL);
    stage_run(&stage);
    EXPECT_EQ(stage.result.outcome, SIM_RUN_STUCK);
    EXPECT_CONTAINS(stage.result.text, "node0.process1.thread0 (attached_talk, process ");
    EXPECT_CONTAINS(stage.result.text, "another program");
    stage_fini(&stage);
}

static void expect_named(const char *program, const char *reason)
{
    struct stage stage;
    stage_init(&stage);
    stage.options.wall_limit_ms = 300;
    stage_add(&stage, 0, "gone", program, NULL);
    stage_run(&stage);
    EXPECT_EQ(stage.result.outcome, SIM_RUN_STUCK);
    EXPECT_CONTAINS(stage.result.text, reason);
    stage_fini(&stage);
}

TEST(AttachedLife, NamesSignalsAndEventsAsWhatIsWaitedFor)
{
    expect_named("pause", ") waits for a signal (since");
    expect_named("event", ") waits for an event of a device (since");
}

TEST(AttachedLife, EndsPollsForWhatNeverComesAtTheSameTimeInEveryRun)
{
    uint64_t hashes[2];
    for (unsigned i = 0; i < 2; i++) {
        struct stage stage;
        stage_init(&stage);
        stage_add(&stage, 0, "gone", "poll", NULL);
        stage_run_before_limit(&stage);
        EXPECT_TRUE(stage.result.failed);
        EXPECT_CONTAINS(stage.result.text, "no program has found or done anything for 1000 s of simulated time");
        EXPECT_CONTAINS(stage.result.text, ") waits for a device to write to its memory (since");
        EXPECT_EQ(stage.result.outside, 0);
        hashes[i] = stage.result.hash;
        stage_fini(&stage);
    }
    EXPECT_EQ(hashes[0], hashes[1]);
}

// One that sleeps for long may have something to say to the others then.
TEST(AttachedLife, EndsShortSleepsForNothingUnlessSomebodySleepsLong)
{
    struct stage stage;
    stage_init(&stage);
    stage_add(&stage, 0, "gone", "naps", NULL);
    stage_run_before_limit(&stage);
    EXPECT_CONTAINS(stage.result.text, "no program has found or done anything for 100 s of simulated time");
    EXPECT_EQ(stage.result.outside, 0);
    stage_fini(&stage);
    stage_init(&stage);
    stage_add(&stage, 0, "gone", "naps", NULL);
    stage_add(&stage, 1, "gone", "sleep", NULL);
    stage_run_before_limit(&stage);
    EXPECT_CONTAINS(stage.result.text, "no program has found or done anything for 100 s of simulated time");
    EXPECT_CONTAINS(stage.result.text, ") waits for a time (since 300");
    stage_fini(&stage);
}

TEST(AttachedLife, NamesAProgramThatNeverCallsIn)
{
    struct stage stage;
    stage_init(&stage);
    stage.options.wall_limit_ms = 300;
    stage_add(&stage, 0, "/bin/sleep", "30", NULL);
    stage_run(&stage);
    EXPECT_TRUE(stage.result.failed);
    EXPECT_CONTAINS(stage.result.text, "has not called in");
    EXPECT_CONTAINS(stage.result.text, "node0.process1.thread0 (sleep, process ");
    stage_fini(&stage);
}

TEST(AttachedLife, NamesAProgramThatRanWithoutTheLibraries)
{
    struct stage stage;
    stage_init(&stage);
    stage.options.library_directory = "/nonexistent";
    stage_add(&stage, 0, "/bin/true", NULL);
    stage_run(&stage);
    EXPECT_TRUE(stage.result.failed);
    EXPECT_CONTAINS(stage.result.text, "/bin/true (process ");
    EXPECT_CONTAINS(stage.result.text, "ended with 0 and never attached itself");
    stage_fini(&stage);
}

// What ends a name in LD_PRELOAD.
TEST(AttachedLife, TakesLibrariesFromAPathWithASpaceInIt)
{
    char folder[] = "/tmp/tcasim attached XXXXXX", path[64];
    ASSERT_TRUE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/lib", folder);
    struct stage stage;
    stage_init(&stage);
    ASSERT_EQ(symlink(stage.options.library_directory, path), 0);
    stage.options.library_directory = path;
    stage_add(&stage, 0, "pair", "3", NULL);
    stage_add(&stage, 1, "pair", "3", NULL);
    stage_run(&stage);
    expect_done(&stage);
    EXPECT_EQ(stage.result.statuses[0], 0);
    EXPECT_EQ(stage.result.statuses[1], 0);
    stage_fini(&stage);
    (void)unlink(path);
    (void)rmdir(folder);
}

TEST(AttachedLife, GivesTheStatusOfAProgramThatIsNotThere)
{
    struct stage stage;
    stage_init(&stage);
    stage_add(&stage, 0, "/nowhere/at/all", NULL);
    stage_run(&stage);
    expect_done(&stage);
    EXPECT_EQ(stage.result.statuses[0], 127);
    stage_fini(&stage);
}

TEST(AttachedLife, GivesTheStatusOfAProgramThatCannotBeExecuted)
{
    struct stage stage;
    stage_init(&stage);
    stage_add(&stage, 0, "/dev/null", NULL);
    stage_run(&stage);
    expect_done(&stage);
    EXPECT_EQ(stage.result.statuses[0], 126);
    stage_fini(&stage);
}

static void expect_crash_told(const char *rest, bool polls)
{
    char *before = NULL;
    for (unsigned i = 0; i < 2; i++) {
        struct stage stage;
        stage_init(&stage);
        stage_add(&stage, 0, "gone", rest, NULL);
        stage_add(&stage, 1, "gone", "crash", NULL);
        stage_run_before_limit(&stage);
        EXPECT_TRUE(stage.result.failed || stage.result.outcome == SIM_RUN_STUCK);
        EXPECT_CONTAINS(stage.result.text, "node0.process1.thread0 (attached_gone, process ");
        EXPECT_CONTAINS(stage.result.ends, "node1's attached_gone (process ");
        EXPECT_CONTAINS(stage.result.ends, ") was killed by signal 11 (SIGSEGV) at 1.20");
        EXPECT_EQ(stage.result.simulated_ps > stage.options.wall_limit_ms * SIM_PS_PER_MS, polls);
        char *told = strdup(strstr(stage.result.ends, " was killed")); // before it is a real process's number
        if (i == 1) {
            EXPECT_STREQ(told, before);
        }
        free(before);
        before = told;
        stage_fini(&stage);
    }
    free(before);
}

TEST(AttachedLife, SaysWhoCrashedWhereTheOthersOnlyLookInVain)
{
    expect_crash_told("poll", true);
}

TEST(AttachedLife, SaysWhoCrashedWhereTheOthersOnlyWait)
{
    expect_crash_told("wait", false);
}

TEST(AttachedLife, RunsWithoutSimulatedTimeAsWell)
{
    struct stage stage;
    stage_init(&stage);
    stage.options.functional = true;
    stage_add(&stage, 0, "pair", "10", NULL);
    stage_add(&stage, 1, "pair", "10", NULL);
    stage_run(&stage);
    expect_done(&stage);
    EXPECT_EQ(stage.result.statuses[0], 0);
    EXPECT_EQ(stage.result.statuses[1], 0);
    stage_fini(&stage);
}

static void shell_add(struct stage *stage)
{
    static char threads[] = TCASIM_BINARY_DIR "/attached/attached_threads";
    stage_add(stage, 0, "/bin/sh", "-c", "exec \"$0\"", threads, NULL);
}

TEST(AttachedLife, AProgramThatBecomesAnotherIsTheSameProcess)
{
    expect_same_twice(shell_add, 0);
}

TEST(AttachedLife, NamesProgramsThatNeverCallInWithoutSimulatedTimeWhereALimitIsGiven)
{
    struct stage stage;
    stage_init(&stage);
    stage.options.functional = true;
    stage.options.silence_limit_ms = 300;
    stage_add(&stage, 0, "/bin/sleep", "30", NULL);
    stage_run(&stage);
    EXPECT_TRUE(stage.result.failed);
    EXPECT_CONTAINS(stage.result.text, "no program has called in for 0 s of real time");
    EXPECT_CONTAINS(stage.result.text, "node0.process1.thread0 (sleep, process ");
    stage_fini(&stage);
}

TEST(AttachedLife, NamesAProgramThatIsStopped)
{
    struct stage stage;
    stage_init(&stage);
    stage.options.wall_limit_ms = 300;
    stage_add(&stage, 0, "/bin/sh", "-c", "kill -STOP $$", NULL);
    stage_run(&stage);
    EXPECT_TRUE(stage.result.failed);
    EXPECT_CONTAINS(stage.result.text, "node0.process1.thread0 (sh, process ");
    EXPECT_CONTAINS(stage.result.text, "has not called in");
    stage_fini(&stage);
}
