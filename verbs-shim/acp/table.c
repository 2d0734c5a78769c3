// Cached tables of other ranks' regions: read whole at first use, at most 1024 (morie2016 4.2.2); the least recently
// used one is replaced. A rank that reuses a region number writes its new generation to all connected ranks; a cached
// table of an older generation is read again.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/acp/internal.h"

static uint32_t generation_of(const struct acpb_process *process, uint32_t rank)
{
    return __atomic_load_n(&process->generations[rank], __ATOMIC_ACQUIRE);
}

struct acpb_table *acpb_table_valid(struct acpb_process *process, struct acpb_peer *peer)
{
    struct acpb_table *table = peer->table;
    if (table == NULL || table->generation != generation_of(process, peer->rank)) {
        return NULL;
    }
    table->used = ++process->table_uses;
    return table;
}

static int slab_add(struct acpb_process *process)
{
    struct acpb_slab *slab = &process->slabs[process->table_count / ACPB_SLAB_TABLES];
    const struct backend *backend = process->backend;
    int error = backend->ops->alloc_pinned(backend->ctx, ACPB_SLAB_TABLES * sizeof *slab->tables, &slab->buffer);
    if (error != 0) {
        return error;
    }
    slab->tables = slab->buffer.address;
    slab->mr = ibv_reg_mr(process->pd, slab->tables, ACPB_SLAB_TABLES * sizeof *slab->tables, IBV_ACCESS_LOCAL_WRITE);
    if (slab->mr == NULL) {
        error = -errno;
        backend->ops->free_pinned(backend->ctx, &slab->buffer);
        slab->tables = NULL;
        return error;
    }
    for (unsigned i = 0; i < ACPB_SLAB_TABLES; i++) {
        process->tables[process->table_count++] = (struct acpb_table){.regions = slab->tables[i], .slab = slab};
    }
    return 0;
}

static bool is_filling(const struct acpb_table *table)
{
    const struct acpb_peer *owner = table->owner;
    return owner != NULL && owner->busy && owner->first->step == ACPB_STEP_TABLE;
}

// A free table, or the least recently used one.
static struct acpb_table *table_find(struct acpb_process *process)
{
    struct acpb_table *found = NULL;
    for (unsigned i = 0; i < process->table_count; i++) {
        struct acpb_table *table = &process->tables[i];
        if (!is_filling(table) && (found == NULL || table->used < found->used)) {
            found = table;
        }
    }
    return found;
}

struct acpb_table *acpb_table_fill(struct acpb_process *process, struct acpb_peer *peer)
{
    struct acpb_table *table = peer->table;
    if (table == NULL) {
        if (process->tables == NULL) {
            process->tables = calloc(ACPB_CACHED_TABLES, sizeof *process->tables);
        }
        table = process->tables != NULL ? table_find(process) : NULL;
        bool room = process->table_count < ACPB_CACHED_TABLES && process->tables != NULL;
        if (room && (table == NULL || table->owner != NULL) && slab_add(process) == 0) {
            table = table_find(process);
        }
        if (table == NULL && process->table_count == 0) {
            acpb_fail(process, "no memory for the table of rank %u", peer->rank);
        }
        if (table == NULL) {
            process->tables_wanted = true;
            return NULL;
        }
    }
    if (table->owner != NULL) {
        table->owner->table = NULL;
    }
    table->owner = peer;
    peer->table = table;
    table->generation = generation_of(process, peer->rank);
    table->used = ++process->table_uses;
    return table;
}

void acpb_tables_destroy(struct acpb_process *process)
{
    for (unsigned i = 0; i < process->table_count / ACPB_SLAB_TABLES; i++) {
        if (!process->abandoned) {
            (void)ibv_dereg_mr(process->slabs[i].mr);
            process->backend->ops->free_pinned(process->backend->ctx, &process->slabs[i].buffer);
        }
        process->slabs[i] = (struct acpb_slab){0};
    }
    free(process->tables);
    process->tables = NULL;
    process->table_count = 0;
}
