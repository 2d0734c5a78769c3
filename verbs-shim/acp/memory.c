// Memory that other ranks access, the tables beside it, and the total memory use.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/acp/internal.h"

enum { CONTROL_ALIGNMENT = 4096, STARTER_ALIGNMENT = 64 };
#define SLAB_BYTES (ACPB_SLAB_TABLES * sizeof(struct acpb_region[ACPB_REGIONS + 1]))

const char *const acp_memory_names[ACP_MEMORY_KINDS] = {
    [ACP_MEMORY_COMMAND_QUEUE] = "command queue",
    [ACP_MEMORY_REMOTE_COMMANDS] = "remote command buffer",
    [ACP_MEMORY_REGIONS] = "region table",
    [ACP_MEMORY_TABLE_CACHE] = "cached region tables",
    [ACP_MEMORY_INVALIDATION] = "invalidation of cached tables",
    [ACP_MEMORY_STARTER_TABLE] = "starter table",
    [ACP_MEMORY_PEERS] = "connections without queue pairs",
    [ACP_MEMORY_STARTER] = "starter memory",
};

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static size_t starter_offset(void)
{
    return round_up(sizeof(struct acpb_control), STARTER_ALIGNMENT);
}

size_t acpb_generations_offset(const struct acpb_process *process)
{
    return starter_offset() + round_up(process->starter_bytes, STARTER_ALIGNMENT);
}

static int control_create(struct acpb_process *process)
{
    size_t generations = acpb_generations_offset(process);
    process->control_bytes = round_up(generations + process->ranks * sizeof(uint32_t), CONTROL_ALIGNMENT);
    const struct backend *backend = process->backend;
    int error = backend->ops->alloc_pinned(backend->ctx, process->control_bytes, &process->control_buffer);
    if (error != 0) {
        return error;
    }
    process->control = process->control_buffer.address;
    process->starter = (uint8_t *)process->control + starter_offset();
    process->generations = (uint32_t *)((uint8_t *)process->control + generations);
    process->control_mr = ibv_reg_mr(process->pd, process->control, process->control_bytes, ACPB_ACCESS);
    if (process->control_mr == NULL) {
        return -errno;
    }
    memset(process->regions, 0, sizeof process->regions);
    process->regions[ACPB_TAG_STARTER] = (struct acpb_region){.address = (uintptr_t)process->starter,
                                                              .bytes = process->starter_bytes,
                                                              .rkey = process->control_mr->rkey,
                                                              .lkey = process->control_mr->lkey};
    return 0;
}

int acpb_memory_create(struct acpb_process *process)
{
    process->tasks = calloc(ACPB_TASKS, sizeof *process->tasks);
    process->peers = calloc(process->ranks, sizeof(struct acpb_peer *));
    process->starters = calloc(process->ranks, sizeof *process->starters);
    bool all = process->tasks != NULL && process->peers != NULL && process->starters != NULL;
    int error = all ? control_create(process) : -ENOMEM;
    if (error != 0) {
        fprintf(stderr, "acp: the library's memory: %s\n", strerror(-error));
        return error;
    }
    for (uint32_t i = 0; i < ACPB_TASKS; i++) {
        process->tasks[i].number = i;
    }
    process->tail = process->head = process->start = 0;
    process->taken = process->served = process->barriers = 0;
    process->generation = 0;
    process->statuses_first = process->statuses_last = NULL;
    return 0;
}

void acpb_memory_destroy(struct acpb_process *process)
{
    const struct backend *backend = process->backend;
    if (process->control != NULL && !process->abandoned) {
        for (unsigned i = 0; i < ACPB_REGIONS; i++) {
            if (process->regions[i].bytes != 0) {
                (void)ibv_dereg_mr(process->mrs[i]);
            }
        }
    }
    if (process->control_mr != NULL && !process->abandoned) {
        (void)ibv_dereg_mr(process->control_mr);
    }
    if (process->control != NULL && !process->abandoned) {
        backend->ops->free_pinned(backend->ctx, &process->control_buffer);
    }
    free(process->tasks);
    free(process->peers);
    free(process->starters);
    process->control_mr = NULL;
    process->control = NULL;
    process->tasks = NULL;
    process->peers = NULL;
    process->starters = NULL;
}

// --- memory use -----------------------------------------------------------------------------------------------------

static size_t slabs_of(uint64_t peers)
{
    uint64_t tables = peers < ACPB_CACHED_TABLES ? peers : ACPB_CACHED_TABLES;
    return (size_t)((tables + ACPB_SLAB_TABLES - 1) / ACPB_SLAB_TABLES);
}

static size_t memory_of(enum acp_memory_kind kind, uint64_t ranks, uint64_t peers, size_t slabs, size_t starter_bytes)
{
    const size_t task = sizeof(struct acpb_task) + sizeof(union acpb_scratch);
    switch (kind) {
    case ACP_MEMORY_COMMAND_QUEUE:
        return ACPB_QUEUE_COMMANDS * (task + sizeof(struct acpb_status));
    case ACP_MEMORY_REMOTE_COMMANDS:
        return ACPB_REMOTE_COMMANDS * (task + sizeof(struct acpb_command));
    case ACP_MEMORY_REGIONS:
        return 2 * sizeof(struct acpb_region[ACPB_REGIONS + 1]); // the published table and the rank's own
    case ACP_MEMORY_TABLE_CACHE:
        return slabs * SLAB_BYTES + (slabs != 0 ? ACPB_CACHED_TABLES * sizeof(struct acpb_table) : 0);
    case ACP_MEMORY_INVALIDATION:
        return ranks * sizeof(uint32_t);
    case ACP_MEMORY_STARTER_TABLE:
        return ranks * sizeof(struct acpb_starter);
    case ACP_MEMORY_PEERS:
        return ranks * sizeof(struct acpb_peer *) + peers * sizeof(struct acpb_peer);
    case ACP_MEMORY_STARTER:
        return starter_bytes;
    case ACP_MEMORY_KINDS:
        break;
    }
    return 0;
}

size_t acp_memory_bytes(enum acp_memory_kind kind)
{
    const struct acpb_process *process = acpb_current();
    return process == NULL ? 0
                           : memory_of(kind, process->ranks, process->peers_count,
                                       process->table_count / ACPB_SLAB_TABLES, process->starter_bytes);
}

size_t acp_memory_expected(enum acp_memory_kind kind, uint64_t ranks, uint64_t peers)
{
    return memory_of(kind, ranks, peers, slabs_of(peers), ACPB_STARTER_BYTES);
}

size_t acp_memory_pinned(void)
{
    const struct acpb_process *process = acpb_current();
    size_t slabs = process != NULL ? process->table_count / ACPB_SLAB_TABLES : 0;
    return process != NULL ? process->control_bytes + slabs * SLAB_BYTES : 0;
}

unsigned acp_queue_pairs(void)
{
    const struct acpb_process *process = acpb_current();
    return process != NULL ? process->queue_pairs : 0;
}
