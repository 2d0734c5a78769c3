// `tcasim predict`: results with their intervals as one file, to be published before somebody measures.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/cli.h"
#include "sim/cli/interval.h"
#include "sim/cli/load.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"
#include "sim/report/prediction.h"

struct predict_options {
    const char *out, *draws, *jobs;
    struct cli_list sets;
};

static const struct cli_option options[] = {
    {"out", "FILE", "write the prediction to FILE (default: results/<scenario name>/prediction.txt)", CLI_OPTION_TEXT,
     offsetof(struct predict_options, out)},
    {"draws", "N", "take N draws from the ranges of the presets (default: all that there are)", CLI_OPTION_TEXT,
     offsetof(struct predict_options, draws)},
    {"set", "PATH=VALUE", "override a key; may be given several times", CLI_OPTION_LIST,
     offsetof(struct predict_options, sets)},
    {"jobs", "N", "number of parallel points (default: the number of processors)", CLI_OPTION_TEXT,
     offsetof(struct predict_options, jobs)},
};

static const struct cli_syntax syntax = {
    .usage = "tcasim predict FILE.yaml [--out FILE] [--draws N] [--set PATH=VALUE]... [--jobs N]",
    .doc =
        "Runs the scenario as `tcasim run --interval` does, into results/<scenario name>, and writes the results, the\n"
        "intervals, the whole scenario and the revision of tcasim into one file under a hash. Published before\n"
        "somebody measures, it shows what was predicted; `tcasim compare FILE MEASURED.csv` compares it with the\n"
        "measurements.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands_min = 1,
    .operands_max = 1,
    .operand = "a scenario file",
};

// "results/<scenario name>", as `tcasim run` has it. false: printed why.
static bool directory_find(const struct predict_options *given, const char *scenario, char *directory, size_t size)
{
    struct cli_paths paths;
    cli_paths_find(&paths);
    struct scn_scenario *loaded = cli_scenario_load(scenario, &paths, &given->sets);
    if (loaded == NULL) {
        return false;
    }
    snprintf(directory, size, "results/%s", loaded->name);
    scn_free(loaded);
    return given->out == NULL || cli_output_usable(given->out, scenario, &paths);
}

static enum cli_exit scenario_run(const struct predict_options *given, const char *scenario, const char *directory)
{
    size_t count = 0;
    char interval[64];
    snprintf(interval, sizeof interval, given->draws != NULL ? "--interval=%s" : "--interval", given->draws);
    const char **words = calloc(given->sets.count * 2 + 12, sizeof *words);
    if (words == NULL) {
        cli_error("out of memory");
        return CLI_EXIT_INPUT;
    }
    words[count++] = "run";
    words[count++] = scenario;
    words[count++] = "--out";
    words[count++] = directory;
    words[count++] = interval;
    if (given->jobs != NULL) {
        words[count++] = "--jobs";
        words[count++] = given->jobs;
    }
    for (size_t i = 0; i < given->sets.count; i++) {
        words[count++] = "--set";
        words[count++] = given->sets.items[i];
    }
    enum cli_exit result = cli_run((int)count, (char **)words);
    free(words);
    return result;
}

static enum cli_exit predict(const struct predict_options *given, const char *scenario)
{
    if (given->draws != NULL && cli_interval_count("draws", given->draws) == 0) {
        return CLI_EXIT_INPUT;
    }
    char directory[PATH_MAX], path[PATH_MAX + 32], hash[80], error[2 * PATH_MAX];
    if (!directory_find(given, scenario, directory, sizeof directory)) {
        return CLI_EXIT_INPUT;
    }
    enum cli_exit result = scenario_run(given, scenario, directory);
    if (result > CLI_EXIT_EXPECT) {
        return result;
    }
    snprintf(path, sizeof path, "%s/prediction.txt", directory);
    const char *out = given->out != NULL ? given->out : path;
    if (prediction_write(directory, out, hash, sizeof hash, error, sizeof error) != SIM_OK) {
        cli_error("%s", error);
        return CLI_EXIT_INPUT;
    }
    printf("Prediction: %s, SHA-256 %s\n", out, hash);
    return result;
}

enum cli_exit cli_predict(int argc, char **argv)
{
    struct predict_options given = {0};
    struct cli_list files = {0};
    enum cli_exit result = CLI_EXIT_OK;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &given, &files);
    if (parsed == CLI_PARSED_RUN) {
        result = predict(&given, files.items[0]);
    }
    cli_list_free(&given.sets);
    cli_list_free(&files);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : result;
}
