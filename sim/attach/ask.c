// How the queues of a process stand. The simulator asks one of the process's threads, all of which wait, in a
// scheduling slot that has no other purpose.
#include <stdlib.h>
#include <string.h>

#include "sim/attach/internal.h"

// A thread whose stores have all been replayed: the data area of its slot is free.
static struct attach_thread *carrier_find(const struct attach_process *process)
{
    for (unsigned i = 0; i < process->slots; i++) {
        struct attach_thread *thread = process->threads[i];
        if (thread != NULL && thread->asks.what != NULL && !thread->exits && !attach_token_is_program(thread) &&
            atomic_load(&thread->slot->entry_count) == 0) {
            return thread;
        }
    }
    return NULL;
}

struct journal_state *attach_ask(struct attach_process *process, unsigned *count_out)
{
    *count_out = 0;
    struct attach_server *server = process->server;
    bool possible = !server->options->functional && !process->ended && !process->leaving && !server->stopped;
    struct attach_thread *thread = possible ? carrier_find(process) : NULL;
    if (thread == NULL) {
        return NULL;
    }
    attach_memory_settle(server, process->node);
    thread->slot->ask_count = 0;
    thread->slot->ask = 1;
    attach_token_give(thread);
    bool answered = attach_token_await(thread);
    thread->slot->ask = 0;
    struct journal_state *states = answered ? malloc(ATTACH_DATA_BYTES) : NULL;
    if (states != NULL) {
        unsigned count = thread->slot->ask_count, most = ATTACH_DATA_BYTES / sizeof *states;
        *count_out = count < most ? count : most;
        memcpy(states, thread->slot->data, *count_out * sizeof *states);
    }
    return states;
}

bool attach_receives(void *ctx, void *tag, uint32_t context, uint32_t qp, struct observe_receives *receives_out)
{
    const struct attach_server *server = ctx;
    struct attach_process *process = server->processes;
    while (process != NULL && process != tag) { // it may no longer exist
        process = process->next;
    }
    unsigned count = 0;
    struct journal_state *states = process != NULL ? attach_ask(process, &count) : NULL;
    bool found = false;
    for (unsigned i = 0; i < count && !found; i++) {
        found = !states[i].is_cq && states[i].context == context && states[i].number == qp;
        if (found) {
            *receives_out = (struct observe_receives){states[i].qp.receives_posted, states[i].qp.last_receive_ps,
                                                      states[i].qp.receives_outstanding};
        }
    }
    free(states);
    return found;
}
