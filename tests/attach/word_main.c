// Waits for a word of pinned memory that has the awaited value already, and for one that has not: prints the attach
// calls of each.
#include <errno.h>
#include <stdio.h>

#include "verbs-shim/attach/attach.h"

int main(void)
{
    struct backend_process *process = backend_current();
    const struct backend_ops *ops = process != NULL ? process->backend.ops : NULL;
    struct backend_buffer buffer;
    if (ops == NULL || ops->alloc_pinned(process->backend.ctx, 4096, &buffer) != 0) {
        return 3;
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
