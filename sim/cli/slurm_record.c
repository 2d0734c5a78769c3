#include "sim/cli/slurm_record.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/slurm_states.h"
#include "sim/kernel/regular_file.h"
#include "sim/report/files.h"

#define RECORD     "job"
#define HEAD       "# The job array of `tcasim run --engine slurm` that no run has collected yet.\n"
#define POINTS_MAX 1000000000

bool cli_slurm_path(const struct cli_job *job, const char *name, char path[PATH_MAX])
{
    bool fits = (size_t)snprintf(path, PATH_MAX, "%s/slurm%s%s", job->directory, name[0] != '\0' ? "/" : "", name) <
                PATH_MAX - 32; // of temporary names
    if (!fits) {
        cli_error("%s: the name of the directory is too long", job->directory);
    }
    return fits;
}

void cli_slurm_file(uint64_t job, uint32_t point, const char *suffix, char *name, size_t size)
{
    snprintf(name, size, "%" PRIu64 "-%" PRIu32 "%s", job, point + 1, suffix);
}

bool cli_slurm_record_init(struct cli_slurm_record *record, const struct cli_sweep *sweep)
{
    char *names = NULL;
    size_t size = 0;
    uint32_t count = sweep->asked->point_count;
    *record = (struct cli_slurm_record){.count = count, .tasks = calloc(count, sizeof *record->tasks)};
    FILE *out = open_memstream(&names, &size);
    for (uint32_t i = 0; i < count && out != NULL; i++) {
        fprintf(out, "%s\n", sweep->points[i].name);
    }
    bool good = out != NULL && fclose(out) == 0 && record->tasks != NULL;
    if (good) {
        report_hash_text(names, record->sweep);
        report_hash_file("/proc/self/exe", record->program);
    } else {
        cli_error("out of memory");
        cli_slurm_record_fini(record);
    }
    free(names);
    return good;
}

void cli_slurm_record_fini(struct cli_slurm_record *record)
{
    free(record->tasks);
    record->tasks = NULL;
}

// --- the file -------------------------------------------------------------------------------------------------------

static bool tasks_read(struct cli_slurm_record *record, FILE *file)
{
    uint32_t point = 0, task = 0;
    while (fscanf(file, " point %" SCNu32 " task %" SCNu32, &point, &task) == 2) {
        if (point < 1 || point > record->count || task < 1 || task > record->count) {
            return false;
        }
        record->tasks[point - 1] = task;
    }
    return feof(file) != 0;
}

static bool fields_read(struct cli_slurm_record *record, FILE *file)
{
    char line[sizeof HEAD + 1] = "", detached[4] = "";
    if (fgets(line, sizeof line, file) == NULL || strcmp(line, HEAD) != 0 ||
        fscanf(file, "job %" SCNu64 " detached %3[a-z] program %64[0-9a-f] sweep %64[0-9a-f] points %" SCNu32,
               &record->job, detached, record->program, record->sweep, &record->count) != 5 ||
        record->count > POINTS_MAX) {
        return false;
    }
    record->detached = strcmp(detached, "yes") == 0;
    record->tasks = calloc(record->count + 1, sizeof *record->tasks);
    return record->tasks != NULL && tasks_read(record, file);
}

enum cli_slurm_found cli_slurm_record_read(struct cli_slurm_record *record, const struct cli_job *job)
{
    char path[PATH_MAX];
    *record = (struct cli_slurm_record){0};
    if (!cli_slurm_path(job, RECORD, path)) {
        return CLI_SLURM_BAD;
    }
    FILE *file = sim_regular_open(path);
    if (file == NULL && (errno == ENOENT || errno == ENOTDIR)) {
        return CLI_SLURM_NONE;
    }
    bool good = file != NULL && fields_read(record, file);
    if (!good) {
        cli_error("%s: %s", path,
                  file == NULL ? strerror(errno)
                               : "not the record of a job; remove it if no job runs in these results");
        cli_slurm_record_fini(record);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return good ? CLI_SLURM_FOUND : CLI_SLURM_BAD;
}

static void record_print(void *ctx, FILE *out)
{
    const struct cli_slurm_record *record = ctx;
    fprintf(out, HEAD "job %" PRIu64 "\ndetached %s\nprogram %s\nsweep %s\npoints %" PRIu32 "\n", record->job,
            record->detached ? "yes" : "no", record->program, record->sweep, record->count);
    for (uint32_t i = 0; i < record->count; i++) {
        if (record->tasks[i] > 0) {
            fprintf(out, "point %" PRIu32 " task %" PRIu32 "\n", i + 1, record->tasks[i]);
        }
    }
}

bool cli_slurm_record_write(const struct cli_slurm_record *record, const struct cli_job *job)
{
    char path[PATH_MAX], error[PATH_MAX + 256] = "";
    if (!cli_slurm_path(job, RECORD, path)) {
        return false;
    }
    bool written = files_one_write(path, record_print, (void *)(uintptr_t)record, error, sizeof error) == SIM_OK;
    if (!written) {
        cli_error("%s", error);
    }
    return written;
}

void cli_slurm_record_remove(const struct cli_job *job)
{
    char path[PATH_MAX];
    if (cli_slurm_path(job, RECORD, path)) {
        (void)unlink(path);
    }
}

static bool is_of_others(const char *name, uint64_t job)
{
    uint64_t other = 0, point = 0;
    char *end = NULL;
    return cli_number_read(name, &end, &other) && *end == '-' && cli_number_read(end + 1, &end, &point) &&
           *end == '.' && other != job;
}

void cli_slurm_folder_tidy(const struct cli_job *sweep, uint64_t job)
{
    char folder[PATH_MAX], path[PATH_MAX];
    DIR *entries = cli_slurm_path(sweep, "", folder) ? opendir(folder) : NULL;
    if (entries == NULL) {
        return;
    }
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        if ((is_of_others(entry->d_name, job) || strcmp(entry->d_name, CLI_SLURM_SCRIPT) == 0) &&
            files_path(folder, entry->d_name, path, sizeof path) == SIM_OK) {
            (void)unlink(path);
        }
    }
    (void)closedir(entries);
    (void)rmdir(folder);
}

// --- jobs of earlier runs -------------------------------------------------------------------------------------------

static const char this_sweep[] = "this sweep";

static bool job_ended(const struct cli_slurm_record *record, const struct cli_sweep *sweep, const char *which)
{
    const char *directory = sweep->job->directory;
    unsigned long long job = record->job;
    switch (cli_slurm_job_look(record->job)) {
    case CLI_SLURM_JOB_ENDED:
        return true;
    case CLI_SLURM_JOB_ALIVE:
        cli_error("%s: job %llu of %s still runs there; %sscancel %llu ends it", directory, job, which,
                  which == this_sweep ? "--resume collects it, " : "", job);
        return false;
    case CLI_SLURM_JOB_UNKNOWN:
        cli_error("%s: job %llu of %s may still run there, and Slurm gives no answer; remove %s/slurm/" RECORD
                  " if it has ended",
                  directory, job, which, directory);
        return false;
    }
    return false;
}

bool cli_slurm_folder_free(const struct cli_sweep *sweep)
{
    struct cli_slurm_record here, now;
    enum cli_slurm_found found = cli_slurm_record_read(&here, sweep->job);
    if (found != CLI_SLURM_FOUND) {
        return found == CLI_SLURM_NONE;
    }
    bool free_now = cli_slurm_record_init(&now, sweep);
    if (free_now) {
        const char *which = strcmp(here.program, now.program) != 0 ? "another build of the program"
                            : strcmp(here.sweep, now.sweep) != 0   ? "another sweep"
                                                                   : this_sweep;
        free_now = job_ended(&here, sweep, which);
        cli_slurm_record_fini(&now);
    }
    cli_slurm_record_fini(&here);
    return free_now;
}
