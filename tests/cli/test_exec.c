// `tcasim exec` as a user calls it.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "process.h"
#include "tests/shim/test.h"

#define HARDWARE                                                                                                       \
    "title: two nodes\n"                                                                                               \
    "nodes:\n"                                                                                                         \
    "  - {name: node, count: 2, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}}\n"                          \
    "cables:\n"                                                                                                        \
    "  - {from: node0.E, to: node1.W, preset: pearl-gen2-x8}\n"

TEST(ExecCommand, EndsWithTheWorstStatusOfItsPrograms)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    process_run(&process, "exec f.yaml --on node0 sh_-c_'exit_4' --on node1 sh_-c_'echo_hello;exit_3'");
    EXPECT_EQ(process.status, 4);
    EXPECT_STREQ(process.output, "hello\n");
    EXPECT_STREQ(process.errors, "");
    process_fini(&process);
}

TEST(ExecCommand, RunsTheProgramsOfTheScenario)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml",
                       HARDWARE
                       "programs:\n"
                       "  - {node: node0, command: \"sh -c 'echo $WORD; exit 3'\", env: WORD=there, status: 3, "
                       "stdout: said}\n"
                       "  - {node: node1, command: cat, stdin: said}\n");
    process_run(&process, "exec f.yaml");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.output, "there\n");
    process_fini(&process);
}

TEST(ExecCommand, FailsIfAProgramEndsWellThatShouldNot)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml",
                       HARDWARE "programs:\n"
                                "  - {node: node0, command: \"true\", status: 3}\n");
    process_run(&process, "exec f.yaml");
    EXPECT_EQ(process.status, 1);
    EXPECT_STREQ(process.errors, "tcasim: true ended with 0, not 3\n");
    process_fini(&process);
}

TEST(ExecCommand, DoesNotWriteOverItsScenario)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    process_run(&process, "exec f.yaml --ipc-trace f.yaml --on node0 true");
    EXPECT_EQ(process.status, 2);
    EXPECT_STREQ(process.errors, "tcasim: cannot write f.yaml: it is the scenario itself\n");
    char *text = process_file_read(&process, "f.yaml");
    EXPECT_STREQ(text, HARDWARE);
    free(text);
    process_fini(&process);
}

TEST(ExecCommand, WritesNamesOfProgramsAsYaml)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    process_file_write(&process, "we: ird", "#!/bin/sh\nexit 0\n");
    char path[128];
    snprintf(path, sizeof path, "%s/we: ird", process.directory);
    EXPECT_EQ(chmod(path, 0755), 0);
    process_run(&process, "exec f.yaml --out out --on node0 './we:_ird'");
    EXPECT_EQ(process.status, 0);
    char *text = process_file_read(&process, "out/exec.yaml");
    EXPECT_CONTAINS(text, "  - {program: \"./we: ird\", status: 0}\n");
    free(text);
    process_fini(&process);
}

TEST(ExecCommand, WritesTheSameHashInEveryRun)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    process_run(&process, "exec f.yaml --out a --on node0 true --on node1 true");
    process_run(&process, "exec f.yaml --out b --on node0 true --on node1 true");
    char *first = process_file_read(&process, "a/exec.yaml"), *second = process_file_read(&process, "b/exec.yaml");
    ASSERT_NOT_NULL(first);
    ASSERT_NOT_NULL(second);
    EXPECT_CONTAINS(first, "hash: ");
    EXPECT_STREQ(first, second);
    free(first);
    free(second);
    process_fini(&process);
}

TEST(ExecCommand, NamesWhatIsWrongWithItsArguments)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    process_run(&process, "exec f.yaml --on nod0 true");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "did you mean 'node0'?");
    process_run(&process, "exec f.yaml");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "there is nothing to run");
    process_run(&process, "exec f.yaml --on node0");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "every program needs an --on NODE");
    process_run(&process, "run f.yaml");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "it has no runs");
    process_fini(&process);
}

TEST(ExecCommand, ExplainsOnlyWhatWordsThatDoNotContradictEachOtherSelect)
{
    static const char *const selections[] = {"send_write", "8_B_4_KiB", "qp_5_qp_6", "#1_#2"};
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    for (size_t i = 0; i < sizeof selections / sizeof selections[0]; i++) {
        char words[128];
        TEST_TRACE("%s", selections[i]);
        snprintf(words, sizeof words, "exec f.yaml --explain %s --on node0 true", selections[i]);
        process_run(&process, words);
        EXPECT_EQ(process.status, 2);
        EXPECT_CONTAINS(process.errors, "': at most one kind, one size, one queue pair and one number\n");
    }
    process_fini(&process);
}

TEST(ExecCommand, ExplainsAtMost256OperationsOfAKindOneByOne)
{
    static const char *const selections[] = {"#1..257", "#5..4", "#0..3", "#1..", "#1..x"};
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    for (size_t i = 0; i < sizeof selections / sizeof selections[0]; i++) {
        char words[128];
        TEST_TRACE("%s", selections[i]);
        snprintf(words, sizeof words, "exec f.yaml --explain %s --on node0 true", selections[i]);
        process_run(&process, words);
        EXPECT_EQ(process.status, 2);
        EXPECT_CONTAINS(process.errors, "a number (#100) or 256 numbers at most (#1..256)\n");
    }
    process_run(&process, "exec f.yaml --explain #2..257 --on node0 true");
    EXPECT_EQ(process.status, 2); // there is no such operation
    EXPECT_CONTAINS(process.errors, "no operation (#2..257) could be explained");
    process_fini(&process);
}

TEST(ExecCommand, TakesAQuotedSemicolonAsAShellDoesAndNamesOneThatIsNot)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    process_run(&process, "exec f.yaml --on node0 echo_'verbs;ofi'_\"a;b\"_c\\;d");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.output, "verbs;ofi a;b c;d\n");
    process_run(&process, "exec f.yaml --on node0 echo_a;b");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "'echo a;b' is not a program and its arguments: one of | & ; ");
    process_run(&process, "exec f.yaml --on node0 echo_'a");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "a quote or a bracket is not closed");
    process_fini(&process);
}

TEST(ExecCommand, NamesTheSignalThatEndedAProgram)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    process_run(&process, "exec f.yaml --on node1 sh_-c_'kill_-ABRT_$$'");
    EXPECT_EQ(process.status, 128 + 6);
    EXPECT_CONTAINS(process.errors, "node1's sh (process ");
    EXPECT_CONTAINS(process.errors, ") was killed by signal 6 (SIGABRT) at ");
    process_fini(&process);
}

// pause(2) returns only after a signal, and none is sent.
TEST(ExecCommand, NamesAProgramThatWaitsForEver)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    process_run(&process, "exec f.yaml --wall-limit 1 --on node0 perl_-MPOSIX_-e_pause");
    EXPECT_EQ(process.status, 3);
    EXPECT_CONTAINS(process.errors, "node0.process1.thread0 (perl, process ");
    EXPECT_CONTAINS(process.errors, ") waits for ");
    process_fini(&process);
}

// A million iterations of an interpreter's loop between two reads of the clock.
TEST(ExecCommand, ChargesComputingWhereItIsToldTo)
{
    static const char command[] = "--on node0 perl_-MTime::HiRes=time_-e_'$a=time;"
                                  "for_my_$i_(1..1000000)_{$x+=$i}_print_time-$a>0.001?1:0'";
    char line[512];
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    snprintf(line, sizeof line, "exec f.yaml %s", command);
    process_run(&process, line);
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.output, "0");
    snprintf(line, sizeof line, "exec f.yaml --set nodes.*.host.compute=scaled %s", command);
    process_run(&process, line);
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.output, "1");
    EXPECT_CONTAINS(process.errors, "another run may differ: measured computing time is simulated time");
    process_fini(&process);
}

TEST(ExecCommand, EndsWithItsProgramsThoughTheyLeaveADaemon)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    process_run(&process, "exec f.yaml --on node0 sh_-c_'perl_-MPOSIX_-e_pause_&_exit_3'");
    EXPECT_EQ(process.status, 3);
    EXPECT_CONTAINS(process.errors, "node0's perl (process ");
    EXPECT_CONTAINS(process.errors, ") was left waiting by the programs, and was ended");
    process_fini(&process);
}

TEST(ExecCommand, EndsServersWithTheirClients)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    process_run(&process, "exec f.yaml --servers --on node0 perl_-MPOSIX_-e_pause --on node1 sh_-c_'exit_3'");
    EXPECT_EQ(process.status, 3);
    EXPECT_CONTAINS(process.errors, " waited for more when the others had ended, and was ended");
    process_fini(&process);
}

TEST(ExecCommand, EndsAProgramWithTheOthersIfItsKeySaysSo)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml",
                       HARDWARE "programs:\n  - {node: node0, command: perl -MPOSIX -e pause, ends: with-others}\n"
                                "  - {node: node1, command: sleep 5}\n");
    process_run(&process, "exec f.yaml");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.errors, "node0's perl (process ");
    EXPECT_CONTAINS(process.errors, ") waited for more when the others had ended, and was ended");
    process_file_write(
        &process, "g.yaml", // it never rests
        HARDWARE "programs:\n  - {node: node0, command: \"sh -c 'while :; do sleep 0.1; done'\", ends: with-others}\n"
                 "  - {node: node1, command: sleep 5}\n");
    process_run(&process, "exec g.yaml");
    EXPECT_EQ(process.status, 0);
    process_fini(&process);
}

// The hint is there only if a program has ended well.
TEST(ExecCommand, NamesTheOptionForServersWhereItMayHelp)
{
    static const char hint[] = "are ended with them by --servers, or ends: with-others";
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    process_run(&process, "exec f.yaml --on node0 perl_-MPOSIX_-e_pause --on node1 true");
    EXPECT_EQ(process.status, 3);
    EXPECT_CONTAINS(process.errors, hint);
    process_run(&process, "exec f.yaml --servers --on node0 perl_-MPOSIX_-e_pause");
    EXPECT_EQ(process.status, 3);
    EXPECT_LACKS(process.errors, hint);
    process_fini(&process);
}

TEST(ExecCommand, LeavesNoProgramBehindWhenItIsStopped)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml", HARDWARE);
    // A sleep would end at once, because its time is simulated.
    process_run_stopped(&process,
                        "exec f.yaml --on node0 sh_-c_'perl_-MPOSIX_-e_pause&_echo_$!>pid;perl_-MPOSIX_-e_pause'",
                        SIGINT, "pid");
    EXPECT_EQ(process.status, 130);
    char *text = process_file_read(&process, "pid");
    ASSERT_NOT_NULL(text);
    if (atoi(text) != 0) {
        EXPECT_EQ(kill(atoi(text), 0), -1);
        EXPECT_EQ(errno, ESRCH);
    }
    free(text);
    process_fini(&process);
}
