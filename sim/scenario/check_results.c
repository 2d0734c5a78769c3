// Rules about results: names of series, numbers, comparisons, and the output of programs. Expectations:
// check_expect.c.
#include <inttypes.h>
#include <string.h>

#include "sim/scenario/loader.h"
#include "sim/scenario/names.h"

// --- series ---------------------------------------------------------------------------------------------------------

const char *scn_series(const struct scn_scenario *scenario, uint32_t index)
{
    if (index < scenario->run_count) {
        return scenario->runs[index].series;
    }
    index -= scenario->run_count;
    for (uint32_t i = 0; i < scenario->outside_count; i++) {
        const char *series = scenario->outsides[i].results.series;
        if (series[0] != '\0' && index-- == 0) {
            return series;
        }
    }
    return NULL;
}

static void check_series_names(struct scn_loader *loader)
{
    const char *series;
    for (uint32_t i = 0; (series = scn_series(loader->scenario, i)) != NULL; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (series[0] != '\0' && strcmp(series, scn_series(loader->scenario, j)) == 0) {
                scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, series, series),
                                 "series: two runs or programs are called '%s'", series);
                break;
            }
        }
    }
}

static bool is_series(const struct scn_loader *loader, const char *name, struct scn_nearest *nearest)
{
    const struct scn_scenario *scenario = loader->scenario;
    bool known = false; // a name without a swept value means the series at every value
    uint32_t points = scenario->sweep != NULL ? scenario->sweep->point_count : 1;
    const char *bare;
    for (uint32_t i = 0; (bare = scn_series(scenario, i)) != NULL; i++) {
        for (uint32_t k = 0; k < points; k++) {
            char series[2 * SCN_NAME_MAX];
            scn_sweep_series_make(scenario, bare, k, series, sizeof series);
            known = known || strcmp(series, name) == 0 || strcmp(bare, name) == 0;
            scn_nearest_offer(nearest, scn_arena_format(loader->arena, "%s", series));
        }
    }
    return known;
}

// False: series are bad, or programs that print CSV name the series of their rows themselves.
static bool names_are_known(const struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    const char *series;
    bool known = !scn_loader_is_bad(loader, &scenario->run_count, true) &&
                 !scn_loader_is_bad(loader, &scenario->outside_count, true);
    for (uint32_t i = 0; (series = scn_series(scenario, i)) != NULL; i++) {
        known = known && scn_loader_is_good(loader, series);
    }
    for (uint32_t i = 0; i < scenario->outside_count; i++) {
        known = known && scenario->outsides[i].results.format != SCN_FORMAT_CSV;
    }
    return known;
}

static void check_series(struct scn_loader *loader, const char *series, struct scn_location location)
{
    struct scn_nearest nearest;
    scn_nearest_init(&nearest, series);
    // One point of a sweep does not have the series of the other points.
    bool known =
        is_series(loader, series, &nearest) || loader->without_sweep || loader->sweep_is_bad || loader->sweep_collapsed;
    known = known || !names_are_known(loader);
    if (!known && nearest.name != NULL) {
        scn_mistakes_add(&loader->mistakes, location, "series: no run is called '%s' (did you mean '%s'?)", series,
                         nearest.name);
    } else if (!known) {
        scn_mistakes_add(&loader->mistakes, location, "series: no run is called '%s'", series);
    }
}

static void check_value(struct scn_loader *loader, const struct scn_value *value)
{
    if (!value->given || !scn_loader_is_good(loader, value->series)) {
        return;
    }
    check_series(loader, value->series, scn_loader_location(loader, value->series, value));
    if (value->bytes_min > value->bytes_max || value->descriptors_min > value->descriptors_max) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, value, value), "value: from is larger than to");
    }
}

// Does the value name a point that --set has left out of the sweep?
static bool is_left_out(const struct scn_loader *loader, const char *series)
{
    struct scn_nearest nearest;
    scn_nearest_init(&nearest, series);
    return series[0] != '\0' && names_are_known(loader) && !is_series(loader, series, &nearest);
}

static void checks_keep(const struct scn_loader *loader, struct scn_check *checks, uint32_t *count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        if (!is_left_out(loader, checks[i].value.series) && !is_left_out(loader, checks[i].over.series) &&
            !is_left_out(loader, checks[i].observed.series)) {
            checks[kept++] = checks[i];
        }
    }
    *count = kept;
}

// Expectations and comparisons of points that --set has left out are not made.
static void checks_leave_out(struct scn_loader *loader)
{
    struct scn_scenario *scenario = loader->scenario;
    uint32_t before = scenario->expect_count + scenario->compare_count;
    checks_keep(loader, scenario->expects, &scenario->expect_count);
    checks_keep(loader, scenario->compares, &scenario->compare_count);
    uint32_t left_out = before - scenario->expect_count - scenario->compare_count;
    if (left_out > 0) {
        scn_mistakes_warn(&loader->mistakes, loader->sweep_location,
                          "sweep: %" PRIu32 " of expect: and compare: name points that --set leaves out", left_out);
    }
}

static void check_check(struct scn_loader *loader, const struct scn_check *check)
{
    check_value(loader, &check->value);
    check_value(loader, &check->over);
    if (check->observed.series[0] != '\0' && check->observed.counter[0] != '\0') {
        check_series(loader, check->observed.series, scn_loader_location(loader, check->observed.series, check));
    }
    struct scn_location location = scn_loader_location(loader, check, check);
    bool first = check->first_reaching != 0, last = check->last_reaching != 0;
    bool needs_over = check->per_row || check->difference || first || last;
    if (needs_over && !check->over.given && !scn_loader_is_bad(loader, &check->over, true)) {
        scn_mistakes_add(&loader->mistakes, location, "%s needs over:",
                         check->per_row      ? "per_row:"
                         : check->difference ? "difference:"
                         : first             ? "first_reaching:"
                                             : "last_reaching:");
    }
    if (check->difference && (first || last)) {
        scn_mistakes_add(&loader->mistakes, location, "'difference' and '%s' exclude each other",
                         first ? "first_reaching" : "last_reaching");
    }
    if (first && last) {
        scn_mistakes_add(&loader->mistakes, location, "'first_reaching' and 'last_reaching' exclude each other");
    }
}

// --- programs -------------------------------------------------------------------------------------------------------

static void check_results(struct scn_loader *loader, const struct scn_outside *program)
{
    const struct scn_results *results = &program->results;
    struct scn_location location = scn_loader_location(loader, results, results);
    bool format = results->format != SCN_FORMAT_NONE, columns = results->columns[0] != '\0';
    if (results->series[0] == '\0' || !scn_loader_is_good(loader, &results->format)) {
        return;
    }
    if (format == columns) {
        scn_mistakes_add(&loader->mistakes, location, "results: %s",
                         format ? "'format' and 'columns' exclude each other" : "needs format: or columns:");
    }
    if (program->stdout_path[0] != '\0') {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, program->stdout_path, program),
                         "stdout: results are read from it, and it is kept beside them");
    }
}

static void check_program_names(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    for (uint32_t i = 0; i < scenario->outside_count; i++) {
        const char *name = scenario->outsides[i].name;
        struct scn_location location = scn_loader_location(loader, name, &scenario->outsides[i]);
        if (name[0] != '\0' && !scn_name_is_plain(name, true)) {
            scn_mistakes_add(&loader->mistakes, location, "name: '%s' may have letters, digits, '.', '-' and '_' only",
                             name);
        }
        for (uint32_t k = 0; k < i; k++) {
            if (name[0] != '\0' && strcmp(name, scenario->outsides[k].name) == 0) {
                scn_mistakes_add(&loader->mistakes, location, "name: two programs are called '%s'", name);
                break;
            }
        }
    }
}

static void check_parameters(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    for (uint32_t i = 0; i < scenario->parameter_count; i++) {
        const char *name = scenario->parameters[i].name;
        struct scn_location location = scn_loader_location(loader, name, name);
        if (name[0] != '\0' && !scn_name_is_plain(name, false)) {
            scn_mistakes_add(&loader->mistakes, location, "name: '%s' may have letters, digits, '-' and '_' only",
                             name);
        }
        for (uint32_t k = 0; k < i; k++) {
            if (name[0] != '\0' && strcmp(name, scenario->parameters[k].name) == 0) {
                scn_mistakes_add(&loader->mistakes, location, "name: two parameters are called '%s'", name);
            }
        }
    }
}

static void check_value_given(struct scn_loader *loader, const struct scn_check *compare)
{
    if (!compare->value.given && !scn_loader_is_bad(loader, compare, true) &&
        !scn_loader_is_bad(loader, &compare->value, true)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, compare, compare),
                         "missing key 'value' in check");
    }
}

void scn_check_results(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    check_parameters(loader);
    for (uint32_t i = 0; i < scenario->outside_count; i++) {
        check_results(loader, &scenario->outsides[i]);
    }
    check_program_names(loader);
    check_series_names(loader);
    for (uint32_t i = 0; i < scenario->expect_count; i++) {
        check_check(loader, &scenario->expects[i]);
        scn_check_expect(loader, &scenario->expects[i]);
    }
    for (uint32_t i = 0; i < scenario->compare_count; i++) {
        check_check(loader, &scenario->compares[i]);
        check_value_given(loader, &scenario->compares[i]);
    }
    if (loader->sweep_collapsed && loader->mistakes.count == 0) {
        checks_leave_out(loader);
    }
}
