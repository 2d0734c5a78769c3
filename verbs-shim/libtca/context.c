// The library's state of one process.
#include <stdlib.h>

#include "verbs-shim/libtca/internal.h"

struct tca_context *tca_context_current(void)
{
    const struct backend_process *process = backend_current();
    return process != NULL ? process->libraries[BACKEND_LIBRARY_TCA].state : NULL;
}

// The environment calls it when the process has ended, at whatever point. The driver owns pinned memory and chains.
static void context_release(void *library)
{
    struct tca_context *context = library;
    tca_tables_free(context);
    tca_descs_free(context);
    tca_allocations_free(context);
    free(context);
}

static void begin_undo(struct tca_context *context)
{
    const struct backend *backend = &context->backend;
    struct backend_buffer *const buffers[] = {&context->inbox.slots, &context->status};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        if (buffers[i]->address != NULL) {
            backend->ops->free_pinned(backend->ctx, buffers[i]);
        }
    }
    context->process->libraries[BACKEND_LIBRARY_TCA] = (struct backend_library){0};
    free(context);
}

int tca_context_begin(struct backend_process *process)
{
    if (process->libraries[BACKEND_LIBRARY_TCA].state != NULL) {
        return tcaSuccess;
    }
    struct tca_context *context = calloc(1, sizeof *context);
    if (context == NULL) {
        return tcaErrorNoMemory;
    }
    context->process = process;
    context->backend = process->backend;
    context->board = process->board;
    context->timeout_ns = tcaTimeoutDefault;
    // Programs of the machine mostly notify there, and a poll of the host's word costs little.
    context->notify_internal = true;
    process->libraries[BACKEND_LIBRARY_TCA].state = context;
    process->libraries[BACKEND_LIBRARY_TCA].release = context_release;
    const struct backend *backend = &context->backend;
    int error = tcaErrorNoMemory;
    if (backend->ops->alloc_pinned(backend->ctx, tcaChannels * sizeof(uint64_t), &context->status) == 0) {
        error = tca_inbox_make(context);
    }
    if (error != tcaSuccess) {
        begin_undo(context);
    }
    return error;
}

int tcaInit(void)
{
    struct backend_process *process = backend_current();
    if (process == NULL || process->board == NULL) {
        return tcaErrorNoBoard;
    }
    struct tca_context *context = tca_context_current();
    if (context != NULL && context->holds_board) {
        return tcaSuccess;
    }
    if (backend_board_claim(&process->backend) != 0) {
        return tcaErrorInUse;
    }
    int error = tca_context_begin(process);
    if (error != tcaSuccess) {
        backend_board_release(&process->backend);
        return error;
    }
    tca_context_current()->holds_board = true;
    return tcaSuccess;
}

int tcaSetComm(const struct tcaComm *comm)
{
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    if (comm == NULL || comm->allgather == NULL || comm->ranks < 1 || comm->rank < 0 || comm->rank >= comm->ranks) {
        return tca_refuse(context, tcaErrorArgument, "tcaSetComm: needs an exchange, and a rank out of the ranks");
    }
    if (comm->ranks > tcaNodesMax) {
        return tca_refuse(context, tcaErrorNodes, "tcaSetComm: %d ranks, but a sub-cluster has at most %d nodes",
                          comm->ranks, tcaNodesMax);
    }
    context->comm = *comm;
    context->comm_is_environments = false;
    return tcaSuccess;
}

int tcaSetTimeout(uint64_t timeout_ns)
{
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    context->timeout_ns = timeout_ns;
    return tcaSuccess;
}
