// Memory of an attached process that is not pinned: heap, static data, stacks. Devices read and write it in the process
// itself at the simulated instant of the access.
#include <sys/uio.h>

#include "sim/attach/internal.h"

static bool memory_read(void *ctx, uint64_t va, void *data, uint32_t bytes)
{
    const struct attach_process *process = ctx;
    const struct iovec here = {data, bytes}, there = {(void *)(uintptr_t)va, bytes};
    return process_vm_readv(process->pid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

static bool memory_write(void *ctx, uint64_t va, const void *data, uint32_t bytes)
{
    const struct attach_process *process = ctx;
    const struct iovec here = {(void *)(uintptr_t)data, bytes}, there = {(void *)(uintptr_t)va, bytes};
    return process_vm_writev(process->pid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

static bool memory_exists(void *ctx, uint64_t address, uint64_t bytes, bool writable)
{
    struct attach_process *process = ctx;
    int pid = process->pid;
    return plat_process_memory_exists(&pid, address, bytes, writable);
}

void attach_memory_init(struct attach_process *process)
{
    static const struct host_owner_ops ops = {
        .read = memory_read, .write = memory_write, .written = attach_memory_written};
    process->memory = (struct plat_process_memory){.owner = {&ops, process}, .exists = memory_exists};
}
