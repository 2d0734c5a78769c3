#include "sim/cli/junit.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cli/cli.h"
#include "sim/cli/output.h"
#include "sim/report/files.h"

bool cli_junit_begin(struct cli_junit *tests, const char *path, const char *const *scenarios, size_t count,
                     const struct cli_paths *paths)
{
    *tests = (struct cli_junit){.path = path};
    if (path == NULL) {
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        if (!cli_output_usable(path, scenarios[i], paths)) {
            return false;
        }
    }
    tests->suites = open_memstream(&tests->text, &tests->size);
    if (tests->suites == NULL) {
        cli_error("out of memory");
    }
    return tests->suites != NULL;
}

static void file_write(void *ctx, FILE *out)
{
    const struct cli_junit *tests = ctx;
    junit_head_write(out);
    (void)fwrite(tests->text, 1, tests->size, out);
    junit_foot_write(out);
}

bool cli_junit_end(struct cli_junit *tests)
{
    char error[PATH_MAX + 256];
    if (tests->suites == NULL) {
        return true;
    }
    (void)fclose(tests->suites);
    bool written = files_one_write(tests->path, file_write, tests, error, sizeof error) == SIM_OK;
    if (!written) {
        cli_error("%s", error);
    }
    free(tests->text);
    *tests = (struct cli_junit){0};
    return written;
}
