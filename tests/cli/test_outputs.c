// Files that the user names are tried before a run.
#include "process.h"
#include "tests/shim/test.h"

// /proc takes no files, not even root's.
TEST(Outputs, ThatCannotBeWrittenAreRefusedBeforeTheRun)
{
    static const char *const commands[] = {"run f.yaml --quiet --out /proc/d",
                                           "explain f.yaml --quiet --out /proc/d",
                                           "explain f.yaml --timeline /proc/t",
                                           "exec f.yaml --on node0 touch_ran --out /proc/d",
                                           "exec f.yaml --on node0 touch_ran --out d --json /proc/j",
                                           "exec f.yaml --on node0 touch_ran --junit /proc/j",
                                           "exec f.yaml --on node0 touch_ran --trace /proc/t",
                                           "exec f.yaml --on node0 touch_ran --ipc-trace /proc/t",
                                           "exec f.yaml --on node0 touch_ran --explain send --timeline /proc/t"};
    struct process process;
    process_init(&process);
    process_file_write(
        &process, "f.yaml",
        "title: a pair\n"
                       "nodes:\n"
        "  - {name: node, count: 2, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}}\n"
        "cables:\n"
        "  - {from: node0.E, to: node1.W, preset: pearl-gen2-x8}\n"
        "runs: [{series: p, workload: pingpong, method: pio, node: node0, peer: node1, bytes: [8 B]}]\n");
    for (unsigned i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        process_run(&process, commands[i]);
        EXPECT_EQ(process.status, 2);
        EXPECT_CONTAINS(process.errors, "tcasim: cannot write ");
        EXPECT_EQ(process_entries(&process), 1);
    }
    process_fini(&process);
}
