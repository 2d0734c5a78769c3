// Subjects of expectations (programs by name), and the labels and bounds of expectations.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/scenario.h"

// --- programs -------------------------------------------------------------------------------------------------------

// The file name in the command's first word; empty if a shell changes the word (quotes, variables, patterns).
static void file_name(const char *command, char name[SCN_NAME_MAX])
{
    command += strspn(command, " ");
    size_t length = strcspn(command, " "), begin = length;
    while (begin > 0 && command[begin - 1] != '/') {
        begin--;
    }
    bool plain = strcspn(command, "$\"'\\*?[~`") >= length && length - begin < SCN_NAME_MAX;
    snprintf(name, SCN_NAME_MAX, "%.*s", plain ? (int)(length - begin) : 0, command + begin);
}

void scn_outside_name(const struct scn_scenario *scenario, uint32_t index, char name[SCN_NAME_MAX])
{
    const struct scn_outside *outside = &scenario->outsides[index];
    if (outside->name[0] != '\0') {
        snprintf(name, SCN_NAME_MAX, "%s", outside->name);
    } else {
        file_name(outside->command, name);
    }
}

// Searches the programs with a `name:`, or the others.
static uint32_t find_among(const struct scn_scenario *scenario, const char *name, bool named, uint32_t *count_out)
{
    uint32_t found = SCN_OUTSIDES_MAX;
    *count_out = 0;
    for (uint32_t i = 0; i < scenario->outside_count; i++) {
        char own[SCN_NAME_MAX];
        scn_outside_name(scenario, i, own);
        if ((scenario->outsides[i].name[0] != '\0') == named && strcmp(own, name) == 0) {
            found = *count_out == 0 ? i : found;
            ++*count_out;
        }
    }
    return found;
}

uint32_t scn_outside_find(const struct scn_scenario *scenario, const char *name, uint32_t *count_out)
{
    uint32_t found = find_among(scenario, name, true, count_out);
    return *count_out > 0 ? found : find_among(scenario, name, false, count_out);
}

bool scn_outside_is_observed(const struct scn_scenario *scenario, uint32_t index)
{
    bool series = false, named = false;
    for (uint32_t i = 0; i < scenario->expect_count; i++) {
        const struct scn_check *expect = &scenario->expects[i];
        uint32_t count;
        series = series || scn_check_subject(expect) == SCN_SUBJECT_SERIES;
        named = named || (expect->observed.program[0] != '\0' &&
                          scn_outside_find(scenario, expect->observed.program, &count) == index);
    }
    // A program that prints CSV names its series itself, so any series may be one of its own.
    return named || (series && scenario->outsides[index].results.series[0] != '\0');
}

// --- expectations ---------------------------------------------------------------------------------------------------

enum scn_subject scn_check_subject(const struct scn_check *check)
{
    const struct scn_observed *observed = &check->observed;
    if (observed->counter[0] != '\0') {
        return SCN_SUBJECT_COUNTER;
    }
    if (observed->program[0] == '\0') {
        return SCN_SUBJECT_SERIES;
    }
    return observed->match[0] != '\0' ? SCN_SUBJECT_MATCH : SCN_SUBJECT_OUTPUT;
}

void scn_check_label(const struct scn_check *check, char *label, size_t size)
{
    const struct scn_observed *observed = &check->observed;
    if (check->id[0] != '\0') {
        snprintf(label, size, "%s", check->id);
        return;
    }
    switch (scn_check_subject(check)) {
    case SCN_SUBJECT_SERIES:
        snprintf(label, size, "%s: %s", check->value.series, check->value.column);
        break;
    case SCN_SUBJECT_MATCH:
        snprintf(label, size, "%s: %s", observed->program, observed->match);
        break;
    case SCN_SUBJECT_OUTPUT:
        snprintf(label, size, "%s: %s", observed->program, observed->equals);
        break;
    case SCN_SUBJECT_COUNTER:
        snprintf(label, size, "%s", observed->counter);
        break;
    }
}

void scn_check_bounds(const struct scn_check *check, double *min_out, double *max_out)
{
    bool exact = check->observed.equals[0] != '\0' && scn_check_subject(check) != SCN_SUBJECT_OUTPUT;
    *min_out = exact ? strtod(check->observed.equals, NULL) : check->min;
    *max_out = exact ? *min_out : check->max;
}
