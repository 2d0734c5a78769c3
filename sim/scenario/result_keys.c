// The keys of numbers from the results, of comparisons, and of panels of plots. Expectations: expect_keys.c.
#include "sim/scenario/keys.h"

static const struct scn_choice takes[] = {
    {"min", SCN_TAKE_MIN}, {"max", SCN_TAKE_MAX}, {"mean", SCN_TAKE_MEAN}, {"last", SCN_TAKE_LAST}, {NULL, 0}};

static void value_loaded(void *object, const struct scn_tree *tree)
{
    (void)tree;
    ((struct scn_value *)object)->given = true;
}

static const struct scn_key value_keys[] = {
    {.name = "series",
     .unit = SCN_UNIT_TEXT,
     .min = 1,
     SCN_FIELD(struct scn_value, series),
     .doc = "series from whose rows the number is taken"},
    {.name = "column",
     .unit = SCN_UNIT_TEXT,
     .min = 1,
     SCN_FIELD(struct scn_value, column),
     .doc = "column of data.csv from which the number is taken"},
    {.name = "take",
     .unit = SCN_UNIT_CHOICE,
     .choices = takes,
     .fallback = "mean",
     SCN_FIELD(struct scn_value, take),
     .doc = "how the values of several rows become one number"},
    {.name = "at",
     .unit = SCN_UNIT_SIZE,
     .fallback = "",
     .max = UINT64_MAX,
     SCN_FIELD(struct scn_value, bytes_min),
     SCN_SECOND(struct scn_value, bytes_max),
     .doc = "only rows of this size"},
    {.name = "from",
     .unit = SCN_UNIT_SIZE,
     .fallback = "0 B",
     .max = UINT64_MAX,
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_value, bytes_min),
     .doc = "only rows of this size or larger"},
    {.name = "to",
     .unit = SCN_UNIT_SIZE,
     .fallback = "18446744073709551615 B",
     .max = UINT64_MAX,
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_value, bytes_max),
     .doc = "only rows of this size or smaller"},
    {.name = "descriptors",
     .unit = SCN_UNIT_INTEGER,
     .fallback = "",
     .max = UINT64_MAX,
     SCN_FIELD(struct scn_value, descriptors_min),
     SCN_SECOND(struct scn_value, descriptors_max),
     .doc = "only rows with this number of descriptors"},
    {.name = "from_descriptors",
     .unit = SCN_UNIT_INTEGER,
     .fallback = "0",
     .max = UINT64_MAX,
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_value, descriptors_min),
     .doc = "only rows with this number of descriptors or more"},
    {.name = "to_descriptors",
     .unit = SCN_UNIT_INTEGER,
     .fallback = "18446744073709551615",
     .max = UINT64_MAX,
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_value, descriptors_max),
     .doc = "only rows with this number of descriptors or fewer"},
    {.name = "ranks",
     .unit = SCN_UNIT_INTEGER,
     .fallback = "0",
     .max = UINT32_MAX,
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_value, ranks),
     .doc = "only rows with this number of ranks; 0: with any number"},
};
const struct scn_kind scn_kind_value = {.name = "value",
                                        .doc = "a number taken from the results",
                                        SCN_ROWS(value_keys),
                                        .size = sizeof(struct scn_value),
                                        .loaded = value_loaded};

static void check_loaded(void *object, const struct scn_tree *tree)
{
    struct scn_check *check = object;
    check->line = tree->location.line;
    check->column = tree->location.column;
}

static const struct scn_key check_keys[] = {
    {.name = "what",
     .unit = SCN_UNIT_TEXT,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_check, what),
     .doc = "description for readers, one line"},
    {.name = "value",
     .unit = SCN_UNIT_OBJECT,
     .child = &scn_kind_value,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_check, value),
     .doc = "the number; required, except in an expectation about a program or a counter"},
    {.name = "over",
     .unit = SCN_UNIT_OBJECT,
     .child = &scn_kind_value,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_check, over),
     .doc = "a second number, by which value is divided"},
    {.name = "difference",
     .unit = SCN_UNIT_BOOL,
     .fallback = "false",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_check, difference),
     .doc = "`over` is subtracted from value instead of dividing it"},
    {.name = "per_row",
     .unit = SCN_UNIT_BOOL,
     .fallback = "false",
     SCN_FIELD(struct scn_check, per_row),
     .doc = "value is divided by `over` row by row (same bytes and descriptors), before the rows become one number"},
    {.name = "first_reaching",
     .unit = SCN_UNIT_REAL,
     .fallback = "0",
     .max = 1000,
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_check, first_reaching),
     .doc = "the number is the smallest bytes at which value is at least this many times `over`; 0: not used"},
    {.name = "last_reaching",
     .unit = SCN_UNIT_REAL,
     .fallback = "0",
     .max = 1000,
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_check, last_reaching),
     .doc = "the number is the largest bytes at which value is at least this many times `over`; 0: not used"},
};
const struct scn_kind scn_kind_check = {.name = "check",
                                        .doc = "the keys that expectations and comparisons share",
                                        SCN_ROWS(check_keys),
                                        .size = sizeof(struct scn_check)};

static const struct scn_key compare_keys[] = {
    {.name = "id",
     .unit = SCN_UNIT_TEXT,
     .min = 1,
     SCN_FIELD(struct scn_check, id),
     .doc = "id of the published value in results/reference/papers.csv"},
    {.name = "check",
     .unit = SCN_UNIT_EMBED,
     .fallback = "",
     .child = &scn_kind_check,
     .size = sizeof(struct scn_check),
     .doc = "the keys of a check"},
};
const struct scn_kind scn_kind_compare = {.name = "compare",
                                          .doc = "a number shown beside the published one",
                                          SCN_ROWS(compare_keys),
                                          .size = sizeof(struct scn_check),
                                          .loaded = check_loaded};

static void panel_loaded(void *object, const struct scn_tree *tree)
{
    struct scn_panel *panel = object;
    panel->line = tree->location.line;
    panel->column = tree->location.column;
}

static const struct scn_key panel_keys[] = {
    {.name = "title", .unit = SCN_UNIT_TEXT, .min = 1, SCN_FIELD(struct scn_panel, title), .doc = "title of the panel"},
    {.name = "x",
     .unit = SCN_UNIT_TEXT,
     .fallback = "bytes",
     .min = 1,
     SCN_FIELD(struct scn_panel, x),
     .doc = "column of data.csv on the x axis, or sweep: the values of the sweep"},
    {.name = "y",
     .unit = SCN_UNIT_TEXT,
     .min = 1,
     SCN_FIELD(struct scn_panel, y),
     .doc = "column of data.csv on the y axis"},
    {.name = "x_log",
     .unit = SCN_UNIT_BOOL,
     .fallback = "true",
     SCN_FIELD(struct scn_panel, x_log),
     .doc = "the x axis is logarithmic"},
    {.name = "y_log",
     .unit = SCN_UNIT_BOOL,
     .fallback = "false",
     SCN_FIELD(struct scn_panel, y_log),
     .doc = "the y axis is logarithmic"},
    {.name = "x_max",
     .unit = SCN_UNIT_SIZE,
     .fallback = "0 B",
     .max = UINT64_MAX,
     SCN_FIELD(struct scn_panel, x_max),
     .doc = "end of the x axis; 0 B: all rows are shown"},
};
const struct scn_kind scn_kind_panel = {.name = "panel",
                                        .doc = "a panel of plot.svg",
                                        SCN_ROWS(panel_keys),
                                        .size = sizeof(struct scn_panel),
                                        .loaded = panel_loaded};
