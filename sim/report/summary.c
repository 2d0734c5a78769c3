#include "sim/report/summary.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/csv.h"
#include "sim/report/files.h"
#include "sim/report/grid.h"
#include "sim/report/results.h"

enum field { SCENARIO, SERIES, BOARDS, DEVICE, INJECTED, EFFECTS, HELD, FIELDS };

// The counters that a row sums up over all components, and their words.
struct sum {
    const char *counters[2];
    const char *words;
};
static const struct sum injected[] = {
    {{"tlps_corrupted"}, "TLPs corrupted"},
    {{"acks_lost", "naks_lost"}, "ACKs, NAKs lost"},
    {{"dropped_packets"}, "packets lost"},
    {{"damaged_packets"}, "packets damaged"},
};
static const struct sum effects[] = {
    {{"naks"}, "NAKs"},
    {{"replay_timeouts"}, "time-outs"},
    {{"replays"}, "TLPs sent again"},
    {{"tlps_lost"}, "TLPs lost"},
    {{"tlps_dropped"}, "dropped"},
    {{"unsupported_reads"}, "reads refused"},
    {{"unsupported_writes"}, "writes refused"},
    {{"lost_packets"}, "packets lost"},
    {{"packets_resent"}, "packets resent"},
    {{"failed"}, "requests failed"},
    {{"flushed"}, "flushed"},
    {{"torn"}, "messages torn"},
    {{"missing"}, "missing"},
};

struct text {
    char *bytes;
    size_t size;
    FILE *out;
    unsigned items;
};

static void text_open(struct text *text)
{
    *text = (struct text){0};
    text->out = open_memstream(&text->bytes, &text->size);
    if (text->out == NULL) {
        sim_panic("report", "out of memory for a summary");
    }
}

static void text_close(struct text *text, FILE *rows)
{
    (void)fclose(text->out);
    fputc(',', rows);
    csv_text_write(rows, text->bytes);
    free(text->bytes);
}

__attribute__((format(printf, 2, 3))) static void item_add(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs(text->items++ > 0 ? ", " : "", text->out);
    vfprintf(text->out, format, args);
    va_end(args);
}

// --- one row --------------------------------------------------------------------------------------------------------

// A series' counters follow each other.
struct counted {
    const struct report_counter *begin, *end;
};

// guess: where they usually begin, behind those of the series that ran before; NULL: none did.
static struct counted counters_find(const report_t *report, const char *series, const struct report_counter *guess)
{
    const struct report_counter *end = report->counters + report->counter_count;
    bool right = guess != NULL && guess < end && strcmp(guess->series, series) == 0;
    const struct report_counter *begin = right ? guess : report->counters;
    while (begin < end && strcmp(begin->series, series) != 0) {
        begin++;
    }
    struct counted counted = {begin, begin};
    while (counted.end < end && strcmp(counted.end->series, series) == 0) {
        counted.end++;
    }
    return counted;
}

static uint64_t sum_of(const struct counted *counted, const char *name)
{
    uint64_t value = 0;
    for (const struct report_counter *counter = counted->begin; counter < counted->end && name != NULL; counter++) {
        value += strcmp(counter->name, name) == 0 ? counter->value : 0;
    }
    return value;
}

static void sums_add(const struct counted *counted, const struct sum *sums, size_t count, struct text *text)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = sum_of(counted, sums[i].counters[0]) + sum_of(counted, sums[i].counters[1]);
        if (value > 0) {
            item_add(text, "%" PRIu64 " %s", value, sums[i].words);
        }
    }
}

static void injected_write(const report_t *report, const char *series, const struct counted *counted, FILE *rows)
{
    struct text text;
    text_open(&text);
    for (size_t i = 0; i < report->fault_count; i++) {
        const struct report_fault *fault = &report->faults[i];
        if (fault->happened && strcmp(fault->series, series) == 0) {
            item_add(&text, "%s%s", fault->what, fault->back_ps != 0 ? " and back" : "");
        }
    }
    sums_add(counted, injected, sizeof injected / sizeof injected[0], &text);
    text_close(&text, rows);
}

static void effects_write(const struct counted *counted, FILE *rows)
{
    struct text text;
    text_open(&text);
    sums_add(counted, effects, sizeof effects / sizeof effects[0], &text);
    text_close(&text, rows);
}

enum { CURVE_MAX = 2 * SCN_NAME_MAX };

// Expectations about series name a curve, which leaves out a part of the name of a run of a sweep. "": of no sweep.
static void curve_find(const report_t *report, const char *series, char curve[CURVE_MAX])
{
    const struct scn_sweep *sweep = report->scenario->sweep;
    const char *bare;
    curve[0] = '\0';
    for (uint32_t i = 0; sweep != NULL && (bare = scn_series(report->scenario, i)) != NULL; i++) {
        size_t length = strlen(bare);
        if (strncmp(series, bare, length) != 0 || strncmp(series + length, ", ", 2) != 0) {
            continue;
        }
        for (uint32_t k = 0; k < sweep->point_count; k++) {
            if (strcmp(series + length + 2, sweep->points[k].label) == 0) {
                scn_sweep_series_make(report->scenario, bare, k, curve, CURVE_MAX);
                return;
            }
        }
    }
}

static bool is_about(const struct report_verdict *verdict, const char *series, const char *curve)
{
    return verdict->series == NULL || strcmp(verdict->series, series) == 0 || strcmp(verdict->series, curve) == 0;
}

static void held_write(const report_t *report, const char *series, const struct report_outcomes *outcomes, FILE *rows)
{
    unsigned held = 0, broken = 0;
    char curve[CURVE_MAX];
    struct text text, names;
    curve_find(report, series, curve);
    text_open(&text);
    text_open(&names);
    for (size_t i = 0; outcomes != NULL && i < outcomes->count; i++) {
        const struct report_outcome *outcome = &outcomes->items[i];
        for (size_t k = 0; k < outcome->verdict_count; k++) {
            bool about = is_about(&outcome->verdicts[k], series, curve);
            held += about && outcome->verdicts[k].holds;
            if (about && !outcome->verdicts[k].holds) {
                broken++;
                item_add(&names, "%s", outcome->name);
            }
        }
    }
    (void)fclose(names.out);
    if (broken > 0) {
        item_add(&text, "%u of %u, NOT: %s", held, held + broken, names.bytes);
    } else if (outcomes == NULL) {
        item_add(&text, "not judged");
    } else if (held > 0) {
        item_add(&text, "all %u", held);
    }
    free(names.bytes);
    text_close(&text, rows);
}

static void head_write(const report_t *report, const char *series, const char *boards, const char *device, FILE *rows)
{
    csv_text_write(rows, report->scenario->name);
    const char *const texts[] = {series, boards, device};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        fputc(',', rows);
        csv_text_write(rows, texts[i] != NULL ? texts[i] : "");
    }
}

static const struct report_failure *failure_of(const report_t *report, const char *series)
{
    for (size_t i = 0; i < report->failure_count; i++) {
        if (strcmp(report->failures[i].series, series) == 0) {
            return &report->failures[i];
        }
    }
    return NULL;
}

static bool did_run(const report_t *report, const char *series)
{
    bool ran = false;
    for (size_t i = 0; i < report->run_count; i++) {
        ran = ran || strcmp(report->runs[i].series, series) == 0;
    }
    return ran;
}

void report_summary_write(const report_t *report, const struct report_outcomes *outcomes, FILE *rows)
{
    struct counted counted = {0};
    for (size_t i = 0; i < report->run_count; i++) {
        const struct report_run *run = &report->runs[i];
        counted = counters_find(report, run->series, counted.end);
        const struct report_failure *failure = failure_of(report, run->series);
        head_write(report, run->series, run->boards, run->device, rows);
        injected_write(report, run->series, &counted, rows);
        effects_write(&counted, rows);
        if (failure == NULL) {
            held_write(report, run->series, outcomes, rows);
        } else {
            fputc(',', rows);
            csv_text_write(rows, failure->text);
        }
        fputc('\n', rows);
    }
    for (size_t i = 0; i < report->failure_count; i++) {
        if (!did_run(report, report->failures[i].series)) {
            head_write(report, report->failures[i].series, NULL, NULL, rows);
            fputs(",,,", rows);
            csv_text_write(rows, report->failures[i].text);
            fputc('\n', rows);
        }
    }
}

// --- all of them ----------------------------------------------------------------------------------------------------

void report_summary_print(FILE *rows, bool always, FILE *out)
{
    static const char *const heads[FIELDS] = {
        "scenario", "series", "boards", "device", "injected", "effects", "expectations that hold"};
    char *text = files_text_read(rows), *cursor = text, *fields[FIELDS], previous[SCN_NAME_MAX] = "";
    bool faults = false;
    grid_t *grid = grid_create(FIELDS);
    for (size_t i = 0; i < FIELDS; i++) {
        grid_column_left(grid, i);
        grid_cell_add(grid, "%s", heads[i]);
    }
    while (text != NULL && csv_record_read(&cursor, fields, FIELDS) == FIELDS) {
        faults = faults || fields[INJECTED][0] != '\0';
        bool same = strcmp(previous, fields[SCENARIO]) == 0;
        snprintf(previous, sizeof previous, "%s", fields[SCENARIO]);
        for (size_t i = 0; i < FIELDS; i++) {
            grid_cell_add(grid, "%s", i == SCENARIO && same ? "" : fields[i]);
        }
    }
    if (faults || always) {
        fputs("\nSummary\n", out);
        grid_print(grid, out);
    }
    grid_destroy(grid);
    free(text);
}
