// Rules about expectations: their subject must exist, and their keys must be compatible.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/scenario/loader.h"
#include "sim/scenario/names.h"
#include "sim/scenario/pattern.h"
#include "sim/scenario/sum.h"
#include "sim/scenario/units.h"

static struct scn_location location_of(const struct scn_loader *loader, const struct scn_check *expect,
                                       const void *field)
{
    return scn_loader_location(loader, field, expect);
}

// --- combinations of keys -------------------------------------------------------------------------------------------

// Keys that only an expectation with value: uses.
static void check_keys_of_values(struct scn_loader *loader, const struct scn_check *expect)
{
    const struct {
        const char *name;
        bool given;
        const void *field;
    } keys[] = {
        {"over", expect->over.given, &expect->over},
        {"difference", expect->difference, &expect->difference},
        {"per_row", expect->per_row, &expect->per_row},
        {"first_reaching", expect->first_reaching != 0, &expect->first_reaching},
        {"last_reaching", expect->last_reaching != 0, &expect->last_reaching},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i].given) {
            scn_mistakes_add(&loader->mistakes, location_of(loader, expect, keys[i].field),
                             "'%s' needs value:", keys[i].name);
        }
    }
}

// An expectation must name exactly one subject. False: reported.
static bool check_subject(struct scn_loader *loader, const struct scn_check *expect)
{
    const struct scn_observed *observed = &expect->observed;
    bool value = expect->value.given || scn_loader_is_bad(loader, &expect->value, true);
    bool program = observed->program[0] != '\0', counter = observed->counter[0] != '\0';
    struct scn_location location = location_of(loader, expect, expect);
    if (value + program + counter > 1) {
        scn_mistakes_add(&loader->mistakes, location, "expect: '%s' and '%s' exclude each other",
                         value ? "value" : "program", counter ? "counter" : "program");
        return false;
    }
    if (value + program + counter == 0) {
        scn_mistakes_add(&loader->mistakes, location, "expect: needs value:, program: or counter:");
        return false;
    }
    if (observed->match[0] != '\0' && !program) {
        scn_mistakes_add(&loader->mistakes, location_of(loader, expect, observed->match), "'match' needs program:");
        return false;
    }
    if (value && expect->id[0] == '\0') {
        scn_mistakes_add(&loader->mistakes, location, "missing key 'name' in expect");
    }
    if (!value) {
        check_keys_of_values(loader, expect);
    }
    if (observed->series[0] != '\0' && !counter) {
        scn_mistakes_add(&loader->mistakes, location_of(loader, expect, observed->series), "'series' needs counter:");
        return false;
    }
    if (counter && !scn_sum_is_valid(observed->counter)) {
        scn_mistakes_add(&loader->mistakes, location_of(loader, expect, observed->counter),
                         "counter: '%.80s' is neither COMPONENT.COUNTER nor a sum of them", observed->counter);
        return false;
    }
    return true;
}

// --- bounds ---------------------------------------------------------------------------------------------------------

// With compute: scaled no two runs are the same, so that no number may be required to be exact.
static void check_equality(struct scn_loader *loader, const struct scn_check *expect)
{
    const struct scn_scenario *scenario = loader->scenario;
    double min, max;
    scn_check_bounds(expect, &min, &max);
    bool exact = min == max || scn_check_subject(expect) == SCN_SUBJECT_OUTPUT ||
                 (expect->observed.of[0] != '\0' && expect->observed.within_percent == 0);
    for (uint32_t i = 0; i < scenario->node_count && exact; i++) {
        if (scenario->nodes[i].host.compute == SCN_COMPUTE_SCALED) {
            scn_mistakes_add(&loader->mistakes, location_of(loader, expect, expect),
                             "expect: %s, but the time that programs compute on %s counts (compute: scaled)",
                             expect->observed.equals[0] != '\0' ? "equals:"
                             : expect->observed.of[0] != '\0'   ? "of: without within:"
                                                                : "min and max are equal",
                             scenario->nodes[i].name);
        }
    }
}

// The only bound of a program's whole output is its file.
static void check_bounds_of_output(struct scn_loader *loader, const struct scn_check *expect)
{
    const struct scn_observed *observed = &expect->observed;
    const void *const bounds[] = {&expect->min, &expect->max, &observed->within_percent, observed->of};
    static const char *const names[] = {"min", "max", "within", "of"};
    bool bounded = false;
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        if (scn_loader_is_given(loader, bounds[i])) {
            bounded = true;
            scn_mistakes_add(&loader->mistakes, location_of(loader, expect, bounds[i]),
                             "'%s' needs match: beside program:, which says where the number is", names[i]);
        }
    }
    if (observed->equals[0] == '\0' && !bounded && scn_loader_is_good(loader, observed->equals)) {
        scn_mistakes_add(&loader->mistakes, location_of(loader, expect, expect),
                         "expect: a program needs match:, or equals: with a file");
    }
}

static void check_equals(struct scn_loader *loader, const struct scn_check *expect)
{
    char why[SCN_WHY_MAX];
    double number = 0;
    struct scn_location location = location_of(loader, expect, expect->observed.equals);
    bool counter = expect->observed.counter[0] != '\0';
    if (counter && !scn_sum_is_valid(expect->observed.equals)) {
        scn_mistakes_add(&loader->mistakes, location, "equals: '%.80s' is neither a number nor a sum of counters",
                         expect->observed.equals);
    } else if (!counter && (!scn_real_parse(expect->observed.equals, &number, why) || isinf(number))) {
        scn_mistakes_add(&loader->mistakes, location, "equals: '%.80s' is not a number", expect->observed.equals);
    } else if (!isinf(expect->min) || !isinf(expect->max) || expect->observed.of[0] != '\0') {
        scn_mistakes_add(&loader->mistakes, location, "'equals' and '%s' exclude each other",
                         !isinf(expect->min)   ? "min"
                         : !isinf(expect->max) ? "max"
                                               : "of");
    }
}

static void check_bounds_of_number(struct scn_loader *loader, const struct scn_check *expect)
{
    const struct scn_observed *observed = &expect->observed;
    struct scn_location location = location_of(loader, expect, expect);
    if (observed->equals[0] != '\0') {
        check_equals(loader, expect);
    } else if (isinf(expect->min) && isinf(expect->max) && observed->of[0] == '\0' &&
               !scn_loader_is_given(loader, &observed->within_percent)) {
        scn_mistakes_add(&loader->mistakes, location, "expect: needs min:, max:, equals: or of:");
    } else if (expect->min > expect->max) {
        scn_mistakes_add(&loader->mistakes, location, "expect: min is larger than max");
    }
    if (scn_loader_is_given(loader, &observed->within_percent) && observed->of[0] == '\0') {
        scn_mistakes_add(&loader->mistakes, location_of(loader, expect, &observed->within_percent),
                         "'within' needs of: with the file of recorded numbers");
    }
}

static bool bounds_are_good(const struct scn_loader *loader, const struct scn_check *expect)
{
    return scn_loader_is_good(loader, &expect->min) && scn_loader_is_good(loader, &expect->max) &&
           scn_loader_is_good(loader, expect->observed.equals) && scn_loader_is_good(loader, expect->observed.of) &&
           scn_loader_is_good(loader, &expect->observed.within_percent);
}

// The file of recorded numbers identifies them by the expectation's name.
static void check_label(struct scn_loader *loader, const struct scn_check *expect)
{
    char label[SCN_TEXT_MAX + SCN_NAME_MAX], other[SCN_TEXT_MAX + SCN_NAME_MAX];
    scn_check_label(expect, label, sizeof label);
    for (const struct scn_check *check = loader->scenario->expects; check < expect; check++) {
        scn_check_label(check, other, sizeof other);
        if (expect->observed.of[0] != '\0' && strcmp(check->observed.of, expect->observed.of) == 0 &&
            strcmp(label, other) == 0) {
            scn_mistakes_add(&loader->mistakes, location_of(loader, expect, expect),
                             "expect: two numbers of %s are called '%s'; give them different names by name:",
                             expect->observed.of, label);
            return;
        }
    }
}

// --- programs -------------------------------------------------------------------------------------------------------

static void complain_unknown(struct scn_loader *loader, struct scn_location location, const char *name)
{
    const struct scn_scenario *scenario = loader->scenario;
    struct scn_nearest nearest;
    scn_nearest_init(&nearest, name);
    for (uint32_t i = 0; i < scenario->outside_count; i++) {
        char own[SCN_NAME_MAX];
        scn_outside_name(scenario, i, own);
        scn_nearest_offer(&nearest, scn_arena_format(loader->arena, "%s", own));
    }
    if (nearest.name != NULL) {
        scn_mistakes_add(&loader->mistakes, location, "program: no program is called '%s' (did you mean '%s'?)", name,
                         nearest.name);
    } else {
        scn_mistakes_add(&loader->mistakes, location, "program: no program of programs: is called '%s'", name);
    }
}

static void check_program(struct scn_loader *loader, const struct scn_check *expect)
{
    const struct scn_scenario *scenario = loader->scenario;
    const char *name = expect->observed.program;
    struct scn_location location = location_of(loader, expect, name);
    uint32_t count, index = scn_outside_find(scenario, name, &count);
    if (name[0] == '\0' || scn_loader_is_bad(loader, &scenario->outside_count, true)) {
        return;
    }
    if (count == 0) {
        complain_unknown(loader, location, name);
    } else if (count > 1) {
        scn_mistakes_add(&loader->mistakes, location,
                         "program: %" PRIu32 " programs are called '%s'; give them different names by name:", count,
                         name);
    } else if (scenario->outsides[index].stdout_path[0] != '\0') {
        scn_mistakes_add(&loader->mistakes, location, "program: standard output of '%s' goes to a file (stdout:)",
                         name);
    }
}

static void check_match(struct scn_loader *loader, const struct scn_check *expect)
{
    const char *match = expect->observed.match;
    struct scn_location location = location_of(loader, expect, match);
    regex_t compiled;
    char why[SCN_WHY_MAX];
    if (match[0] == '\0') {
        return;
    }
    if (!scn_pattern_compile(match, &compiled, why)) {
        scn_mistakes_add(&loader->mistakes, location, "match: %s", why);
        return;
    }
    if (compiled.re_nsub != 1) {
        scn_mistakes_add(&loader->mistakes, location,
                         "match: has %zu groups; one pair of parentheses says where the number is", compiled.re_nsub);
    }
    regfree(&compiled);
}

void scn_check_expect(struct scn_loader *loader, const struct scn_check *expect)
{
    enum scn_subject subject = scn_check_subject(expect);
    if (scn_loader_is_bad(loader, expect, true) || !scn_loader_is_good(loader, expect->observed.program) ||
        !scn_loader_is_good(loader, expect->observed.counter) || !scn_loader_is_good(loader, expect->observed.match) ||
        !check_subject(loader, expect)) {
        return;
    }
    check_program(loader, expect);
    check_match(loader, expect);
    if (bounds_are_good(loader, expect) && subject == SCN_SUBJECT_OUTPUT) {
        check_bounds_of_output(loader, expect);
    } else if (bounds_are_good(loader, expect)) {
        check_bounds_of_number(loader, expect);
        check_label(loader, expect);
    }
    check_equality(loader, expect);
    bool programs = loader->scenario->outside_count > 0;
    if (loader->scenario->sweep != NULL && subject != SCN_SUBJECT_SERIES &&
        (subject != SCN_SUBJECT_COUNTER || programs)) {
        scn_mistakes_add(&loader->mistakes, location_of(loader, expect, expect),
                         "expect: '%s' does not go with sweep:%s; make a scenario of the value to be tested",
                         subject == SCN_SUBJECT_COUNTER ? "counter" : "program",
                         subject == SCN_SUBJECT_COUNTER ? " and programs:" : "");
    }
}
