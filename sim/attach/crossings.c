// The crossings of a run as a file, one a line: two runs of the same programs are the same where their files are, and
// the first line that differs is where to look.
#include <inttypes.h>
#include <stdio.h>

#include "sim/attach/internal.h"

static const char *op_name(uint32_t op)
{
#define NAME(name, doc) #name,
    static const char *const names[] = {ATTACH_REQUESTS(NAME)};
#undef NAME
    return op < sizeof names / sizeof names[0] ? names[op] : "?";
}

// How many of its arguments mean anything; what is behind them is left from other requests.
static unsigned arguments_of(uint32_t op)
{
    switch (op) {
    case ATTACH_OP_NOTHING:
    case ATTACH_OP_CHILD: // the machine's number of the child
    case ATTACH_OP_ID:    // perhaps as well
    case ATTACH_OP_THREAD:
    case ATTACH_OP_EXEC:
    case ATTACH_OP_THREAD_EXIT:
    case ATTACH_OP_PROCESS_EXIT:
        return 0;
    case ATTACH_OP_WAIT:
        return 2;
    case ATTACH_OP_POLL:
        return 4;
    default:
        return 3;
    }
}

void attach_crossing_write(FILE *file, const struct attach_thread *thread, const struct attach_request *request)
{
    uint64_t now_ps = sim_now_ps(thread->process->server->sim);
    fprintf(file, "%" PRIu64 " %s %s", now_ps, thread->name, op_name(request->op));
    for (unsigned i = 0; i < arguments_of(request->op); i++) {
        fprintf(file, " 0x%" PRIx64, request->arguments[i]);
    }
    fprintf(file, " after %" PRIu64 " ps and %" PRIu32 " stores\n", request->own_ps, request->entry_count);
}
