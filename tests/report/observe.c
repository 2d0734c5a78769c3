#include "observe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shim/test.h"

struct scn_check *observe_add(struct fixture *fixture, const char *program, const char *match, const char *counter)
{
    struct scn_scenario *scenario = fixture->scenario;
    struct scn_check *check = &scenario->expects[scenario->expect_count++];
    *check = (struct scn_check){.id = "it", .min = -INFINITY, .max = INFINITY, .line = 3, .column = 5};
    snprintf(check->observed.program, sizeof check->observed.program, "%s", program != NULL ? program : "");
    snprintf(check->observed.match, sizeof check->observed.match, "%s", match != NULL ? match : "");
    snprintf(check->observed.counter, sizeof check->observed.counter, "%s", counter != NULL ? counter : "");
    scenario->outside_count = 1;
    snprintf(scenario->outsides[0].command, sizeof scenario->outsides[0].command, "./client -s 8");
    return check;
}

void observe_printed(struct fixture *fixture, const char *text)
{
    report_set_programs(fixture->report, "exec");
    report_add_output(fixture->report, 0, text, strlen(text));
}

void observe_is(const struct fixture *fixture, const char *expected)
{
    struct report_outcomes outcomes;
    char *text = NULL;
    report_outcomes_make(fixture->report, 0, &outcomes);
    ASSERT_EQ(outcomes.count, 1);
    const struct report_outcome *outcome = &outcomes.items[0];
    EXPECT_EQ(outcomes.failed, outcome->message != NULL);
    if (asprintf(&text, "%s%s%s", outcome->message != NULL ? outcome->message : "", outcome->detail != NULL ? "\n" : "",
                 outcome->detail != NULL ? outcome->detail : "") > 0 ||
        text != NULL) {
        EXPECT_STREQ(text, expected);
    }
    free(text);
    report_outcomes_free(&outcomes);
}
