#include "sim/report/printed.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/csv.h"

#define MB           1.0 // bytes per microsecond
#define MIB          1.048576
#define GB           1e3
#define GBIT         125.0
#define NUMBER_MAX   1e15
#define TIME_MAX_US  1e12
#define DIFFERENCE   0.01 // tolerated between a time and a bandwidth of the same row
#define LINE_MAX_LEN 4096

struct name {
    const char *text;
    struct report_printed_column column;
};

static const struct name names_of_columns[] = {{"-", {REPORT_PRINTED_NONE, 0}},
                                               {"series", {REPORT_PRINTED_SERIES, 0}},
                                               {"bytes", {REPORT_PRINTED_BYTES, 0}},
                                               {"descriptors", {REPORT_PRINTED_DESCRIPTORS, 0}},
                                               {"operations", {REPORT_PRINTED_OPERATIONS, 0}},
                                               {"ranks", {REPORT_PRINTED_RANKS, 0}},
                                               {"memory_bytes", {REPORT_PRINTED_MEMORY, 0}},
                                               {"latency_us", {REPORT_PRINTED_LATENCY, 0}},
                                               {"min_latency_us", {REPORT_PRINTED_LATENCY_MIN, 0}},
                                               {"max_latency_us", {REPORT_PRINTED_LATENCY_MAX, 0}},
                                               {"bandwidth_GBps", {REPORT_PRINTED_BANDWIDTH, GB}},
                                               {"bandwidth_MBps", {REPORT_PRINTED_BANDWIDTH, MB}},
                                               {NULL, {REPORT_PRINTED_NONE, 0}}};

// The second word of a name is its own field there.
static const struct name names_of_perftest[] = {{"#bytes", {REPORT_PRINTED_BYTES, 0}},
                                                {"#iterations", {REPORT_PRINTED_OPERATIONS, 0}},
                                                {"t_min[usec]", {REPORT_PRINTED_LATENCY_MIN, 0}},
                                                {"t_max[usec]", {REPORT_PRINTED_LATENCY_MAX, 0}},
                                                {"t_avg[usec]", {REPORT_PRINTED_LATENCY, 0}},
                                                {"average[MB/sec]", {REPORT_PRINTED_BANDWIDTH, MIB}},
                                                {"average[Gb/sec]", {REPORT_PRINTED_BANDWIDTH, GBIT}},
                                                {NULL, {REPORT_PRINTED_NONE, 0}}};

static const struct name names_of_osu[] = {{"Size", {REPORT_PRINTED_BYTES, 0}},
                                           {"Latency", {REPORT_PRINTED_LATENCY, 0}},
                                           {"Avg Latency", {REPORT_PRINTED_LATENCY, 0}},
                                           {"Min Latency", {REPORT_PRINTED_LATENCY_MIN, 0}},
                                           {"Max Latency", {REPORT_PRINTED_LATENCY_MAX, 0}},
                                           {"Bandwidth", {REPORT_PRINTED_BANDWIDTH, MB}},
                                           {"MB/s", {REPORT_PRINTED_BANDWIDTH, MB}},
                                           {"Iterations", {REPORT_PRINTED_OPERATIONS, 0}},
                                           {NULL, {REPORT_PRINTED_NONE, 0}}};

const char *report_printed_column_name(unsigned index)
{
    return index < sizeof names_of_columns / sizeof *names_of_columns ? names_of_columns[index].text : NULL;
}

static bool named(const struct name *names, const char *text, struct report_printed_column *column_out)
{
    *column_out = (struct report_printed_column){REPORT_PRINTED_NONE, 0};
    for (; names->text != NULL; names++) {
        if (strcmp(names->text, text) == 0) {
            *column_out = names->column;
            return true;
        }
    }
    return false;
}

static bool has(const struct report_printed_line *line, enum report_printed_field field)
{
    for (unsigned i = 0; i < line->count; i++) {
        if (line->columns[i].field == field) {
            return true;
        }
    }
    return false;
}

static bool is_table(const struct report_printed_line *line)
{
    return has(line, REPORT_PRINTED_LATENCY) || has(line, REPORT_PRINTED_BANDWIDTH) || has(line, REPORT_PRINTED_MEMORY);
}

// --- words ----------------------------------------------------------------------------------------------------------

// Splits a line in its buffer. Returns room + 1 if there are more words.
static unsigned words_split(char *text, char **words, unsigned room)
{
    unsigned count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, " \t\r", &rest); word != NULL && count <= room;
         word = strtok_r(NULL, " \t\r", &rest)) {
        if (count < room) {
            words[count] = word;
        }
        count++;
    }
    return count;
}

enum sim_status report_printed_columns(const char *names, struct report_printed_line *line_out,
                                       char wrong_out[SCN_NAME_MAX])
{
    char text[SCN_TEXT_MAX];
    char *words[REPORT_PRINTED_COLUMNS_MAX];
    snprintf(text, sizeof text, "%s", names);
    unsigned count = words_split(text, words, REPORT_PRINTED_COLUMNS_MAX);
    *line_out = (struct report_printed_line){.count = count <= REPORT_PRINTED_COLUMNS_MAX ? count : 0};
    wrong_out[0] = '\0';
    for (unsigned i = 0; i < line_out->count; i++) {
        if (!named(names_of_columns, words[i], &line_out->columns[i])) {
            snprintf(wrong_out, SCN_NAME_MAX, "%.*s", SCN_NAME_MAX - 1, words[i]);
            return SIM_ERR_INVALID;
        }
    }
    return is_table(line_out) ? SIM_OK : SIM_ERR_INVALID;
}

// --- lines of names -------------------------------------------------------------------------------------------------

// " #bytes #iterations    t_min[usec] ...  99% percentile[usec]": a word such as "99%" only begins the next name.
static void perftest_names(char *const *words, unsigned count, struct report_printed_line *line)
{
    static const char *const first[] = {"BW", "tps", "99%", "99.9%"};
    *line = (struct report_printed_line){0};
    for (unsigned i = 0; i < count; i++) {
        bool joined = false;
        for (size_t k = 0; k < sizeof first / sizeof first[0]; k++) {
            joined = joined || strcmp(words[i], first[k]) == 0;
        }
        if (!joined) {
            (void)named(names_of_perftest, words[i], &line->columns[line->count++]);
        }
    }
}

// "# Size    Avg Latency(us)   Iterations": names are separated by more than a space and may have a unit in brackets.
static void osu_names(char *text, struct report_printed_line *line)
{
    *line = (struct report_printed_line){0};
    text += strspn(text, "# \t");
    while (*text != '\0' && line->count < REPORT_PRINTED_COLUMNS_MAX) {
        char *end = text;
        while (*end != '\0' && *end != '\t' && *end != '\r' && !(end[0] == ' ' && (end[1] == ' ' || end[1] == '\0'))) {
            end++;
        }
        char after = *end;
        *end = '\0';
        char *unit = strchr(text, '(');
        for (char *last = unit; last != NULL && last >= text && (last == unit || *last == ' '); last--) {
            *last = '\0';
        }
        (void)named(names_of_osu, text, &line->columns[line->count++]);
        text = after != '\0' ? end + 1 + strspn(end + 1, " \t\r") : end;
    }
}

static bool number_read(const char *text, double *number_out)
{
    char *end = NULL;
    errno = 0;
    *number_out = strtod(text, &end);
    return end != text && *end == '\0' && errno == 0 && isfinite(*number_out) && *number_out >= 0 &&
           *number_out <= NUMBER_MAX;
}

// Unknown names are ignored.
static bool csv_names(char *const *fields, unsigned count, struct report_printed_line *line)
{
    struct report_printed_line read = {.count = count};
    double number;
    for (unsigned i = 0; i < count; i++) {
        if (number_read(fields[i], &number)) {
            return false;
        }
        (void)named(names_of_columns, fields[i], &read.columns[i]);
    }
    if (!is_table(&read)) {
        return false;
    }
    *line = read;
    return true;
}

// --- rows -----------------------------------------------------------------------------------------------------------

struct row {
    const char *series; // NULL: not printed
    double numbers[REPORT_PRINTED_BANDWIDTH + 1];
    bool given[REPORT_PRINTED_BANDWIDTH + 1];
    double bandwidth; // bytes per microsecond
};

static bool row_read(const struct report_printed_line *line, char *const *fields, struct row *row)
{
    *row = (struct row){0};
    for (unsigned i = 0; i < line->count; i++) {
        enum report_printed_field field = line->columns[i].field;
        if (field == REPORT_PRINTED_NONE) {
            continue;
        }
        if (field == REPORT_PRINTED_SERIES) {
            row->series = fields[i];
            continue;
        }
        if (!number_read(fields[i], &row->numbers[field])) {
            return false;
        }
        row->given[field] = true;
        row->bandwidth =
            field == REPORT_PRINTED_BANDWIDTH ? row->numbers[field] * line->columns[i].scale : row->bandwidth;
    }
    return true;
}

static double number_of(const struct row *row, enum report_printed_field field, double otherwise)
{
    return row->given[field] ? row->numbers[field] : otherwise;
}

// The time of an operation in microseconds; 0: not known.
static double time_of(const struct row *row)
{
    double by_bandwidth = row->bandwidth > 0 ? row->numbers[REPORT_PRINTED_BYTES] / row->bandwidth : 0;
    return number_of(row, REPORT_PRINTED_LATENCY, by_bandwidth);
}

static bool contradicts_itself(const struct row *row)
{
    double time = number_of(row, REPORT_PRINTED_LATENCY, 0), bytes = row->numbers[REPORT_PRINTED_BYTES];
    double said = row->bandwidth * time;
    return time > 0 && said > 0 && fabs(said - bytes) > DIFFERENCE * bytes + row->bandwidth * 0.01;
}

static void row_add(report_t *report, const struct scn_results *results, const struct row *row, double time_us)
{
    char series[2 * SCN_NAME_MAX];
    const double ps = 1e6;
    double operations = time_us > 0 ? number_of(row, REPORT_PRINTED_OPERATIONS, 1) : 0;
    const struct report_point point = {
        .series = series,
        .bytes = (uint64_t)row->numbers[REPORT_PRINTED_BYTES],
        .descriptors = (uint64_t)number_of(row, REPORT_PRINTED_DESCRIPTORS, 1),
        .operations = (uint64_t)operations,
        .total_ps = (uint64_t)llround(time_us * operations * ps),
        .min_ps = (uint64_t)llround(number_of(row, REPORT_PRINTED_LATENCY_MIN, time_us) * ps),
        .max_ps = (uint64_t)llround(number_of(row, REPORT_PRINTED_LATENCY_MAX, time_us) * ps),
        .ranks = (uint64_t)number_of(row, REPORT_PRINTED_RANKS, 0),
        .memory_bytes = (uint64_t)number_of(row, REPORT_PRINTED_MEMORY, 0),
    };
    snprintf(series, sizeof series, "%s%s%.*s", results->series, row->series != NULL ? ", " : "", SCN_NAME_MAX,
             row->series != NULL ? row->series : "");
    report_add_point(report, &point);
}

struct reading {
    report_t *report;
    const struct scn_results *results;
    struct report_printed_line line;
    unsigned rows, number; // rows found; number of the current line
};

static enum sim_status fields_take(struct reading *reading, char *const *fields, char *error, size_t error_size)
{
    struct row row;
    if (!row_read(&reading->line, fields, &row)) {
        return SIM_OK;
    }
    double time_us = time_of(&row);
    if (contradicts_itself(&row)) {
        snprintf(error, error_size, "line %u: the time contradicts the bandwidth", reading->number);
        return SIM_ERR_INVALID;
    }
    bool memory = number_of(&row, REPORT_PRINTED_MEMORY, 0) > 0;
    if ((time_us > 0 || memory) && time_us * number_of(&row, REPORT_PRINTED_OPERATIONS, 1) < TIME_MAX_US) {
        row_add(reading->report, reading->results, &row, time_us);
        reading->rows++;
    }
    return SIM_OK;
}

static enum sim_status line_take(struct reading *reading, char *text, char *error, size_t error_size)
{
    char *words[REPORT_PRINTED_COLUMNS_MAX];
    unsigned count;
    bool csv = reading->results->format == SCN_FORMAT_CSV;
    if (reading->results->format == SCN_FORMAT_OSU && strncmp(text, "# Size", 6) == 0) {
        osu_names(text, &reading->line);
        return SIM_OK;
    }
    if (csv) {
        char *cursor = text;
        text[strcspn(text, "\r")] = '\0';
        count = (unsigned)csv_record_read(&cursor, words, REPORT_PRINTED_COLUMNS_MAX);
    } else {
        count = words_split(text, words, REPORT_PRINTED_COLUMNS_MAX);
    }
    if (count == 0 || count > REPORT_PRINTED_COLUMNS_MAX || (csv && csv_names(words, count, &reading->line))) {
        return SIM_OK;
    }
    if (reading->results->format == SCN_FORMAT_PERFTEST && strcmp(words[0], "#bytes") == 0) {
        perftest_names(words, count, &reading->line);
        return SIM_OK;
    }
    return count == reading->line.count ? fields_take(reading, words, error, error_size) : SIM_OK;
}

enum sim_status report_add_printed(report_t *report, const struct scn_results *results, const char *text, char *error,
                                   size_t error_size)
{
    struct reading reading = {.report = report, .results = results};
    char wrong[SCN_NAME_MAX];
    enum sim_status status = SIM_OK;
    if (results->columns[0] != '\0') {
        status = report_printed_columns(results->columns, &reading.line, wrong);
    }
    while (*text != '\0' && status == SIM_OK) {
        size_t length = strcspn(text, "\n");
        char line[LINE_MAX_LEN];
        reading.number++;
        if (length < sizeof line) { // a longer line is not a row of numbers
            memcpy(line, text, length);
            line[length] = '\0';
            status = line_take(&reading, line, error, error_size);
        }
        text += length + (text[length] == '\n');
    }
    if (status == SIM_OK && reading.rows == 0) {
        snprintf(error, error_size, "it printed no results");
        status = SIM_ERR_NOT_FOUND;
    }
    return status;
}
