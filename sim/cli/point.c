#include "sim/cli/point.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cli/interrupt.h"
#include "sim/cli/interval.h"
#include "sim/cli/load.h"
#include "sim/cli/printing.h"

bool cli_sweep_init(struct cli_sweep *sweep, const struct cli_job *job, const struct scn_sweep *asked,
                    const char *folder)
{
    *sweep = (struct cli_sweep){.job = job, .asked = asked};
    sweep->anew = job->fresh || cli_printing_is_asked(job->scenario); // the point's name leaves out programs
    if ((size_t)snprintf(sweep->directory, sizeof sweep->directory, "%s/%s", job->directory, folder) >=
        sizeof sweep->directory) {
        cli_error("%s: the name of the directory is too long", job->directory);
        return false;
    }
    sweep->points = calloc(sweep->asked->point_count, sizeof *sweep->points);
    if (sweep->points == NULL) {
        cli_error("out of memory");
    }
    return sweep->points != NULL;
}

void cli_sweep_fini(struct cli_sweep *sweep)
{
    for (uint32_t i = 0; i < sweep->asked->point_count && sweep->points != NULL; i++) {
        free(sweep->points[i].why);
    }
    free(sweep->points);
}

struct scn_scenario *cli_sweep_point_load(const struct cli_sweep *sweep, uint32_t i)
{
    const struct cli_job *job = sweep->job;
    return cli_point_load(job->path, job->paths, job->sets, &sweep->asked->points[i], NULL);
}

const char *cli_sweep_label(const struct cli_sweep *sweep, uint32_t i)
{
    return sweep->asked->points[i].label;
}

const char *cli_sweep_point_title(const struct cli_sweep *sweep, uint32_t i)
{
    static char title[PATH_MAX + 256];
    snprintf(title, sizeof title, "%s (%s)", sweep->job->path, cli_sweep_label(sweep, i));
    return title;
}

bool cli_sweep_point_name(struct cli_sweep *sweep, uint32_t i)
{
    struct scn_scenario *scenario = cli_sweep_point_load(sweep, i);
    bool named = scenario != NULL && report_point_name(scenario, sweep->points[i].name) == SIM_OK;
    scn_free(scenario);
    if (!named) {
        cli_error("%s: cannot be named", cli_sweep_point_title(sweep, i));
    }
    return named;
}

static enum cli_exit point_measure(const struct cli_job *job, const char *directory, const char *name)
{
    char error[512] = "";
    report_t *report = NULL;
    if (report_create(job->scenario, job->reference_csv, &report) != SIM_OK) {
        return CLI_EXIT_INPUT;
    }
    enum cli_exit result = cli_job_measure(job, report);
    if (result == CLI_EXIT_OK) {
        cli_interrupt_hold();
        if (report_point_write(report, directory, name, error, sizeof error) != SIM_OK) {
            cli_error("%s", error);
            result = CLI_EXIT_INPUT;
        }
        cli_interrupt_release();
    } else {
        report_faults_print(report, stderr); // a point that failed has no results that would show them
    }
    report_destroy(report);
    return result;
}

enum cli_exit cli_sweep_point_measure(const struct cli_sweep *sweep, uint32_t i, struct scn_scenario *scenario)
{
    struct cli_job job = *sweep->job;
    job.path = cli_sweep_point_title(sweep, i);
    job.scenario = scenario;
    job.quiet = true;
    job.jobs = 1; // the points are what is measured in parallel
    return point_measure(&job, sweep->directory, sweep->points[i].name);
}

// --- one point alone ------------------------------------------------------------------------------------------------

// Reads "K" or "K:NAME"; *name_out: NULL without a name.
static bool given_read(const struct cli_sweep *sweep, const char *given, uint32_t *point_out, const char **name_out)
{
    char *end = NULL;
    uint64_t number = 0;
    uint32_t count = sweep->asked->point_count;
    if (!cli_number_read(given, &end, &number) || (*end != '\0' && *end != ':') || number < 1 || number > count) {
        cli_error("--point %s: expected the number of a point of the sweep, 1 to %u", given, count);
        return false;
    }
    *point_out = (uint32_t)number - 1;
    *name_out = *end == ':' ? end + 1 : NULL;
    return true;
}

static enum cli_exit missing_measure(struct cli_sweep *sweep, uint32_t i)
{
    const char *name = sweep->points[i].name;
    bool kept = !sweep->anew && report_point_exists(sweep->directory, name);
    enum cli_exit result = CLI_EXIT_OK;
    if (!kept) {
        struct scn_scenario *scenario = cli_sweep_point_load(sweep, i);
        report_point_remove(sweep->directory, name);
        result = scenario != NULL ? cli_sweep_point_measure(sweep, i, scenario) : CLI_EXIT_INPUT;
        scn_free(scenario);
    }
    if (result == CLI_EXIT_OK && cli_job_prints(sweep->job)) {
        printf("Point %u of %u (%s): %s %s/%s.csv\n", i + 1, sweep->asked->point_count, cli_sweep_label(sweep, i),
               kept ? "an earlier run measured" : "measured", sweep->directory, name);
    }
    return result;
}

enum cli_exit cli_point_run(const struct cli_job *job, const char *given)
{
    struct cli_sweep sweep;
    uint32_t i = 0;
    const char *name = NULL;
    enum cli_exit result = CLI_EXIT_INPUT;
    cli_interrupt_loss_set("the point is not measured");
    const struct scn_sweep *asked = job->draws != NULL ? cli_draws_asked(job->draws) : job->scenario->sweep;
    if (cli_sweep_init(&sweep, job, asked, job->draws != NULL ? CLI_DRAWS_FOLDER : "points") &&
        given_read(&sweep, given, &i, &name) && cli_sweep_point_name(&sweep, i)) {
        if (name != NULL && strcmp(name, sweep.points[i].name) != 0) {
            cli_error("%s: the program or a file that it reads was changed since the point was named %.12s...",
                      cli_sweep_point_title(&sweep, i), name);
        } else {
            result = missing_measure(&sweep, i);
        }
    }
    cli_sweep_fini(&sweep);
    cli_interrupt_loss_set(NULL);
    return result;
}
