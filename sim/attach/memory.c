// The memory of attached processes, as devices reach it: at the simulated instant of each access.
#include <sys/uio.h>

#include "sim/attach/internal.h"

static bool memory_read(void *ctx, uint64_t va, void *data, uint32_t bytes)
{
    const struct attach_process *process = ctx;
    const struct iovec to = {data, bytes}, from = {(void *)(uintptr_t)va, bytes};
    return process_vm_readv(process->pid, &to, 1, &from, 1, 0) == (ssize_t)bytes;
}

static bool memory_write(void *ctx, uint64_t va, const void *data, uint32_t bytes)
{
    const struct attach_process *process = ctx;
    const struct iovec from = {(void *)(uintptr_t)data, bytes}, to = {(void *)(uintptr_t)va, bytes};
    return process_vm_writev(process->pid, &from, 1, &to, 1, 0) == (ssize_t)bytes;
}

// No bus address: nobody polls a word there.
static void memory_written(void *ctx, uint64_t va, uint32_t bytes)
{
    (void)va;
    attach_memory_written(ctx, UINT64_MAX - bytes, bytes);
}

const struct host_owner_ops attach_memory_ops = {memory_read, memory_write, memory_written};
