// Programs that a scenario or the command line names: their words, and how they end.
//
// In a command, its environment and what it needs, `${NAME}` is a parameter of the scenario, and `${PATH}` with a dot
// is the value of a key as in `resolved.yaml`. Any other name is a variable of the environment.
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

// A text in which names of parameters and keys are replaced by their values. To be freed; NULL: printed why.
char *cli_programs_text(const struct scn_scenario *scenario, const char *text);

// The programs of the scenario, in its order. false: printed why.
bool cli_programs_of_scenario(struct cli_programs *programs, const struct scn_scenario *scenario);
bool cli_programs_add(struct cli_programs *programs, const struct scn_scenario *scenario, uint32_t node,
                      const char *command);
void cli_programs_free(struct cli_programs *programs);

// Calls attach_run, with SIGINT, SIGTERM and SIGHUP as requests to end it, and restores their actions. Returns the
// signal that came, or 0.
int cli_programs_run(const struct scn_scenario *scenario, const struct attach_run_options *options,
                     enum sim_status *status_out, struct attach_run_result *result_out);

// The overall exit status: the worst of the programs', or CLI_EXIT_INPUT, CLI_EXIT_STUCK or 130 if the simulation did
// not complete. path: the scenario's, for messages, which are printed.
int cli_programs_judge(const char *path, const struct cli_programs *programs, enum sim_status status,
                       const struct attach_run_result *result);

// Did the simulation complete, so that the output of programs is complete, too?
bool cli_programs_went_on(enum sim_status status, const struct attach_run_result *result);

// Prints why another run may differ: a line for each cause, after prefix.
void cli_programs_outside_print(const struct attach_run_result *result, const char *prefix, FILE *out);
