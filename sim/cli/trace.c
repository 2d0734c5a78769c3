#include "sim/cli/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/interrupt.h"

#define INTERRUPT_SLOT 0

bool cli_trace_open(struct cli_trace *trace, const char *path)
{
    *trace = (struct cli_trace){.path = path};
    if (asprintf(&trace->temporary, "%s.%ld.tmp", path, (long)getpid()) < 0) {
        cli_error("out of memory");
        return false;
    }
    trace->file = fopen(trace->temporary, "w");
    if (trace->file == NULL) {
        cli_error("cannot write %s: %s", path, strerror(errno));
        free(trace->temporary);
        return false;
    }
    cli_interrupt_file_set(INTERRUPT_SLOT, trace->temporary);
    fputs("time_ps,component,point,a_name,a,b_name,b\n", trace->file);
    return true;
}

static void number_write(FILE *file, const char *name, uint64_t value)
{
    if (name != NULL) {
        fprintf(file, ",%s,%" PRIu64, name, value);
    } else {
        fputs(",,", file);
    }
}

void cli_trace_write(void *ctx, uint64_t time_ps, const char *component, const struct sim_trace_point *point,
                     uint64_t a, uint64_t b)
{
    struct cli_trace *trace = ctx;
    fprintf(trace->file, "%" PRIu64 ",%s,%s", time_ps, component, point->name);
    number_write(trace->file, point->a_name, a);
    number_write(trace->file, point->b_name, b);
    fputc('\n', trace->file);
}

bool cli_trace_close(struct cli_trace *trace, bool keep)
{
    bool written = ferror(trace->file) == 0;
    written = fclose(trace->file) == 0 && written;
    written = written && (!keep || rename(trace->temporary, trace->path) == 0);
    if (!written) {
        cli_error("cannot write %s: %s", trace->path, strerror(errno));
    }
    if (!keep || !written) {
        (void)unlink(trace->temporary);
    }
    cli_interrupt_file_set(INTERRUPT_SLOT, NULL);
    free(trace->temporary);
    return written;
}
