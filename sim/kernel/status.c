// Texts of status codes, and the abort after a broken invariant.
#include "sim/kernel/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/kernel/internal.h"

const char *sim_status_text(enum sim_status status)
{
    switch (status) {
    case SIM_OK:
        return "success";
    case SIM_ERR_INVALID:
        return "an argument or an input is wrong";
    case SIM_ERR_NO_MEMORY:
        return "out of memory";
    case SIM_ERR_NOT_FOUND:
        return "not found";
    case SIM_ERR_EXISTS:
        return "exists already";
    case SIM_ERR_BUSY:
        return "in use";
    case SIM_ERR_IO:
        return "a file could not be read or written";
    case SIM_ERR_RANGE:
        return "outside the permitted range";
    case SIM_ERR_FAULT:
        return "the simulated device reported an error";
    case SIM_ERR_TIMEOUT:
        return "simulated time ran out";
    case SIM_ERR_UNSUPPORTED:
        return "not supported";
    }
    return "unknown status";
}

void sim_panic(const char *component, const char *format, ...)
{
    const sim_t *sim = sim_bridge_living();
    if (sim != NULL) {
        fprintf(stderr, "tcasim: internal error at %" PRIu64 " ps in %s: ", sim->now_ps, component);
    } else {
        fprintf(stderr, "tcasim: internal error outside a simulation in %s: ", component);
    }
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    fflush(stderr);
    abort();
}
