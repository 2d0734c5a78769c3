// What a run does not determine and may depend on all the same: the machine's kernel and processor, and the files of
// which programs were made. Two runs of the same that disagree differ in something of this; exec.yaml has it.
//
// Files of the usual folders of libraries have their sizes, as versions of a library differ in that; of all others
// (plugins, modules of an interpreter) there is a line for each folder.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "sim/attach/internal.h"
#include "sim/attach/processor.h"

static int paths_compare(const void *left, const void *right)
{
    return strcmp(((const struct attach_loaded *)left)->path, ((const struct attach_loaded *)right)->path);
}

static bool is_known(const struct attach_server *server, const char *path)
{
    bool is = false;
    for (size_t i = 0; i < server->loaded.count && !is; i++) {
        is = strcmp(server->loaded.list[i].path, path) == 0;
    }
    return is;
}

static void file_note(struct attach_server *server, const char *path)
{
    struct stat about;
    if (is_known(server, path) || stat(path, &about) != 0) {
        return;
    }
    struct attach_loaded *grown = realloc(server->loaded.list, (server->loaded.count + 1) * sizeof *grown);
    char *own = grown != NULL ? strdup(path) : NULL;
    server->loaded.list = grown != NULL ? grown : server->loaded.list;
    if (own != NULL) {
        grown[server->loaded.count++] = (struct attach_loaded){own, (uint64_t)about.st_size};
    }
}

static bool is_in(const char *path, const char *folder)
{
    return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

// Its code, apart from tcasim's own libraries.
void attach_fingerprint_note(const struct attach_process *process)
{
    struct attach_server *server = process->server;
    char name[64], line[4096 + 128];
    if (!server->options->fingerprint) {
        return;
    }
    snprintf(name, sizeof name, "/proc/%d/maps", (int)process->reach.pid);
    FILE *maps = fopen(name, "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        char *path = strchr(line, '/');
        line[strcspn(line, "\n")] = '\0';
        if (path != NULL && strstr(line, " r-xp ") != NULL && !is_in(path, server->options->library_directory) &&
            !is_in(path, server->scratch.directory)) {
            file_note(server, path);
        }
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
}

// --- the text -------------------------------------------------------------------------------------------------------

__attribute__((format(printf, 2, 3))) static void add(struct attach_run_result *result, const char *format, ...)
{
    char line[512];
    va_list list;
    va_start(list, format);
    int bytes = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    size_t used = strlen(result->machine);
    // A line that does not fit is left out.
    if ((size_t)bytes < sizeof line && used + (size_t)bytes < sizeof result->machine) {
        memcpy(result->machine + used, line, (size_t)bytes + 1);
    }
}

static bool is_usual(const char *path, size_t folder)
{
    static const char *const folders[] = {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64",
                                          "/usr/lib"};
    bool is = false;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        is = is || (strlen(folders[i]) == folder && strncmp(path, folders[i], folder) == 0);
    }
    return is;
}

static void files_add(struct attach_server *server)
{
    const struct attach_loaded *list = server->loaded.list;
    size_t i = 0;
    while (i < server->loaded.count) {
        size_t folder = (size_t)(strrchr(list[i].path, '/') - list[i].path), end = i;
        uint64_t bytes = 0;
        if (is_usual(list[i].path, folder)) {
            add(server->result, "    \"%s\": %" PRIu64 " B\n", list[i].path + folder + 1, list[i].bytes);
            i++;
            continue;
        }
        for (; end < server->loaded.count && strncmp(list[end].path, list[i].path, folder + 1) == 0 &&
               strchr(list[end].path + folder + 1, '/') == NULL;
             end++) {
            bytes += list[end].bytes;
        }
        add(server->result, "    \"%.*s\": %zu files, %" PRIu64 " B\n", (int)folder, list[i].path, end - i, bytes);
        i = end;
    }
}

void attach_fingerprint_write(struct attach_server *server)
{
    struct utsname kernel = {0};
    char processor[256], flags[4096];
    if (!server->options->fingerprint) {
        return;
    }
    (void)uname(&kernel);
    attach_machine_name(processor, sizeof processor);
    attach_machine_flags(flags, sizeof flags);
    bool faults = strstr(flags, " cpuid_fault") != NULL, invariant = strstr(flags, " nonstop_tsc") != NULL;
    add(server->result, "  kernel: \"%s\"\n  processor: \"%s\"\n", kernel.release, processor);
    add(server->result, "  cpuid: %s\n  counter: %s\n", faults ? "faults" : "does not fault",
        invariant ? "invariant" : "not invariant");
    add(server->result, "  network: %s\n", server->network.own >= 0 ? "its own" : "the machine's");
    add(server->result, "  files:\n");
    if (server->loaded.count > 0) {
        qsort(server->loaded.list, server->loaded.count, sizeof *server->loaded.list, paths_compare);
        files_add(server);
    } else {
        add(server->result, "    none: 0 B\n");
    }
    for (size_t i = 0; i < server->loaded.count; i++) {
        free(server->loaded.list[i].path);
    }
    free(server->loaded.list);
    server->loaded = (struct attach_loaded_files){0};
}
