// The keys of expectations: a subject, and its bounds.
#include "sim/scenario/keys.h"

static void expect_loaded(void *object, const struct scn_tree *tree)
{
    struct scn_check *expect = object;
    expect->line = tree->location.line;
    expect->column = tree->location.column;
}

static const struct scn_key expect_keys[] = {
    {.name = "name",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_check, id),
     .doc = "name of the check; required with value:"},
    {.name = "check",
     .unit = SCN_UNIT_EMBED,
     .fallback = "",
     .child = &scn_kind_check,
     .size = sizeof(struct scn_check),
     .doc = "the keys of a check"},
    {.name = "program",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     .min = 1,
     SCN_FIELD(struct scn_check, observed.program),
     .doc = "program whose standard output is checked, by its name in programs:; instead of value:"},
    {.name = "match",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     .min = 1,
     SCN_FIELD(struct scn_check, observed.match),
     .doc = "with program: a POSIX extended regular expression with one group, which matches the number. It is applied "
            "to each line; every matching line must keep the bounds, and at least one line must match"},
    {.name = "counter",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     .min = 1,
     SCN_FIELD(struct scn_check, observed.counter),
     .doc = "counter that is checked, COMPONENT.COUNTER as in counters.csv; instead of value:. With programs, the "
            "counter of their simulation; without programs, that of every series. Also a sum, with spaces around + and "
            "-, and factors as in 2 * COMPONENT.COUNTER; * in a name stands for any part of a name and means the sum "
            "of all that match; simulation.simulated_ps is the "
            "simulated time of the series"},
    {.name = "series",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     .min = 1,
     SCN_FIELD(struct scn_check, observed.series),
     .doc = "with counter: only of this series; of a sweep, SERIES means each of its values"},
    {.name = "min",
     .unit = SCN_UNIT_REAL,
     .fallback = "-.inf",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_check, min),
     .doc = "smallest number that is allowed"},
    {.name = "max",
     .unit = SCN_UNIT_REAL,
     .fallback = ".inf",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_check, max),
     .doc = "largest number that is allowed"},
    {.name = "equals",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     .min = 1,
     SCN_FIELD(struct scn_check, observed.equals),
     .doc = "the only number that is allowed; with counter: also a sum of counters of the same series; for a program "
            "without match: a file beside the scenario with all that the program must print"},
    {.name = "within",
     .unit = SCN_UNIT_PERCENT,
     .fallback = "0 %",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_check, observed.within_percent),
     .doc =
         "largest allowed difference from the number recorded in the file `of`, in percent of that number; 0 %: equal"},
    {.name = "of",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     .min = 1,
     SCN_FIELD(struct scn_check, observed.of),
     .doc = "file beside the scenario with numbers that `--update-baseline` has recorded"},
};
const struct scn_kind scn_kind_expect = {
    .name = "expect",
    .doc = "a bound that makes the scenario a test: exit status 1 if it does not hold",
    SCN_ROWS(expect_keys),
    .size = sizeof(struct scn_check),
    .loaded = expect_loaded};
