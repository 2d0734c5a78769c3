// Runs another program of this machine and keeps what it prints. No shell.
#pragma once

#include <stdbool.h>

struct cli_tool {
    bool found; // a program of that name is in PATH
    int status; // exit status; 128 + signal
    char *output, *errors;
};

// argv[0] is looked up in PATH. A program that lasts longer than `seconds` is killed. Variables of the environment that
// would change what Slurm's commands print are left out. false: printed why, and there is nothing to free.
bool cli_tool_run(const char *const *argv, unsigned seconds, struct cli_tool *tool);
void cli_tool_fini(struct cli_tool *tool);

// What it says went wrong: the last line of its errors, which is why it gave up, without "sbatch: error: ". Until
// cli_tool_fini.
const char *cli_tool_reason(struct cli_tool *tool);
