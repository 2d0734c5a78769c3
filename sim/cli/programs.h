// Programs of the machine as a scenario or the command line names them: their words, and how they end.
//
// In a command, its environment and what it needs, `${NAME}` is a parameter of the scenario, `${PATH}` with a dot the
// value of a key as `tcasim check
// --list` shows it; what is neither is the environment's.
#pragma once

#include <wordexp.h>

#include "sim/attach/attach_run.h"
#include "sim/cli/cli.h"
#include "sim/scenario/scenario.h"

struct cli_programs {
    struct attach_program list[ATTACH_RUN_PROGRAMS_MAX];
    wordexp_t words[ATTACH_RUN_PROGRAMS_MAX], env[ATTACH_RUN_PROGRAMS_MAX];
    char *files[ATTACH_RUN_PROGRAMS_MAX][2]; // of standard input and output, owned; NULL: the simulator's
    int expected[ATTACH_RUN_PROGRAMS_MAX];   // statuses
    uint32_t count;
};

// A text with its parameters and keys in place of their names. To be freed; NULL: said why.
char *cli_programs_text(const struct scn_scenario *scenario, const char *text);

// Those of the scenario, in its order. false: said why.
bool cli_programs_of_scenario(struct cli_programs *programs, const struct scn_scenario *scenario);
bool cli_programs_add(struct cli_programs *programs, const struct scn_scenario *scenario, uint32_t node,
                      const char *command);
void cli_programs_free(struct cli_programs *programs);

// attach_run with SIGINT, SIGTERM and SIGHUP as requests to end it; puts their actions back. Returns the one that came,
// or 0.
int cli_programs_run(const struct scn_scenario *scenario, const struct attach_run_options *options,
                     enum sim_status *status_out, struct attach_run_result *result_out);

// The exit status of it all: the worst of the programs, or CLI_EXIT_INPUT, CLI_EXIT_STUCK or 130 where the simulation
// could not go on. path: the scenario's, for messages, which are printed.
int cli_programs_judge(const char *path, const struct cli_programs *programs, enum sim_status status,
                       const struct attach_run_result *result);

// Whether the simulation came to its end, so that what programs printed is all of it.
bool cli_programs_went_on(enum sim_status status, const struct attach_run_result *result);

// Why another run may differ: a line for each cause, behind prefix.
void cli_programs_outside_tell(const struct attach_run_result *result, const char *prefix, FILE *out);
