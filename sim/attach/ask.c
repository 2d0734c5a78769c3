// How a process's queues stand: one of its threads, all of which wait, gets a turn that is for this alone.
#include <string.h>

#include "sim/attach/internal.h"

// One whose stores have all been replayed: its slot's data is free.
static struct attach_thread *carrier_find(const struct attach_process *process)
{
    for (unsigned i = 0; i < process->slots; i++) {
        struct attach_thread *thread = process->threads[i];
        if (thread != NULL && thread->asks_for != NULL && !thread->exits && !attach_turn_is_program(thread) &&
            atomic_load(&thread->slot->entry_count) == 0) {
            return thread;
        }
    }
    return NULL;
}

unsigned attach_ask(struct attach_process *process, struct journal_state *states_out, unsigned room)
{
    struct attach_server *server = process->server;
    bool possible = !server->options->functional && !process->ended && !process->leaving && !server->stopped;
    struct attach_thread *thread = possible ? carrier_find(process) : NULL;
    if (thread == NULL) {
        return 0;
    }
    attach_memory_settle(server, process->node);
    thread->slot->ask_count = 0;
    thread->slot->ask = 1;
    attach_turn_give(thread);
    bool answered = attach_turn_await(thread);
    thread->slot->ask = 0;
    unsigned count = answered ? thread->slot->ask_count : 0;
    unsigned most = ATTACH_DATA_BYTES / sizeof *states_out;
    count = count < most ? count : most;
    count = count < room ? count : room;
    memcpy(states_out, thread->slot->data, count * sizeof *states_out);
    return count;
}

bool attach_receives(void *ctx, void *tag, uint32_t qp, struct observe_receives *receives_out)
{
    struct journal_state states[ATTACH_STATES_MAX];
    const struct attach_server *server = ctx;
    struct attach_process *process = server->processes;
    while (process != NULL && process != tag) { // it may be gone
        process = process->next;
    }
    unsigned count = process != NULL ? attach_ask(process, states, ATTACH_STATES_MAX) : 0;
    for (unsigned i = 0; i < count; i++) {
        if (!states[i].is_cq && states[i].number == qp) {
            *receives_out = (struct observe_receives){states[i].qp.receives_posted, states[i].qp.last_receive_ps};
            return true;
        }
    }
    return false;
}
