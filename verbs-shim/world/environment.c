// The environment of a program that is started by another one. Users preload libraries of their own, and some programs
// clear the environment: whatever it is, the new program loads this library, after those of the user, and finds the run.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/environment.h"
#include "verbs-shim/world/world.h"

enum { PRELOAD, LIBRARIES, LISTS, VALUE_BYTES = 4096 };
static const char *const lists[LISTS] = {[PRELOAD] = "LD_PRELOAD", [LIBRARIES] = "LD_LIBRARY_PATH"};
static const char *const names[] = {"TCASIM_ATTACH", "TCASIM_NODE", "TCASIM_HOME", "TCASIM_SYSFS"};
enum { NAMES = sizeof names / sizeof names[0] };

// What belongs to the run in each list, and the variables as this program has got them ("NAME=value").
static char own[LISTS][VALUE_BYTES], values[NAMES][VALUE_BYTES];

static void own_libraries_take(const char *directory, size_t length)
{
    const char *value = getenv(lists[PRELOAD]);
    char *end = own[PRELOAD];
    while (value != NULL && *value != '\0') {
        size_t bytes = strcspn(value, ": ");
        bool is_own = bytes > length && strncmp(value, directory, length) == 0 && value[length] == '/';
        if (is_own && (size_t)(end - own[PRELOAD]) + bytes + 2 < VALUE_BYTES) {
            end = end != own[PRELOAD] ? stpcpy(end, ":") : end;
            end = mempcpy(end, value, bytes);
            *end = '\0';
        }
        value += bytes + strspn(value + bytes, ": ");
    }
}

void world_environment_start(void)
{
    Dl_info here;
    const char *last =
        dladdr((void *)(uintptr_t)world_environment_start, &here) != 0 ? strrchr(here.dli_fname, '/') : NULL;
    size_t length = last != NULL ? (size_t)(last - here.dli_fname) : 0;
    if (length == 0 || length >= VALUE_BYTES) {
        return;
    }
    memcpy(own[LIBRARIES], here.dli_fname, length);
    own_libraries_take(own[LIBRARIES], length);
    for (size_t i = 0; i < NAMES; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && strlen(names[i]) + strlen(value) + 2 < VALUE_BYTES) {
            (void)stpcpy(stpcpy(stpcpy(values[i], names[i]), "="), value);
        }
    }
}

// The place of the variable in the environment; NULL: it has none.
static char *const *find(char *const *environment, const char *name)
{
    size_t length = strlen(name);
    while (environment != NULL && *environment != NULL &&
           !(strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')) {
        environment++;
    }
    return environment != NULL && *environment != NULL ? environment : NULL;
}

// Does the list have ours, between separators?
static bool has(const char *list, const char *ours)
{
    const char *at = ours[0] != '\0' ? strstr(list, ours) : list;
    size_t length = strlen(ours);
    while (at != NULL && length != 0 &&
           ((at != list && strchr(": ", at[-1]) == NULL) || strchr(": ", at[length]) == NULL)) { // or at the end
        at = strstr(at + 1, ours);
    }
    return at != NULL;
}

static unsigned missing_count(char *const *environment, size_t *bytes_out)
{
    unsigned missing = 0;
    for (size_t i = 0; i < NAMES; i++) {
        missing += values[i][0] != '\0' && find(environment, names[i]) == NULL;
    }
    for (size_t i = 0; i < LISTS; i++) {
        char *const *entry = find(environment, lists[i]);
        const char *value = entry != NULL ? *entry + strlen(lists[i]) + 1 : "";
        if (!has(value, own[i])) {
            missing++;
            *bytes_out += strlen(lists[i]) + 1 + strlen(value) + 1 + strlen(own[i]) + 1;
        }
    }
    return missing;
}

static void complete(char **to, unsigned count, char *text)
{
    for (size_t i = 0; i < NAMES; i++) {
        if (values[i][0] != '\0' && find(to, names[i]) == NULL) {
            to[count++] = values[i];
        }
    }
    for (size_t i = 0; i < LISTS; i++) {
        char *const *entry = find(to, lists[i]);
        const char *value = entry != NULL ? *entry + strlen(lists[i]) + 1 : "";
        if (!has(value, own[i])) {
            char *begin = text;
            text = stpcpy(stpcpy(stpcpy(text, lists[i]), "="), value);
            text = value[0] != '\0' ? stpcpy(text, ":") : text;
            text = stpcpy(text, own[i]) + 1;
            to[entry != NULL ? (unsigned)(entry - to) : count++] = begin;
        }
    }
}

struct world_environment world_environment_begin(char *const *environment)
{
    struct world_environment result = {.list = environment};
    size_t bytes = 0;
    unsigned count = 0, missing = missing_count(environment, &bytes);
    while (environment != NULL && environment[count] != NULL) {
        count++;
    }
    if (missing == 0) {
        return result;
    }
    // Of the kernel: a child of a program with threads may not allocate.
    size_t list_bytes = (count + missing + 1) * sizeof *environment;
    long memory = kernel_call(SYS_mmap, 0, (long)(list_bytes + bytes), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory < 0 && memory > -4096) {
        return result;
    }
    char **list = (char **)memory; // NOLINT(performance-no-int-to-ptr)
    if (count != 0) {
        memcpy(list, environment, count * sizeof *list);
    }
    complete(list, count, (char *)list + list_bytes);
    return (struct world_environment){list, list_bytes + bytes};
}

void world_environment_end(const struct world_environment *environment)
{
    if (environment->bytes != 0) {
        (void)kernel_call(SYS_munmap, (long)(uintptr_t)environment->list, (long)environment->bytes, 0, 0, 0, 0);
    }
}
