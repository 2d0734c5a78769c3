// Side 1 counts how often it is woken until its last word is written. Side 0 writes to the page before it, which side 1
// has declared ignored, and then that word. "aloud": side 1 has not declared it. "events": it has not, and waits for
// events.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/peach2/peach2_driver.h"

enum { IGNORED_BYTES = 4096, WRITES = 20 };

static unsigned wakes_count(const volatile uint64_t *word, bool events)
{
    unsigned wakes = 0;
    const uint64_t over_ps = 1000000000000; // nothing raises an event
    while (*word == 0) {
        (void)attach_wait(events ? ATTACH_WAIT_EVENTS : ATTACH_WAIT_MEMORY, events ? over_ps : ATTACH_NEVER_PS);
        wakes++;
    }
    return wakes;
}

int main(int argc, char **argv)
{
    struct backend_process *process = backend_current();
    const struct backend_ops *ops = process != NULL ? process->backend.ops : NULL;
    struct backend_buffer buffer;
    if (ops == NULL || ops->alloc_pinned(process->backend.ctx, 2 * IGNORED_BYTES, &buffer) != 0) {
        return 3;
    }
    const volatile uint64_t *word = (const volatile uint64_t *)((char *)buffer.address + IGNORED_BYTES);
    if (attach_environment()->node_index == 1) {
        if (argc == 1) {
            ops->ignore_writes(process->backend.ctx, buffer.address, IGNORED_BYTES);
        }
        printf("%u\n", wakes_count(word, argc > 1 && strcmp(argv[1], "events") == 0));
        return 0;
    }
    // Both sides' first buffers have the same address.
    uint64_t remote = peach2_window_address(process->board, 1, buffer.bus_address);
    const uint64_t value = 1;
    (void)attach_wait(0, attach_now_ps() + 200000000000); // the other side has begun
    for (unsigned i = 0; i <= WRITES; i++) {
        uint64_t at = i < WRITES ? i * sizeof value : IGNORED_BYTES;
        (void)peach2_pio_write(process->board, remote + at, &value, sizeof value);
        (void)attach_wait(0, attach_now_ps() + 10000000);
    }
    return 0;
}
