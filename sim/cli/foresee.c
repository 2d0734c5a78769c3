// Before the run: looks up what expectations name outside of the scenario's text. These are counters of its hardware,
// and files beside it.
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/expectations.h"
#include "sim/cli/options.h"
#include "sim/kernel/regular_file.h"
#include "sim/platform/platform.h"
#include "sim/scenario/sum.h"

struct names {
    char **items;
    size_t count, room;
};

__attribute__((format(printf, 3, 4))) static void complain(const char *path, const struct scn_check *expect,
                                                           const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%u:%u: ", path, expect->line, expect->column);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

// --- counters -------------------------------------------------------------------------------------------------------

static void name_take(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct names *names = ctx;
    (void)value;
    if (names->count == names->room) {
        names->room = names->room * 2 + 256;
        names->items = realloc(names->items, names->room * sizeof *names->items);
    }
    if (names->items == NULL || asprintf(&names->items[names->count], "%s.%s", component, desc->name) < 0) {
        sim_panic("cli", "out of memory for the names of counters");
    }
    names->count++;
}

static void names_free(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->items[i]);
    }
    free(names->items);
}

// "node0.core3.": a core that a program may create during the run.
static bool is_core_of_program(const struct scn_scenario *scenario, const char *counter)
{
    bool core = false;
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        size_t length = strlen(scenario->nodes[i].name);
        const char *rest = counter + length;
        if (strncmp(counter, scenario->nodes[i].name, length) == 0 && strncmp(rest, ".core", 5) == 0) {
            rest += 5;
            core = core || (isdigit((unsigned char)*rest) && rest[strspn(rest, "0123456789")] == '.');
        }
    }
    return core;
}

static bool term_foresee(const char *path, const struct scn_scenario *scenario, const struct names *names,
                         const struct scn_check *expect, const struct scn_term *term)
{
    const char *counter = term->name;
    for (size_t i = 0; i < names->count; i++) {
        if (scn_term_matches(term, names->items[i])) {
            return true;
        }
    }
    if (term->is_number || strcmp(counter, SCN_TERM_TIME) == 0 || is_core_of_program(scenario, counter)) {
        return true;
    }
    const char *nearest = cli_nearest(counter, (const char *const *)names->items, names->count);
    for (size_t i = 0; i < names->count && nearest == NULL; i++) { // the beginning of a name counts as near, too
        nearest = strncmp(names->items[i], counter, strlen(counter)) == 0 ? names->items[i] : NULL;
    }
    if (nearest != NULL) {
        complain(path, expect, "counter: no component has '%s' (did you mean '%s'?)", counter, nearest);
    } else {
        complain(path, expect, "counter: no component has '%s'; counters.csv of a run lists them", counter);
    }
    return false;
}

static bool sum_foresee(const char *path, const struct scn_scenario *scenario, const struct names *names,
                        const struct scn_check *expect, const char *sum)
{
    bool good = true;
    struct scn_term term;
    while (scn_sum_next(&sum, &term)) {
        good = term_foresee(path, scenario, names, expect, &term) && good;
    }
    return good;
}

static bool counters_foresee(const char *path, const struct scn_scenario *scenario)
{
    struct names names = {0};
    bool asked = false, good = true;
    for (uint32_t i = 0; i < scenario->expect_count; i++) {
        asked = asked || scn_check_subject(&scenario->expects[i]) == SCN_SUBJECT_COUNTER;
    }
    if (!asked || plat_counters_list(scenario, name_take, &names) != SIM_OK) {
        names_free(&names);
        return true; // the run reports hardware that cannot be built
    }
    for (uint32_t i = 0; i < scenario->expect_count; i++) {
        const struct scn_check *expect = &scenario->expects[i];
        if (scn_check_subject(expect) == SCN_SUBJECT_COUNTER) {
            good = sum_foresee(path, scenario, &names, expect, expect->observed.counter) && good;
            good = sum_foresee(path, scenario, &names, expect, expect->observed.equals) && good;
        }
    }
    names_free(&names);
    return good;
}

// --- files ----------------------------------------------------------------------------------------------------------

// Baseline files are not checked: `--update-baseline` creates them.
static bool files_foresee(const char *path, const struct scn_scenario *scenario)
{
    bool good = true;
    for (uint32_t i = 0; i < scenario->expect_count; i++) {
        const struct scn_check *expect = &scenario->expects[i];
        char file[PATH_MAX];
        if (scn_check_subject(expect) != SCN_SUBJECT_OUTPUT) {
            continue;
        }
        report_expect_path(scenario, expect->observed.equals, file);
        FILE *opened = sim_regular_open(file);
        if (opened == NULL) {
            complain(path, expect, "equals: %s cannot be read: %s", file, strerror(errno));
            good = false;
        } else {
            (void)fclose(opened);
        }
    }
    return good;
}

bool cli_expectations_foresee(const char *path, const struct scn_scenario *scenario)
{
    bool counters = counters_foresee(path, scenario);
    return files_foresee(path, scenario) && counters;
}
