#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "process.h"
#include "tests/shim/test.h"

static void run_is(const char *words, int status, const char *output, const char *errors)
{
    struct process process;
    process_init(&process);
    process_run(&process, words);
    EXPECT_EQ(process.status, status);
    EXPECT_CONTAINS(process.output, output);
    EXPECT_CONTAINS(process.errors, errors);
    EXPECT_EQ(process_entries(&process), 0);
    process_fini(&process);
}

TEST(Program, DoesNotWaitForAPipeThatNobodyWritesTo)
{
    struct process process;
    char path[128];
    process_init(&process);
    snprintf(path, sizeof path, "%s/f.yaml", process.directory);
    EXPECT_EQ(mkfifo(path, 0600), 0);
    process_run(&process, "check f.yaml");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "f.yaml:1:1: the file is empty");
    process_fini(&process);
}

TEST(Program, HelpsWithEveryCommand)
{
    run_is("--help", 0, "usage: tcasim COMMAND", "");
    run_is("run --help", 0, "--trace-rtl", "");
    run_is("check --help", 0, "usage: tcasim check", "");
    run_is("params --help", 0, "usage: tcasim params", "");
    run_is("bench --help", 0, "usage: tcasim bench", "");
    run_is("help", 0, "usage: tcasim COMMAND", "");
    run_is("help topo", 0, "usage: tcasim topo", "");
    run_is("help tpo", 2, "", "unknown command 'tpo'; did you mean 'topo'?");
}

TEST(Program, NamesItsVersion)
{
    run_is("--version", 0, "tcasim 0.", "");
}

TEST(Program, RefusesUnknownWordsWithASuggestion)
{
    run_is("", 2, "", "usage: tcasim COMMAND");
    run_is("rnu", 2, "", "unknown command 'rnu'");
    run_is("chek", 2, "", "unknown command 'chek'; did you mean 'check'?");
    run_is("run --quite", 2, "", "unknown option '--quite'; did you mean '--quiet'?");
    run_is("run --out", 2, "", "option '--out' needs a value");
    run_is("check", 2, "", "a scenario file is missing");
    run_is("params a b", 2, "", "too many arguments: 'b'");
    run_is("bench nothing", 2, "", "unknown benchmark 'nothing'");
}

TEST(Program, ListsTheKeys)
{
    run_is("params lanes", 0, "lanes", "");
    run_is("params depth", 0, " 512 ", ""); // as in perftest
    run_is("params flihgt", 2, "", "no key contains 'flihgt'; did you mean 'flight'?");
    run_is("params nonsense", 2, "", "no key contains 'nonsense'; 'tcasim params' lists them all");
}

TEST(Program, ListsItsBenchmarks)
{
    run_is("bench --list", 0, "smallest", "");
}

TEST(Program, SaysWhatATlpCostsInAFabricBenchmark)
{
    run_is("bench all-to-all", 0, "events per TLP and link", "");
}

static void folder_make(const struct process *process, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", process->directory, name);
    EXPECT_EQ(mkdir(path, 0700), 0);
}

// A home whose smallest scenario exceeds its limit on any present machine. Its files are copies, not links.
static void slow_home_make(struct process *process)
{
    static const char *const folders[] = {"scenarios", "scenarios/smoke", "results", "results/reference"};
    for (unsigned i = 0; i < 4; i++) {
        folder_make(process, folders[i]);
    }
    process_file_write(process, "results/reference/papers.csv",
                       "id,paper,where,platform,what,config,value,unit,kind,use,doubt\n");
    process_run(process, "run " TCASIM_SOURCE_DIR
                         "/scenarios/smoke/thousand-pingpongs.yaml --quiet --set runs.0.iterations=400 --out once");
    char *resolved = process_file_read(process, "once/resolved.yaml");
    ASSERT_NOT_NULL(resolved);
    process_file_write(process, "scenarios/smoke/smallest.yaml", resolved);
    free(resolved);
}

TEST(Program, EndsAStrictBenchmarkThatMissesALimitWithOne)
{
    struct process process;
    process_init(&process);
    slow_home_make(&process);
    setenv("TCASIM_HOME", process.directory, 1);
    process_run(&process, "bench smallest --strict");
    EXPECT_CONTAINS(process.output, "MISSED");
    EXPECT_EQ(process.status, 1);
    process_run(&process, "bench smallest");
    EXPECT_CONTAINS(process.output, "MISSED");
    EXPECT_EQ(process.status, 0);
    unsetenv("TCASIM_HOME");
    process_fini(&process);
}
