// Sweeps as jobs, on commands that stand for Slurm's: what is submitted, what is understood, and what is refused. The
// script slurm.py runs them on a real Slurm.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "process.h"
#include "sim/cli/slurm_states.h"
#include "tests/shim/test.h"

#define HEAD                                                                                                           \
    "title: A small sweep\n"                                                                                           \
    "topology: {kind: pair, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}, cable: pearl-gen2-x8}\n"
#define RUNS                                                                                                           \
    "runs:\n"                                                                                                          \
    "  - {series: dma, workload: pingpong, method: register, node: node0, peer: node1,\n"                              \
    "     bytes: [8 B], iterations: 2, warmup: 1}\n"
#define SWEEP "sweep: {nodes.*.board.clock: [125 MHz, 250 MHz, 300 MHz, 500 MHz]}\n"

// Runs the tasks at once, and writes its words to the file `submitted`. The commands run in the program's directory.
#define SBATCH                                                                                                         \
    "#!/bin/sh\n"                                                                                                      \
    "[ \"$1\" != --version ] || exit 0\n"                                                                              \
    "printf '%s\\n' \"$@\" >submitted\n"                                                                               \
    "for word; do case $word in --array=1-*) last=${word#--array=1-} ;; esac; script=$word; done\n"                    \
    "task=${FIRST:-1}\n"                                                                                               \
    "while [ $task -le $last ]; do\n"                                                                                  \
    "  SLURM_ARRAY_JOB_ID=77 SLURM_ARRAY_TASK_ID=$task sh \"$script\" || :\n"                                          \
    "  task=$((task + 1))\n"                                                                                           \
    "done\n"                                                                                                           \
    "echo '77;here'\n"
#define SCONTROL "#!/bin/sh\necho 'MaxArraySize            = 1001'\n"
#define FAILS    "#!/bin/sh\necho \"${0##*/}: error: $1 is not for you\" >&2\nexit 1\n"
#define ENDED    "#!/bin/sh\necho 'slurm_load_jobs error: Invalid job id specified' >&2\nexit 1\n"

static void command_write(const struct process *process, const char *name, const char *text)
{
    char inner[64], path[256];
    snprintf(inner, sizeof inner, "bin/%s", name);
    snprintf(path, sizeof path, "%s/%s", process->directory, inner);
    process_file_write(process, inner, text);
    ASSERT_EQ(chmod(path, 0755), 0);
}

static char *path_before;

static void start(struct process *process)
{
    char path[256];
    process_init(process);
    process_file_write(process, "s.yaml", HEAD SWEEP RUNS);
    snprintf(path, sizeof path, "%s/bin", process->directory);
    ASSERT_EQ(mkdir(path, 0755), 0);
    command_write(process, "sbatch", SBATCH);
    command_write(process, "scontrol", SCONTROL);
    command_write(process, "squeue", ENDED);
    command_write(process, "sacct", FAILS);
    command_write(process, "scancel", FAILS);
    path_before = strdup(getenv("PATH"));
    snprintf(path, sizeof path, "%s/bin:/usr/bin:/bin", process->directory);
    (void)setenv("PATH", path, 1);
}

static void end(struct process *process)
{
    (void)setenv("PATH", path_before, 1);
    free(path_before);
    process_fini(process);
}

static void refused(struct process *process, const char *words, const char *message)
{
    char line[512];
    snprintf(line, sizeof line, "tcasim: %s\n", message);
    process_run(process, words);
    EXPECT_EQ(process->status, 2);
    EXPECT_STREQ(process->errors, line);
}

// --- what Slurm says ------------------------------------------------------------------------------------------------

TEST(SlurmStates, LinesOfSqueueAreTheTasksOfTheArray)
{
    char text[] = "3|RUNNING|None\n1|PENDING|Resources\nN/A|RUNNING|None\n9|RUNNING|None\n"
                  "2|CANCELLED|None\n4|COMPLETING|Prolog (x|y)\n";
    struct cli_slurm_task tasks[5] = {{0}};
    cli_slurm_squeue_parse(text, tasks, 5);
    EXPECT_EQ(tasks[0].life, CLI_SLURM_WAITING);
    EXPECT_STREQ(tasks[0].reason, "Resources");
    EXPECT_EQ(tasks[1].life, CLI_SLURM_ENDED);
    EXPECT_STREQ(tasks[1].reason, "");
    EXPECT_EQ(tasks[2].life, CLI_SLURM_RUNNING);
    EXPECT_EQ(tasks[3].life, CLI_SLURM_RUNNING);
    EXPECT_STREQ(tasks[3].reason, "Prolog (x|y)");
    EXPECT_EQ(tasks[4].life, CLI_SLURM_FORGOTTEN);
}

TEST(SlurmStates, LinesOfSacctMayNameManyTasks)
{
    char text[] = "7_1|TIMEOUT\n7_[2-4:2,6%3]|PENDING\n7|COMPLETED\n7_5|CANCELLED by 1000\n7_1|RUNNING\n";
    struct cli_slurm_task tasks[7] = {{0}};
    cli_slurm_sacct_parse(text, tasks, 7);
    EXPECT_STREQ(tasks[0].state, "TIMEOUT"); // the first line counts
    EXPECT_EQ(tasks[1].life, CLI_SLURM_WAITING);
    EXPECT_EQ(tasks[2].life, CLI_SLURM_FORGOTTEN);
    EXPECT_EQ(tasks[3].life, CLI_SLURM_WAITING);
    EXPECT_EQ(tasks[4].life, CLI_SLURM_ENDED);
    EXPECT_STREQ(tasks[4].state, "CANCELLED");
    EXPECT_EQ(tasks[5].life, CLI_SLURM_WAITING);
    EXPECT_EQ(tasks[6].life, CLI_SLURM_FORGOTTEN);
}

TEST(SlurmStates, AListThatIsCutShortMeansTheOtherTasks)
{
    char text[] = "7_[2,...]|CANCELLED by 0\n7_3|COMPLETED\n7_[3-|PENDING\n7_[99999999999999999999]|PENDING\n";
    struct cli_slurm_task tasks[3] = {{0}};
    cli_slurm_sacct_parse(text, tasks, 3);
    for (size_t i = 0; i < 3; i++) {
        TEST_TRACE("task %zu", i + 1);
        EXPECT_STREQ(tasks[i].state, "CANCELLED");
    }
}

// --- jobs -----------------------------------------------------------------------------------------------------------

TEST(SlurmRun, SubmitsTheMissingPointsAsAnArray)
{
    struct process process;
    start(&process);
    process_run(&process, "run s.yaml --out out --set sweep={nodes.*.board.clock:_[250_MHz]}");
    process_run(&process, "run s.yaml --out out --engine slurm --array-size 2 --partition long --time 1:00");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "");
    EXPECT_CONTAINS(process.output, "Submitted job 77 with 2 tasks\n");
    EXPECT_CONTAINS(process.output, "Sweep: 4 points, 1 of them kept from an earlier run, 0 failed\n");
    char *submitted = process_file_read(&process, "submitted");
    EXPECT_CONTAINS(submitted, "--parsable\n--job-name=tcasim\n--chdir=/\n--output=/dev/null\n--array=1-2\n"
                               "--partition=long\n--time=1:00\n/tmp/");
    char *left = process_file_read(&process, "out/slurm/batch.sh");
    EXPECT_NULL(left);
    free(left);
    free(submitted);
    end(&process);
}

TEST(SlurmRun, SaysHowAJobEndedThatLeftNoResult)
{
    struct process process;
    start(&process);
    (void)setenv("FIRST", "4", 1); // tasks 1 to 3 never begin
    command_write(&process, "squeue", "#!/bin/sh\necho '1|FAILED|JobLaunchFailure'\n");
    command_write(&process, "sacct", "#!/bin/sh\necho '77_2|TIMEOUT'\n");
    process_run(&process, "run s.yaml --out out --engine slurm");
    (void)unsetenv("FIRST");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "the point '125 MHz' failed: its job 77_1 ended as FAILED (JobLaunchFailure)\n");
    EXPECT_CONTAINS(process.errors, "the point '250 MHz' failed: its job 77_2 ended as TIMEOUT\n");
    EXPECT_CONTAINS(process.errors, "the point '300 MHz' failed: Slurm no longer knows its job 77_3\n");
    EXPECT_LACKS(process.errors, "500 MHz");
    EXPECT_CONTAINS(process.output, "3 failed\n");
    end(&process);
}

TEST(SlurmRun, WaitsWhileSlurmGivesNoAnswer)
{
    struct process process;
    start(&process);
    command_write(&process, "squeue", // answers the third time
                  "#!/bin/sh\necho >>asked\n[ $(wc -l <asked) -gt 2 ] || { echo 'squeue: error: down' >&2; exit 1; }\n"
                  "for task in 1 2 3 4; do echo \"$task|CANCELLED|None\"; done\n");
    (void)setenv("FIRST", "2", 1);
    process_run(&process, "run s.yaml --out out --engine slurm");
    (void)unsetenv("FIRST");
    EXPECT_EQ(process.status, 2);
    EXPECT_STREQ(process.errors, "tcasim: no answer from Slurm (down); still waiting\n"
                                 "tcasim: s.yaml: the point '125 MHz' failed: its job 77_1 ended as CANCELLED\n");
    end(&process);
}

TEST(SlurmRun, SaysThatAnInterruptionCouldNotCancelTheJob)
{
    struct process process;
    start(&process);
    command_write(&process, "squeue", "#!/bin/sh\nfor task in 1 2 3 4; do echo \"$task|RUNNING|None\"; done\n");
    (void)setenv("FIRST", "5", 1); // no task begins
    process_run_stopped(&process, "run s.yaml --out out --engine slurm", SIGINT, "out/slurm/job");
    EXPECT_EQ(process.status, 128 + SIGINT);
    EXPECT_STREQ(process.errors, "tcasim: interrupted; job 77 could not be cancelled (77 is not for you) and goes on; "
                                 "--resume collects it\n");
    command_write(&process, "scancel", "#!/bin/sh\n");
    process_run_stopped(&process, "run s.yaml --out two --engine slurm", SIGTERM, "two/slurm/job");
    (void)unsetenv("FIRST");
    EXPECT_STREQ(process.errors, "tcasim: interrupted; job 77 was cancelled; finished points are kept, and the same "
                                 "command continues from there\n");
    end(&process);
}

TEST(SlurmRun, CollectsWhatWasSubmittedAndNothingElse)
{
    struct process process;
    start(&process);
    process_run(&process, "run s.yaml --out out --engine slurm --detach");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.output,
                 "Submitted job 77 with 4 tasks; the same command with --resume instead of --detach collects it\n");
    command_write(&process, "squeue", "#!/bin/sh\necho '4|RUNNING|None'\n");
    refused(&process, "run s.yaml --out out --engine slurm",
            "out: job 77 of this sweep still runs there; --resume collects it, scancel 77 ends it");
    command_write(&process, "squeue", FAILS);
    refused(&process, "run s.yaml --out out",
            "out: job 77 of this sweep may still run there, and Slurm gives no answer; remove out/slurm/job if it has "
            "ended");
    command_write(&process, "sbatch", FAILS);
    process_run(&process, "run s.yaml --out out --resume");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "Sweep: 4 points, 0 of them kept from an earlier run, 0 failed\n");
    refused(&process, "run s.yaml --out out --resume", "--resume: out has no submitted jobs");
    end(&process);
}

TEST(SlurmRun, ARecordThatIsDamagedIsRefused)
{
    static const char *const texts[] = {
        "", "job 77\n", "# The job array of `tcasim run --engine slurm` that no run has collected yet.\njob 77\n"};
    struct process process;
    start(&process);
    process_run(&process, "run s.yaml --out out --engine slurm --detach");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        TEST_TRACE("text %zu", i);
        process_file_write(&process, "out/slurm/job", texts[i]);
        refused(&process, "run s.yaml --out out --resume",
                "out/slurm/job: not the record of a job; remove it if no job runs in these results");
    }
    end(&process);
}

TEST(SlurmRun, RefusesWhatItCannotDo)
{
    struct process process;
    start(&process);
    refused(&process, "run s.yaml --engine pbs", "--engine pbs: expected local or slurm");
    refused(&process, "run s.yaml --partition p", "--partition needs --engine slurm");
    refused(&process, "run s.yaml --array-size 1", "--array-size needs --engine slurm");
    refused(&process, "run s.yaml --time 1", "--time needs --engine slurm");
    refused(&process, "run s.yaml --detach", "--detach needs --engine slurm");
    refused(&process, "run s.yaml --engine local --resume", "--resume needs --engine slurm");
    refused(&process, "run s.yaml --engine slurm --array-size 0",
            "--array-size 0: expected a number from 1 to 1000000");
    refused(&process, "run s.yaml --engine slurm --array-size 2x",
            "--array-size 2x: expected a number from 1 to 1000000");
    refused(&process, "run s.yaml --engine slurm --array-size 1001",
            "--array-size 1001: this Slurm takes at most 1000 (its MaxArraySize)");
    refused(&process, "run s.yaml --resume --detach",
            "--resume submits no jobs: it takes no --partition, --array-size, --time or --detach");
    refused(&process, "run s.yaml --resume --fresh", "--resume collects what was submitted; it takes no --fresh");
    refused(&process, "run s.yaml --engine slurm --detach --junit j.xml",
            "--detach writes no results that --junit could use");
    refused(&process, "run s.yaml t.yaml --engine slurm", "--engine slurm takes one scenario at a time");
    process_file_write(&process, "one.yaml", HEAD RUNS);
    refused(&process, "run one.yaml --engine slurm",
            "one.yaml: --engine slurm takes a scenario with a sweep, and this one has none");
    EXPECT_EQ(process_entries(&process), 3); // bin and the scenarios
    end(&process);
}

TEST(SlurmRun, RefusesASlurmThatIsNotThere)
{
    struct process process;
    start(&process);
    command_write(
        &process, "sbatch",
        "#!/bin/sh\n[ \"$1\" = --version ] || { echo 'sbatch: error: no\nsbatch: error: never' >&2; exit 1; }\n");
    refused(&process, "run s.yaml --engine slurm", "--engine slurm: sbatch refused the jobs: never");
    command_write(&process, "sbatch", "#!/bin/sh\necho Submitted\n");
    refused(&process, "run s.yaml --engine slurm", "--engine slurm: sbatch gave no number of a job: 'Submitted'");
    command_write(&process, "sbatch", "#!/bin/sh\necho 'sbatch: error: Could not establish a source' >&2\nexit 1\n");
    refused(&process, "run s.yaml --engine slurm",
            "--engine slurm: sbatch does not work here: Could not establish a source; --engine local measures on "
            "this machine");
    command_write(&process, "sbatch", "#!/bin/sh\necho Submitted\n");
    command_write(&process, "scontrol", FAILS);
    refused(&process, "run s.yaml --engine slurm",
            "--engine slurm: no answer from Slurm's controller: show is not for you");
    (void)setenv("PATH", "/nowhere", 1);
    refused(&process, "run s.yaml --engine slurm",
            "--engine slurm: there is no sbatch in PATH; --engine local measures on this machine");
    end(&process);
}

// Makes a point of another build of the program.
static void stranger_write(const struct process *process)
{
    char name[128], text[128];
    snprintf(name, sizeof name, "out/points/%064d.yaml", 1);
    snprintf(text, sizeof text, "# program %064d\n", 2);
    process_file_write(process, name, text);
}

TEST(SlurmRun, RefusesPointsOfAnotherBuild)
{
    struct process process;
    start(&process);
    process_run(&process, "run s.yaml --out out --engine slurm --quiet");
    stranger_write(&process);
    refused(&process, "run s.yaml --out out --engine slurm",
            "out/points: its points were measured by another build of the program (000000000000...); --fresh measures "
            "them again, --out chooses another directory");
    process_run(&process, "run s.yaml --out out --engine slurm --fresh");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "4 points, 0 of them kept");
    process_run(&process, "run s.yaml --out out --engine slurm"); // the stranger is gone
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "4 points, 4 of them kept");
    end(&process);
}

// --- one point ------------------------------------------------------------------------------------------------------

TEST(SweepPoint, IsMeasuredAloneAndKeptForTheSweep)
{
    struct process process;
    start(&process);
    process_run(&process, "run s.yaml --out out --point 2");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "Point 2 of 4 (250 MHz): measured out/points/");
    char *data = process_file_read(&process, "out/data.csv");
    EXPECT_NULL(data);
    free(data);
    process_run(&process, "run s.yaml --out out --point 2");
    EXPECT_CONTAINS(process.output, "Point 2 of 4 (250 MHz): an earlier run measured out/points/");
    process_run(&process, "run s.yaml --out out --point 2 --json");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.output, "");
    process_run(&process, "run s.yaml --out out");
    EXPECT_CONTAINS(process.output, "4 points, 1 of them kept");
    end(&process);
}

TEST(SweepPoint, ThatIsNoneIsRefused)
{
    struct process process;
    start(&process);
    refused(&process, "run s.yaml --point 0", "--point 0: expected the number of a point of the sweep, 1 to 4");
    refused(&process, "run s.yaml --point 5", "--point 5: expected the number of a point of the sweep, 1 to 4");
    refused(&process, "run s.yaml --point 1,2", "--point 1,2: expected the number of a point of the sweep, 1 to 4");
    refused(&process, "run s.yaml --point 1:abc",
            "s.yaml (125 MHz): the program or a file that it reads was changed since the point was named abc...");
    refused(&process, "run s.yaml --point 1 --engine slurm", "--point measures in this process; it takes no --engine");
    refused(&process, "run s.yaml --point 1 --junit j.xml", "--point writes no results that --junit could use");
    process_file_write(&process, "one.yaml", HEAD RUNS);
    refused(&process, "run one.yaml --point 1",
            "one.yaml: --point takes a scenario with a sweep, and this one has none");
    EXPECT_EQ(process_entries(&process), 3);
    end(&process);
}
