// A ping-pong like Open MPI's eager RDMA: at first, messages come to a queue that is polled. Then they come to memory
// that no poll names, between polls of two queues to which nothing comes; a side that has seen a message polls a queue
// once more before it answers. Side 0 prints the mean of these round trips in ns.
#include <stdio.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/peach2/peach2_driver.h"

enum { ROUNDS_BY_QUEUE = 10, ROUNDS = 50, ITERATION_PS = 22000, MESSAGE = 0, QUEUES = 64 };

static void poll_word(const volatile uint64_t *word)
{
    attach_spend_ps(ITERATION_PS);
    (void)attach_poll((uintptr_t)word, word, false);
}

static void await(volatile uint64_t *memory, uint64_t value)
{
    if (value <= ROUNDS_BY_QUEUE) {
        while (memory[QUEUES] != value) {
            poll_word(&memory[QUEUES]);
        }
        return;
    }
    while (memory[MESSAGE] != value) {
        poll_word(&memory[QUEUES]);
        poll_word(&memory[QUEUES + 1]);
    }
    poll_word(&memory[QUEUES]);
}

int main(void)
{
    struct backend_process *process = backend_current();
    const struct backend_ops *ops = process != NULL ? process->backend.ops : NULL;
    struct backend_buffer buffer;
    if (ops == NULL || ops->alloc_pinned(process->backend.ctx, 4096, &buffer) != 0) {
        return 3;
    }
    uint32_t side = attach_environment()->node_index;
    // Both sides' first buffers have the same address.
    uint64_t remote = peach2_window_address(process->board, 1 - side, buffer.bus_address);
    (void)attach_wait(0, 200000000000); // the other side has begun
    uint64_t began_ps = 0;
    for (uint64_t i = 1; i <= ROUNDS_BY_QUEUE + ROUNDS; i++) {
        began_ps = i <= ROUNDS_BY_QUEUE + 1 ? attach_now_ps() : began_ps;
        uint64_t to = remote + (i <= ROUNDS_BY_QUEUE ? QUEUES : MESSAGE) * sizeof(uint64_t);
        if (side == 1) {
            await(buffer.address, i);
        }
        (void)peach2_pio_write(process->board, to, &i, sizeof i);
        if (side == 0) {
            await(buffer.address, i);
        }
    }
    if (side == 0) {
        printf("%u\n", (unsigned)((attach_now_ps() - began_ps) / ROUNDS / 1000));
    }
    return 0;
}
