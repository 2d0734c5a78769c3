#include "sim/report/compare.h"

#include <math.h>
#include <string.h>

bool report_comparison_make(const report_t *report, const struct scn_check *check,
                            struct report_comparison *comparison_out)
{
    const struct report_reference *reference = report_references_find(&report->references, check->id);
    if (reference == NULL) {
        return false;
    }
    struct report_comparison comparison = {
        .what = check->what[0] != '\0' ? check->what : reference->what,
        .reference = reference,
        .taken = report_value_take(report, check),
        .scale = 1.0,
    };
    (void)report_value_scale(check, reference->unit, &comparison.scale);
    if (comparison.taken.found) {
        comparison.simulated = comparison.taken.value * comparison.scale;
        comparison.has_error =
            report_published_error(&reference->published, comparison.simulated, &comparison.error_percent);
    }
    *comparison_out = comparison;
    return true;
}

bool report_comparison_point(const report_t *report, const struct scn_check *check,
                             struct report_comparison *comparison_out)
{
    return !check->over.given && !report_value_is_bytes(check) &&
           report_comparison_make(report, check, comparison_out) && comparison_out->taken.row != NULL &&
           comparison_out->reference->published.kind != REPORT_PUBLISHED_TEXT;
}

const char *report_comparison_mark(const struct report_comparison *comparison)
{
    if (!comparison->has_error || strcmp(comparison->reference->use, "disputed") == 0) {
        return "";
    }
    double size = fabs(comparison->error_percent);
    if (size <= REPORT_OK_PERCENT) {
        return "ok";
    }
    return size <= REPORT_NEAR_PERCENT ? "near" : "off";
}

void report_simulated(const report_t *report, double *values_out)
{
    for (uint32_t i = 0; i < report->scenario->compare_count; i++) {
        struct report_comparison comparison;
        bool made = report_comparison_make(report, &report->scenario->compares[i], &comparison);
        values_out[i] = made && comparison.taken.found ? comparison.simulated : NAN;
    }
}
