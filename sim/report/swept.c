// In a sweep, a check that names a series without a swept value applies to every value.
#include <stdlib.h>
#include <string.h>

#include "sim/report/results.h"

static bool is_bare(const struct scn_scenario *scenario, const struct scn_value *value)
{
    const char *series;
    for (uint32_t i = 0; value->given && (series = scn_series(scenario, i)) != NULL; i++) {
        if (strcmp(series, value->series) == 0) {
            return true;
        }
    }
    return false;
}

static void name_extend(char *name, size_t size, const char *curve)
{
    size_t length = strlen(name);
    if (curve[0] != '\0') {
        snprintf(name + length, size - length, ", %s", curve);
    }
}

// Is an earlier point of the same series?
static bool is_known(const struct scn_sweep *sweep, uint32_t point)
{
    bool known = false;
    for (uint32_t i = 0; i < point && !known; i++) {
        known = strcmp(sweep->points[i].curve, sweep->points[point].curve) == 0;
    }
    return known;
}

static struct scn_check at_curve(const report_t *report, const struct scn_check *check, const char *curve)
{
    struct scn_check result = *check;
    const struct report_reference *reference = report_references_find(&report->references, check->id);
    if (is_bare(report->scenario, &check->value)) {
        name_extend(result.value.series, sizeof result.value.series, curve);
    }
    if (is_bare(report->scenario, &check->over)) {
        name_extend(result.over.series, sizeof result.over.series, curve);
    }
    if (result.what[0] == '\0') {
        snprintf(result.what, sizeof result.what, "%s", reference != NULL ? reference->what : check->id);
    }
    name_extend(result.what, sizeof result.what, curve);
    return result;
}

struct scn_check *report_checks_make(const report_t *report, const struct scn_check *checks, uint32_t count,
                                     uint32_t *count_out)
{
    const struct scn_scenario *scenario = report->scenario;
    const uint32_t points = scenario->sweep != NULL ? scenario->sweep->point_count : 1;
    struct scn_check *made = calloc((size_t)count * points + 1, sizeof *made);
    if (made == NULL) {
        sim_panic("report", "out of memory for checks");
    }
    *count_out = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool bare =
            scenario->sweep != NULL && (is_bare(scenario, &checks[i].value) || is_bare(scenario, &checks[i].over));
        for (uint32_t k = 0; k < (bare ? points : 1); k++) {
            if (!bare) {
                made[(*count_out)++] = checks[i];
            } else if (!is_known(scenario->sweep, k)) {
                made[(*count_out)++] = at_curve(report, &checks[i], scenario->sweep->points[k].curve);
            }
        }
    }
    return made;
}
