// Waits for a word of pinned memory that has the awaited value already, and for one that has not: prints the attach
// calls of each. "half" on two nodes: node 0 writes the upper four bytes of a word after 200 us; node 1 waits for a bit of
// them and prints the microseconds. "half killed": node 0 is killed before it does anything else. "clock": as "half", but
// node 1 only reads the word and the clock in turns.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/peach2/peach2_driver.h"

enum { US_PS = 1000000, WRITE_AT_US = 200, GIVE_UP_US = 5000 };

static int half_write(struct backend_process *process, const struct backend_buffer *buffer, bool killed)
{
    const uint32_t one = 1;
    (void)attach_wait(0, (uint64_t)WRITE_AT_US * US_PS);
    // Both sides' first buffers have the same address.
    uint64_t remote = peach2_window_address(process->board, 1, buffer->bus_address);
    int error = peach2_pio_write(process->board, remote + sizeof one, &one, sizeof one);
    return killed ? raise(SIGKILL) : error;
}

static int half_wait(struct backend_process *process, const struct backend_buffer *buffer)
{
    const uint64_t upper = UINT64_C(0xffffffff) << 32, awaited = UINT64_C(1) << 32;
    int error = process->backend.ops->wait_word(process->backend.ctx, buffer->address, upper, awaited,
                                                (uint64_t)GIVE_UP_US * 1000);
    printf("%u\n", (unsigned)(attach_now_ps() / US_PS));
    return error == 0 ? 0 : 1;
}

static int clock_read(struct backend_process *process, const struct backend_buffer *buffer)
{
    const volatile uint64_t *word = buffer->address;
    while (*word == 0 && process->backend.ops->time_ps(process->backend.ctx) < (uint64_t)GIVE_UP_US * US_PS) {
    }
    printf("%u\n", (unsigned)(attach_now_ps() / US_PS));
    return 0;
}

int main(int argc, char **argv)
{
    struct backend_process *process = backend_current();
    const struct backend_ops *ops = process != NULL ? process->backend.ops : NULL;
    struct backend_buffer buffer;
    if (ops == NULL || ops->alloc_pinned(process->backend.ctx, 4096, &buffer) != 0) {
        return 3;
    }
    if (argc > 1 && strcmp(argv[1], "half") == 0) {
        return attach_environment()->node_index == 1 ? half_wait(process, &buffer)
                                                     : half_write(process, &buffer, argc > 2);
    }
    if (argc > 1 && strcmp(argv[1], "clock") == 0) {
        return clock_read(process, &buffer);
    }
    *(volatile uint64_t *)buffer.address = 7;
    uint64_t begin_ps = attach_now_ps();
    unsigned before = attach_calls();
    int there = ops->wait_word(process->backend.ctx, buffer.address, UINT64_MAX, 7, 1000);
    unsigned between = attach_calls();
    bool paid = attach_now_ps() > begin_ps;
    int missing = ops->wait_word(process->backend.ctx, buffer.address, UINT64_MAX, 8, 1000);
    printf("%u %u\n", between - before, attach_calls() - between);
    return there == 0 && paid && missing == -ETIMEDOUT ? 0 : 1;
}
