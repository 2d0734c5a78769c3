// Log lines on their way to the sink.
#include "sim/kernel/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "sim/kernel/internal.h"

// Longer lines are cut.
enum { LINE_BYTES = 1024 };

static const char *level_name(enum sim_log_level level)
{
    switch (level) {
    case SIM_LOG_ERROR:
        return "error";
    case SIM_LOG_WARN:
        return "warning";
    case SIM_LOG_INFO:
        return "info";
    case SIM_LOG_DEBUG:
        return "debug";
    }
    return "?";
}

static void sink_to_stderr(void *ctx, enum sim_log_level level, const char *line)
{
    (void)ctx;
    fprintf(stderr, "tcasim: %s: %s\n", level_name(level), line);
}

void sim_log_init(sim_t *sim)
{
    sim_log_set_sink(sim, SIM_LOG_WARN, sink_to_stderr, NULL);
}

void sim_log_set_sink(sim_t *sim, enum sim_log_level level, sim_log_sink_fn sink, void *ctx)
{
    sim->log_level = level;
    sim->log_sink = sink;
    sim->log_ctx = ctx;
}

void sim_log(sim_t *sim, enum sim_log_level level, const char *component, const char *format, ...)
{
    if (level <= SIM_LOG_WARN) {
        sim->log_warnings++;
    }
    if (level > sim->log_level || sim->log_sink == NULL) {
        return;
    }
    char time[SIM_NS_TEXT_BYTES];
    char line[LINE_BYTES];
    int used = snprintf(line, sizeof line, "%s ns %s: ", sim_format_ns(time, sim->now_ps), component);
    if (used < 0 || used >= (int)sizeof line) {
        used = 0;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, sizeof line - (size_t)used, format, args);
    va_end(args);
    sim->log_sink(sim->log_ctx, level, line);
}

unsigned sim_log_warnings(const sim_t *sim)
{
    return sim->log_warnings;
}
