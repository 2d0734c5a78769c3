#include "sim/report/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <string.h>

#include "sim/kernel/regular_file.h"
#include "sim/kernel/text.h"
#include "sim/report/bands.h"
#include "sim/report/faults.h"
#include "tcasim_revision.h"

#define HASH_TEXT_MAX REPORT_HASH_MAX
_Static_assert(REPORT_HASH_MAX == 2 * SHA256_DIGEST_SIZE + 1, "a hash is SHA-256 in hexadecimal");

static void hash_make(struct files *files, const char *path, char text[HASH_TEXT_MAX])
{
    text[0] = '\0';
    if (files->status != SIM_OK) {
        return;
    }
    FILE *file = sim_regular_open(path);
    if (file == NULL) {
        files_fail(files, SIM_ERR_IO, "cannot read %s: %s", path, strerror(errno));
        return;
    }
    struct sha256_ctx hash;
    sha256_init(&hash);
    uint8_t bytes[8192];
    size_t count = fread(bytes, 1, sizeof bytes, file);
    while (count > 0) {
        sha256_update(&hash, count, bytes);
        count = fread(bytes, 1, sizeof bytes, file);
    }
    if (ferror(file) != 0) {
        files_fail(files, SIM_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    }
    fclose(file);
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(&hash, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    }
}

static void own_hash_make(struct files *files, const char *name, char text[HASH_TEXT_MAX])
{
    char temporary[FILES_NAME_MAX + 32];
    char path[PATH_MAX];
    files_temporary_name(name, temporary, sizeof temporary);
    (void)files_path(files->directory, temporary, path, sizeof path);
    hash_make(files, path, text);
}

static void sets_write(const report_t *report, FILE *out)
{
    fputs(report->set_count == 0 ? "set: []\n" : "set:\n", out);
    for (size_t i = 0; i < report->set_count; i++) {
        fputs("  - ", out);
        sim_text_quote(out, report->sets[i]);
        fputc('\n', out);
    }
}

static void runs_write(const report_t *report, FILE *out)
{
    uint64_t simulated_ps = 0;
    for (size_t i = 0; i < report->run_count; i++) {
        simulated_ps += report->runs[i].simulated_ps;
    }
    fprintf(out, "simulated_ps: %" PRIu64 "\n", simulated_ps);
    fputs(report->run_count == 0 ? "runs: []\n" : "runs:\n", out);
    for (size_t i = 0; i < report->run_count; i++) {
        const struct report_run *run = &report->runs[i];
        fputs("  - series: ", out);
        sim_text_quote(out, run->series);
        fprintf(out, "\n    simulated_ps: %" PRIu64 "\n    events: %" PRIu64 "\n    rtl_cycles: %" PRIu64 "\n",
                run->simulated_ps, run->events, run->rtl_cycles);
        report_faults_manifest_write(report, run->series, out);
    }
}

// In a sweep: the files in points/ that hold each point.
static void points_write(const report_t *report, FILE *out)
{
    fputs(report->hash_count > 0 ? "points:\n" : "", out);
    for (size_t i = 0; i < report->hash_count; i++) {
        fputs("  - label: ", out);
        sim_text_quote(out, report->scenario->sweep->points[i].label);
        fputs("\n    file: ", out);
        sim_text_quote(out, report->hashes[i]);
        fputc('\n', out);
    }
}

void report_hash_text(const char *text, char hash[REPORT_HASH_MAX])
{
    struct sha256_ctx state;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&state);
    sha256_update(&state, strlen(text), (const uint8_t *)text);
    sha256_digest(&state, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        snprintf(hash + 2 * i, 3, "%02x", digest[i]);
    }
}

void report_hash_file(const char *path, char hash[REPORT_HASH_MAX])
{
    char error[256];
    struct files files = {.error = error, .error_size = sizeof error, .status = SIM_OK};
    hash_make(&files, path, hash);
}

void report_manifest_write(const report_t *report, struct files *files, const char *scenario_path,
                           const char *gnuplot_version)
{
    char scenario[HASH_TEXT_MAX];
    char resolved[HASH_TEXT_MAX] = "";
    char data[HASH_TEXT_MAX];
    hash_make(files, scenario_path, scenario);
    bool sweep = report->scenario->sweep != NULL;
    if (!sweep) {
        own_hash_make(files, "resolved.yaml", resolved);
    }
    own_hash_make(files, "data.csv", data);
    FILE *out = files_open(files, "manifest.yaml");
    if (out == NULL) {
        return;
    }
    fputs("scenario: ", out);
    sim_text_quote(out, report->scenario->name);
    fprintf(out, "\nseed: %" PRIu64 "\n", report->scenario->seed);
    sets_write(report, out);
    fprintf(out, "sha256:\n  scenario: %s\n", scenario);
    if (!sweep) {
        fprintf(out, "  resolved.yaml: %s\n", resolved);
    }
    fprintf(out, "  data.csv: %s\n", data);
    fprintf(out, "tcasim: \"%s\"\nrevision: \"%s\"\n", TCASIM_VERSION, TCASIM_REVISION);
    fprintf(out, "tools:\n  systemc: \"%s\"\n  verilator: \"%s\"\n  compiler: \"%s\"\n", TCASIM_SYSTEMC_VERSION,
            TCASIM_VERILATOR_VERSION, TCASIM_COMPILER);
    if (gnuplot_version != NULL) {
        fprintf(out, "  gnuplot: \"%s\"\n", gnuplot_version);
    }
    if (report->bands != NULL) {
        fprintf(out, "interval:\n  draws: %zu\n  sha256_of_draws: %s\n", report->bands->draws,
                report->bands->table_hash);
    }
    points_write(report, out);
    runs_write(report, out);
    files_close(files, out, "manifest.yaml");
}

void report_version_print(FILE *out)
{
    fprintf(out, "tcasim %s\nrevision %s\nSystemC %s, Verilator %s, %s\n", TCASIM_VERSION, TCASIM_REVISION,
            TCASIM_SYSTEMC_VERSION, TCASIM_VERILATOR_VERSION, TCASIM_COMPILER);
}
