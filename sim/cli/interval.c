#include "sim/cli/interval.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/load.h"
#include "sim/cli/point.h"
#include "sim/kernel/regular_file.h"
#include "sim/report/csv.h"
#include "sim/report/files.h"
#include "sim/report/interval.h"
#include "sim/report/manifest.h"
#include "sim/scenario/sweep.h"

#define KEYS_MAX  256
#define DRAWS_MAX 10000
#define DRAWS_MIN 20 // of fewer, 5 and 95 % would be the least and the most
// Draws are of twins, unless the scenario or --set asks for RTL boards itself.
#define TWINS "presets.board.peach2-2013-02.fidelity=twin"

struct cli_draws {
    char *text; // of the table; keys and values point into it
    char hash[REPORT_HASH_MAX];
    char *keys[KEYS_MAX];
    size_t key_count;
    uint32_t count; // draws
    char **sets;    // "presets.KEY=VALUE", by draw and key; owned
    double *values; // numbers of the same
    struct scn_sweep asked;
    struct scn_sweep_point *points;
    char **labels;
    const char **point_sets;
};

uint32_t cli_interval_count(const char *option, const char *given)
{
    char *end = NULL;
    uint64_t number = CLI_DRAWS_ALL;
    if (given[0] != '\0' &&
        (!cli_number_read(given, &end, &number) || *end != '\0' || number < DRAWS_MIN || number > DRAWS_MAX)) {
        cli_error("--%s %s: expected a number of draws, %d to %d", option, given, DRAWS_MIN, DRAWS_MAX);
        return 0;
    }
    return (uint32_t)number;
}

// --- the table ------------------------------------------------------------------------------------------------------

static char *file_read(const char *path)
{
    FILE *file = sim_regular_open(path);
    char *text = file != NULL ? files_text_read(file) : NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    if (text == NULL) {
        cli_error("%s: cannot be read", path);
    }
    return text;
}

static void draw_add(struct cli_draws *draws, char *const *fields)
{
    for (size_t i = 0; i < draws->key_count; i++) {
        size_t at = draws->count * draws->key_count + i;
        if (asprintf(&draws->sets[at], "presets.%s=%s", draws->keys[i], fields[i]) < 0) {
            draws->sets[at] = NULL;
        }
        draws->values[at] = strtod(fields[i], NULL);
    }
    draws->count++;
}

static size_t lines_count(const char *text)
{
    size_t lines = 0;
    for (; *text != '\0'; text++) {
        lines += *text == '\n';
    }
    return lines;
}

static bool table_read(struct cli_draws *draws, const char *path, uint32_t wanted)
{
    char *cursor = draws->text, *fields[KEYS_MAX];
    size_t lines = lines_count(draws->text);
    draws->key_count = csv_record_read(&cursor, draws->keys, KEYS_MAX);
    bool right = draws->key_count > 0 && draws->key_count <= KEYS_MAX;
    draws->sets = calloc(right ? lines * draws->key_count : 1, sizeof *draws->sets);
    draws->values = calloc(right ? lines * draws->key_count : 1, sizeof *draws->values);
    right = right && draws->sets != NULL && draws->values != NULL;
    while (right && draws->count < wanted) {
        size_t count = csv_record_read(&cursor, fields, KEYS_MAX);
        if (count == 0 && wanted == CLI_DRAWS_ALL) {
            break;
        }
        if (count == 0) {
            cli_error("%s has %" PRIu32 " draws, and not %" PRIu32, path, draws->count, wanted);
            return false;
        }
        right = count == draws->key_count;
        if (right) {
            draw_add(draws, fields);
        }
    }
    if (!right || draws->count < DRAWS_MIN) {
        cli_error("%s: expected a table with a value of every key in each line, and %d or more of them", path,
                  DRAWS_MIN);
    }
    return right && draws->count >= DRAWS_MIN;
}

// --- keys -----------------------------------------------------------------------------------------------------------

// Does one of them give the value?
static bool gives(const char *const *sets, size_t count, const char *key)
{
    bool given = false;
    for (size_t i = 0; i < count; i++) {
        given = given || scn_set_gives(sets[i], key);
    }
    return given;
}

// Which keys give the scenario, or this point of it (NULL: it has no sweep), a value. false: printed why.
static bool used_add(const struct cli_draws *draws, const struct cli_job *job, const struct scn_sweep_point *own,
                     bool *used)
{
    size_t own_count = own != NULL ? own->set_count : 0, count = draws->key_count + own_count, given = job->sets->count;
    const char **sets = calloc(count + 1, sizeof *sets);
    bool *flags = calloc(given + count + 1, sizeof *flags);
    struct scn_scenario *scenario = NULL;
    if (sets != NULL && flags != NULL) {
        for (size_t i = 0; i < count; i++) {
            sets[i] = i < draws->key_count ? draws->sets[i] : own->sets[i - draws->key_count];
        }
        const struct scn_sweep_point point = {
            .label = "", .curve = "", .axis = "", .others = "", .sets = sets, .set_count = count};
        scenario = cli_point_load(job->path, job->paths, job->sets, &point, flags);
    }
    for (size_t i = 0; i < draws->key_count && scenario != NULL; i++) {
        const char *key = draws->keys[i];
        bool fixed = gives((const char *const *)job->sets->items, given, key) ||
                     (own != NULL && gives(own->sets, own->set_count, key));
        used[i] = used[i] || (flags[given + i] && !fixed);
    }
    bool loaded = scenario != NULL;
    scn_free(scenario);
    free(sets);
    free(flags);
    return loaded;
}

// Leaves out the keys that give no point of the scenario a value. false: printed why.
static bool keys_choose(struct cli_draws *draws, const struct cli_job *job)
{
    const struct scn_sweep *own = job->scenario->sweep;
    bool used[KEYS_MAX] = {false};
    for (uint32_t i = 0; i < (own != NULL ? own->point_count : 1); i++) {
        if (!used_add(draws, job, own != NULL ? &own->points[i] : NULL, used)) {
            return false;
        }
    }
    size_t from = 0, to = 0, keys = 0;
    for (uint32_t draw = 0; draw < draws->count; draw++) {
        for (size_t k = 0; k < draws->key_count; k++, from++) {
            if (used[k]) {
                draws->sets[to] = draws->sets[from];
                draws->values[to++] = draws->values[from];
            } else {
                free(draws->sets[from]);
            }
        }
    }
    for (size_t k = 0; k < draws->key_count; k++) {
        draws->keys[keys] = draws->keys[k];
        keys += used[k];
    }
    draws->key_count = keys;
    if (keys == 0) {
        cli_error("%s: it uses no preset with a range, so there is no interval", job->path);
    }
    return keys > 0;
}

// --- points ---------------------------------------------------------------------------------------------------------

// Each point of the scenario's own sweep in each draw, or the scenario itself.
static bool points_make(struct cli_draws *draws, const struct scn_sweep *own)
{
    uint32_t each = own != NULL ? own->point_count : 1, all = draws->count * each;
    size_t own_sets = 0;
    for (uint32_t i = 0; i < each && own != NULL; i++) {
        own_sets = own->points[i].set_count > own_sets ? own->points[i].set_count : own_sets;
    }
    size_t room = 1 + draws->key_count + own_sets;
    draws->points = calloc(all, sizeof *draws->points);
    draws->labels = calloc(all, sizeof *draws->labels);
    draws->point_sets = calloc(all * room, sizeof *draws->point_sets);
    bool made = draws->points != NULL && draws->labels != NULL && draws->point_sets != NULL;
    for (uint32_t i = 0; i < all && made; i++) {
        const struct scn_sweep_point *point = own != NULL ? &own->points[i % each] : NULL;
        const char **sets = draws->point_sets + i * room;
        size_t count = 0;
        sets[count++] = TWINS;
        for (size_t k = 0; k < draws->key_count; k++) {
            sets[count++] = draws->sets[i / each * draws->key_count + k];
            made = made && sets[count - 1] != NULL;
        }
        for (size_t k = 0; point != NULL && k < point->set_count; k++) {
            sets[count++] = point->sets[k];
        }
        made = made && asprintf(&draws->labels[i], "draw %" PRIu32 "%s%s", i / each + 1, point != NULL ? ", " : "",
                                point != NULL ? point->label : "") >= 0;
        draws->points[i] = (struct scn_sweep_point){.label = draws->labels[i],
                                                    .curve = draws->labels[i],
                                                    .axis = "",
                                                    .others = "",
                                                    .sets = sets,
                                                    .set_count = count};
    }
    draws->asked = (struct scn_sweep){
        .title = "", .axis_title = "", .others_title = "", .points = draws->points, .point_count = all};
    if (!made) {
        cli_error("out of memory");
    }
    return made;
}

struct cli_draws *cli_draws_read(const struct cli_job *job, uint32_t count)
{
    char path[PATH_MAX + 16];
    struct cli_draws *draws = calloc(1, sizeof *draws);
    snprintf(path, sizeof path, "%s/draws.csv", job->paths->configs);
    if (draws != NULL) {
        report_hash_file(path, draws->hash);
    }
    bool right = draws != NULL && (draws->text = file_read(path)) != NULL && table_read(draws, path, count) &&
                 keys_choose(draws, job) && points_make(draws, job->scenario->sweep);
    if (!right) {
        cli_draws_free(draws);
        return NULL;
    }
    return draws;
}

void cli_draws_free(struct cli_draws *draws)
{
    if (draws == NULL) {
        return;
    }
    for (size_t i = 0; i < draws->count * draws->key_count; i++) {
        free(draws->sets[i]);
    }
    for (uint32_t i = 0; i < draws->asked.point_count; i++) {
        free(draws->labels[i]);
    }
    free(draws->sets);
    free(draws->values);
    free(draws->points);
    free(draws->labels);
    free(draws->point_sets);
    free(draws->text);
    free(draws);
}

const struct scn_sweep *cli_draws_asked(const struct cli_draws *draws)
{
    return &draws->asked;
}

uint32_t cli_draws_count(const struct cli_draws *draws)
{
    return draws->count;
}

// --- intervals ------------------------------------------------------------------------------------------------------

// The results of one draw. NULL: a point of it failed.
static report_t *draw_report(const struct cli_sweep *sweep, uint32_t draw, uint32_t each)
{
    const struct cli_job *job = sweep->job;
    report_t *report = NULL;
    if (report_create(job->scenario, job->reference_csv, &report) != SIM_OK) {
        return NULL;
    }
    bool whole = true;
    for (uint32_t i = 0; i < each && whole; i++) {
        const struct cli_sweep_point *point = &sweep->points[draw * each + i];
        uint32_t number = job->scenario->sweep != NULL ? i + 1 : 0;
        whole =
            point->result == CLI_EXIT_OK && report_point_add(report, sweep->directory, point->name, number) == SIM_OK;
    }
    if (!whole) {
        report_destroy(report);
        return NULL;
    }
    return report;
}

static enum cli_exit intervals_make(const struct cli_sweep *sweep, const struct cli_draws *draws, report_t *report)
{
    uint32_t each = draws->asked.point_count / draws->count, missing = 0;
    report_interval_t *interval =
        report_interval_create(report, (const char *const *)draws->keys, draws->key_count, draws->count);
    for (uint32_t i = 0; i < draws->count; i++) {
        report_t *draw = draw_report(sweep, i, each);
        missing += draw == NULL || !report_interval_add(interval, draw, draws->values + i * draws->key_count);
        report_destroy(draw);
    }
    if (missing < draws->count) {
        report_interval_end(interval, draws->hash);
    }
    report_interval_destroy(interval);
    if (missing > 0) {
        cli_error("%s: %" PRIu32 " of %" PRIu32 " draws have no results, and the intervals leave them out",
                  sweep->job->path, missing, draws->count);
    }
    return missing > 0 ? CLI_EXIT_INPUT : CLI_EXIT_OK;
}

enum cli_exit cli_interval_measure(const struct cli_job *job, report_t *report, struct cli_progress *progress)
{
    struct cli_sweep sweep = {0};
    enum cli_exit result = CLI_EXIT_INPUT;
    if (!cli_sweep_init(&sweep, job, &job->draws->asked, CLI_DRAWS_FOLDER)) {
        return result;
    }
    if (cli_sweep_measure(&sweep, progress) == CLI_ENGINE_MEASURED) {
        result = intervals_make(&sweep, job->draws, report);
    }
    cli_sweep_fini(&sweep);
    return result;
}
