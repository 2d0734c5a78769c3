#include "sim/cli/calibrate_measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/cli/interrupt.h"
#include "sim/cli/load.h"
#include "sim/cli/pool.h"

enum { SETTINGS_MAX = CALIBRATION_KEYS_MAX * CALIBRATION_PATHS_MAX + 1 };

struct batch {
    const struct calibrate_measure *measure;
    const struct search_point *points;
    FILE *scratch; // of all children: a row has its place
    enum cli_exit *results;
};

// --- a scenario at a point ------------------------------------------------------------------------------------------

// Returns their number; they are to be freed.
static size_t settings_make(const struct calibrate_measure *measure, const struct search_point *point,
                            char *settings[SETTINGS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; point != NULL && i < measure->calibration->key_count; i++) {
        const struct calibration_key *key = &measure->calibration->keys[i];
        char value[CALIBRATION_VALUE_MAX];
        calibration_value_format(key, point->indices[i], value);
        for (size_t k = 0; k < key->path_count; k++) {
            count += asprintf(&settings[count], "%s=%s", key->paths[k], value) >= 0 ? 1 : 0;
        }
    }
    count += asprintf(&settings[count], "fidelity=%s", measure->fidelity) >= 0 ? 1 : 0;
    return count;
}

struct scn_scenario *calibrate_load(const struct calibrate_measure *measure, size_t scenario,
                                    const struct search_point *point)
{
    char *settings[SETTINGS_MAX];
    size_t count = settings_make(measure, point, settings);
    const struct cli_list sets = {(const char **)settings, count};
    struct scn_scenario *loaded = cli_scenario_load(measure->calibration->scenarios[scenario], measure->paths, &sets);
    while (count > 0) {
        free(settings[--count]); // messages were printed, and the scenario has copies
    }
    return loaded;
}

// --- children -------------------------------------------------------------------------------------------------------

static size_t scenario_of(const struct batch *batch, size_t child)
{
    return child % batch->measure->calibration->scenario_count;
}

static const struct search_point *point_of(const struct batch *batch, size_t child)
{
    return &batch->points[child / batch->measure->calibration->scenario_count];
}

static const char *child_name(void *ctx, size_t i)
{
    const struct batch *batch = ctx;
    return batch->measure->calibration->scenarios[scenario_of(batch, i)];
}

// Where the child's values are in the scratch file.
static off_t place_of(const struct batch *batch, size_t child)
{
    size_t point = child / batch->measure->calibration->scenario_count;
    return (off_t)((point * batch->measure->row_count + batch->measure->first_rows[scenario_of(batch, child)]) *
                   sizeof(double));
}

static enum cli_exit scenario_measure(const struct batch *batch, size_t i, struct scn_scenario *scenario)
{
    static const struct cli_list none = {0};
    const struct cli_job job = {.path = child_name((void *)batch, i),
                                .scenario = scenario,
                                .sets = &none,
                                .paths = batch->measure->paths,
                                .reference_csv = batch->measure->paths->reference,
                                .jobs = 1,
                                .quiet = true};
    report_t *report = NULL;
    double values[SCN_CHECKS_MAX];
    if (report_create(scenario, job.reference_csv, &report) != SIM_OK) {
        return CLI_EXIT_INPUT;
    }
    enum cli_exit result = cli_job_measure(&job, report);
    if (result == CLI_EXIT_OK) {
        size_t bytes = scenario->compare_count * sizeof values[0];
        report_simulated(report, values);
        result = pwrite(fileno(batch->scratch), values, bytes, place_of(batch, i)) == (ssize_t)bytes ? CLI_EXIT_OK
                                                                                                     : CLI_EXIT_INPUT;
    }
    report_destroy(report);
    return result;
}

static enum cli_exit child_run(void *ctx, size_t i)
{
    const struct batch *batch = ctx;
    struct scn_scenario *scenario = calibrate_load(batch->measure, scenario_of(batch, i), point_of(batch, i));
    enum cli_exit result = scenario != NULL ? scenario_measure(batch, i, scenario) : CLI_EXIT_INPUT;
    scn_free(scenario);
    return result;
}

static void point_print(const struct batch *batch, size_t child)
{
    char *settings[SETTINGS_MAX];
    size_t count = settings_make(batch->measure, point_of(batch, child), settings);
    fprintf(stderr, "tcasim: %s: this point has no values:", child_name((void *)batch, child));
    for (size_t i = 0; i < count; i++) {
        fprintf(stderr, " --set '%s'", settings[i]);
        free(settings[i]);
    }
    fputc('\n', stderr);
}

static void child_ended(void *ctx, size_t i, enum cli_exit result)
{
    struct batch *batch = ctx;
    batch->results[i] = result;
}

// --- all of them ----------------------------------------------------------------------------------------------------

static bool values_read(const struct batch *batch, size_t count, double *values_out)
{
    const struct calibrate_measure *measure = batch->measure;
    size_t scenarios = measure->calibration->scenario_count, numbers = count * measure->row_count;
    for (size_t i = 0; i < numbers; i++) {
        values_out[i] = NAN;
    }
    for (size_t child = 0; child < count * scenarios; child++) {
        size_t scenario = child % scenarios, first = measure->first_rows[scenario];
        size_t end = scenario + 1 < scenarios ? measure->first_rows[scenario + 1] : measure->row_count;
        size_t bytes = (end - first) * sizeof(double);
        double *into = values_out + child / scenarios * measure->row_count + first;
        if (batch->results[child] != CLI_EXIT_OK) {
            point_print(batch, child);
        } else if (pread(fileno(batch->scratch), into, bytes, place_of(batch, child)) != (ssize_t)bytes) {
            cli_error("the scratch file cannot be read");
            return false;
        }
    }
    return true;
}

bool calibrate_measure(const struct calibrate_measure *measure, const struct search_point *points, size_t count,
                       double *values_out)
{
    static const struct cli_pool_ops ops = {.run = child_run, .ended = child_ended, .name = child_name};
    size_t children = count * measure->calibration->scenario_count;
    struct batch batch = {measure, points, tmpfile(), calloc(children, sizeof *batch.results)};
    bool measured = false;
    if (batch.scratch == NULL || batch.results == NULL) {
        cli_error("no memory or no scratch file for the values of %zu simulations", children);
    } else {
        const struct cli_pool pool = {&ops, &batch, children, measure->jobs, "simulations", measure->progress};
        measured = cli_pool_run(&pool);
        cli_progress_fini(measure->progress);
        measured = measured && values_read(&batch, count, values_out);
    }
    if (batch.scratch != NULL) {
        (void)fclose(batch.scratch);
    }
    free(batch.results);
    return measured;
}
