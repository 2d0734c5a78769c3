// The keys of expectations: what is looked at, and the bounds that it has to keep.
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
     .doc = "instead of value: what this program of programs: prints to standard output"},
    {.name = "match",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     .min = 1,
     SCN_FIELD(struct scn_check, observed.match),
     .doc =
         "with program: a POSIX extended regular expression with one group, which is the number. It is applied to each "
         "line; every line that matches must keep the bounds, and one must match"},
    {.name = "counter",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     .min = 1,
     SCN_FIELD(struct scn_check, observed.counter),
     .doc =
         "instead of value: COMPONENT.COUNTER as in counters.csv, of the simulation of the programs; without programs "
         "of every series"},
    {.name = "min",
     .unit = SCN_UNIT_REAL,
     .fallback = "-.inf",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_check, min),
     .doc = "the number may not be smaller"},
    {.name = "max",
     .unit = SCN_UNIT_REAL,
     .fallback = ".inf",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_check, max),
     .doc = "the number may not be larger"},
    {.name = "equals",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     .min = 1,
     SCN_FIELD(struct scn_check, observed.equals),
     .doc = "the number itself; of a program without match: a file beside the scenario that has all that it prints"},
    {.name = "within",
     .unit = SCN_UNIT_PERCENT,
     .fallback = "0 %",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_check, observed.within_percent),
     .doc = "how far the number may be from the one in the file `of`; 0 %: equal"},
    {.name = "of",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     .min = 1,
     SCN_FIELD(struct scn_check, observed.of),
     .doc = "a file beside the scenario with numbers that `--update-baseline` has recorded"},
};
const struct scn_kind scn_kind_expect = {
    .name = "expect",
    .doc = "a bound that makes the scenario a test: exit status 1 where it does not hold",
    SCN_ROWS(expect_keys),
    .size = sizeof(struct scn_check),
    .loaded = expect_loaded};
