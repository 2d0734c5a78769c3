// What the kernels of a process compute. A kernel is a function of the program; it works in memory that the program
// shares with the GPU and takes no simulated time. The kernel ends in the simulation while every thread of the process
// waits there. One of these threads gets a scheduling slot for the computation only, and then waits as before.
#include <stdlib.h>

#include "sim/attach/internal.h"

struct effect {
    struct attach_server *server;
    uint32_t process, image; // its id, because the process may have ended; and which program of the process
    uint32_t gpu;
    uint64_t number; // how the process calls the effect
};

static struct attach_process *process_find(const struct effect *effect)
{
    struct attach_process *process = effect->server->processes;
    while (process != NULL &&
           (process->id != effect->process || process->image != effect->image || process->ended || process->leaving)) {
        process = process->next;
    }
    return process;
}

// A thread that waits for the reply to a request; it accepts the effect instead of the reply.
static struct attach_thread *carrier_find(const struct attach_process *process)
{
    for (unsigned i = 0; i < process->slots; i++) {
        struct attach_thread *thread = process->threads[i];
        if (thread != NULL && thread->asks.what != NULL && !thread->exits && !attach_token_is_program(thread)) {
            return thread;
        }
    }
    return NULL;
}

static void effect_run(void *ctx, const struct backend_gpu_memory *memory)
{
    const struct effect effect = *(struct effect *)ctx;
    free(ctx);
    struct attach_process *process = memory != NULL ? process_find(&effect) : NULL;
    struct attach_thread *thread = process != NULL ? carrier_find(process) : NULL;
    if (thread == NULL) {
        return;
    }
    attach_memory_settle(effect.server, process->node);
    thread->slot->effect_gpu = effect.gpu;
    thread->slot->effect = effect.number;
    attach_token_give(thread);
    (void)attach_token_await(thread); // a process that has ended meanwhile is noticed later, as usual
    thread->slot->effect = 0;
}

bool attach_effect_set(const struct attach_process *process, uint32_t gpu, struct backend_gpu_work *work)
{
    uint64_t number = (uintptr_t)work->effect_ctx;
    work->effect = NULL; // values of the program, not valid here
    work->effect_ctx = NULL;
    if (number == 0) {
        return true;
    }
    if (work->kind != BACKEND_GPU_KERNEL || process->server->options->functional) {
        return false;
    }
    struct effect *effect = malloc(sizeof *effect);
    if (effect != NULL) {
        *effect = (struct effect){process->server, process->id, process->image, gpu, number};
        work->effect = effect_run;
        work->effect_ctx = effect;
    }
    return effect != NULL;
}
