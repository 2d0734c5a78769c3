// The keys of programs of this machine: their start, and the results in their output.
#include "sim/scenario/keys.h"

static const struct scn_choice formats[] = {{"none", SCN_FORMAT_NONE},
                                            {"perftest", SCN_FORMAT_PERFTEST},
                                            {"osu", SCN_FORMAT_OSU},
                                            {"csv", SCN_FORMAT_CSV},
                                            {NULL, 0}};

static const struct scn_choice ends[] = {
    {"by-itself", SCN_ENDS_BY_ITSELF}, {"with-others", SCN_ENDS_WITH_OTHERS}, {NULL, 0}};

static const struct scn_key parameter_keys[] = {
    {.name = "name",
     .unit = SCN_UNIT_TEXT,
     .min = 1,
     SCN_FIELD(struct scn_parameter, name),
     .doc = "name by which commands refer to the parameter"},
    {.name = "value",
     .unit = SCN_UNIT_TEXT,
     SCN_FIELD(struct scn_parameter, value),
     .doc = "text that replaces ${NAME} in commands"},
};
const struct scn_kind scn_kind_parameter = {.name = "parameter",
                                            .doc = "a text that commands of programs refer to as ${NAME}",
                                            SCN_ROWS(parameter_keys),
                                            .size = sizeof(struct scn_parameter)};

static const struct scn_key results_keys[] = {
    {.name = "series",
     .unit = SCN_UNIT_TEXT,
     .min = 1,
     SCN_FIELD(struct scn_results, series),
     .doc = "name of the series of the program's rows in data.csv"},
    {.name = "format",
     .unit = SCN_UNIT_CHOICE,
     .choices = formats,
     .fallback = "none",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_results, format),
     .doc = "format of the output. perftest, osu: tables of these benchmarks; csv: a line with names of columns of "
            "data.csv, then lines of numbers"},
    {.name = "columns",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_results, columns),
     .doc = "instead of format: the columns of data.csv, a name for each word of a line; - skips a word. Lines with "
            "another number of words are not results"},
};
const struct scn_kind scn_kind_results = {.name = "results",
                                          .doc = "the part of a program's output that becomes rows of data.csv",
                                          SCN_ROWS(results_keys),
                                          .size = sizeof(struct scn_results)};

static const struct scn_key outside_keys[] = {
    {.name = "name",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_outside, name),
     .doc = "name by which expectations refer to the program; unless given, the name of its file, if no other program "
            "has it"},
    {.name = "node",
     .unit = SCN_UNIT_NODE,
     SCN_FIELD(struct scn_outside, node),
     .doc = "node on which the program runs"},
    {.name = "command",
     .unit = SCN_UNIT_TEXT,
     .min = 1,
     SCN_FIELD(struct scn_outside, command),
     .doc = "the program and its arguments, split into words as by a shell; ${NAME} is a parameter, the path of a key, "
            "or a variable of the environment"},
    {.name = "env",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     SCN_FIELD(struct scn_outside, env),
     .doc = "NAME=VALUE ..., added to the program's environment"},
    {.name = "needs",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     SCN_FIELD(struct scn_outside, needs),
     .doc = "programs that the program itself starts; `tcasim run` reports those that are not installed; ${NAME} as in "
            "command"},
    {.name = "stdin",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     SCN_FIELD(struct scn_outside, stdin_path),
     .doc = "file that is the program's standard input; unless given, that of tcasim"},
    {.name = "stdout",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     SCN_FIELD(struct scn_outside, stdout_path),
     .doc = "file for the program's standard output; unless given, that of tcasim"},
    {.name = "status",
     .unit = SCN_UNIT_INTEGER,
     .fallback = "0",
     .max = 255,
     SCN_FIELD(struct scn_outside, status),
     .doc = "exit status with which the program must end"},
    {.name = "ends",
     .unit = SCN_UNIT_CHOICE,
     .choices = ends,
     .fallback = "by-itself",
     SCN_FIELD(struct scn_outside, ends),
     .doc = "with-others: a server that never ends; when the other programs have ended, and it waits for more or a "
            "second of "
            "simulated time has passed, it is ended, and its status counts as 0"},
    {.name = "gpu_mpi",
     .unit = SCN_UNIT_BOOL,
     .fallback = "false",
     SCN_FIELD(struct scn_outside, gpu_mpi),
     .doc = "the program's MPI accepts pointers to device memory, whichever MPI it is"},
    {.name = "results",
     .unit = SCN_UNIT_OBJECT,
     .child = &scn_kind_results,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_outside, results),
     .doc = "rows of data.csv that `tcasim run` takes from the program's output"},
};
const struct scn_kind scn_kind_outside = {.name = "program",
                                          .doc = "a program of this machine that runs on a node",
                                          SCN_ROWS(outside_keys),
                                          .size = sizeof(struct scn_outside)};
