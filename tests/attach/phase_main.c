// A loop of empty polls, whose iterations each take a microsecond. Side 1 prints, for each of the words that side 0
// writes, how much its loop took beyond whole iterations; and then how many polls there were. "phase POLLS": polls of
// an iteration, of which the last one is of that word. The words come at different times within an iteration.
#include <stdio.h>
#include <stdlib.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/peach2/peach2_driver.h"

enum { ROUNDS = 8, PHASE_PS = 137000 };
#define ITERATION_PS UINT64_C(1000000)
#define ROUND_PS     UINT64_C(1000000000)

static void words_write(struct backend_process *process, uint64_t bus_address)
{
    // Both sides' first buffers have the same address.
    uint64_t remote = peach2_window_address(process->board, 1, bus_address);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        (void)attach_wait(0, i * ROUND_PS + i * PHASE_PS);
        (void)peach2_pio_write(process->board, remote, &i, sizeof i);
    }
}

// Polls other words, to which nothing comes, and then the awaited one.
static void iterate(const volatile uint64_t *word, unsigned polls)
{
    for (unsigned poll = polls; poll-- > 0;) {
        attach_spend_ps(ITERATION_PS / polls);
        (void)attach_poll(poll, word + poll, false);
    }
}

static void words_await(const volatile uint64_t *word, unsigned polls)
{
    uint64_t iterations = 0;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        uint64_t began_ps = attach_now_ps();
        while (*word != i) {
            iterate(word, polls);
        }
        uint64_t took_ps = attach_now_ps() - began_ps;
        printf("%llu ", (unsigned long long)(took_ps % ITERATION_PS));
        iterations += took_ps / ITERATION_PS;
    }
    printf("%llu\n", (unsigned long long)(iterations * polls));
}

// The library of a device reports that it was opened: a summary tells of programs that use devices.
static void device_open(const struct backend *backend)
{
    const struct journal_record record = {.call = JOURNAL_OPEN_DEVICE, .device = {.device = "none"}};
    backend->ops->journal->note(backend->ctx, &record);
}

int main(int argc, char **argv)
{
    struct backend_process *process = backend_current();
    const struct backend_ops *ops = process != NULL ? process->backend.ops : NULL;
    struct backend_buffer buffer;
    if (argc < 2 || ops == NULL || ops->alloc_pinned(process->backend.ctx, 4096, &buffer) != 0) {
        return 3;
    }
    if (attach_environment()->node_index == 0) {
        words_write(process, buffer.bus_address);
    } else {
        device_open(&process->backend);
        words_await(buffer.address, (unsigned)atoi(argv[1]));
    }
    return 0;
}
