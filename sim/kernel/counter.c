// The registry of counters.
#include "sim/kernel/counter.h"

#include <stdlib.h>
#include <string.h>

#include "sim/kernel/internal.h"

static const uint64_t *find(const sim_t *sim, const char *component, const char *name)
{
    for (unsigned i = 0; i < sim->counter_table_count; i++) {
        const struct sim_counter_table *table = &sim->counter_tables[i];
        if (strcmp(table->component, component) != 0) {
            continue;
        }
        for (unsigned j = 0; j < table->count; j++) {
            if (strcmp(table->descs[j].name, name) == 0) {
                return &table->values[j];
            }
        }
    }
    return NULL;
}

enum sim_status sim_counters_register(sim_t *sim, const char *component, const struct sim_counter_desc *descs,
                                      const uint64_t *values, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (find(sim, component, descs[i].name) != NULL) {
            return SIM_ERR_EXISTS;
        }
    }
    char *component_copy = strdup(component);
    if (component_copy == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    size_t table_count = (size_t)sim->counter_table_count + 1;
    struct sim_counter_table *tables = realloc(sim->counter_tables, table_count * sizeof *tables);
    if (tables == NULL) {
        free(component_copy);
        return SIM_ERR_NO_MEMORY;
    }
    tables[table_count - 1] = (struct sim_counter_table){component_copy, descs, values, count};
    sim->counter_tables = tables;
    sim->counter_table_count = (unsigned)table_count;
    return SIM_OK;
}

void sim_counters_unregister(sim_t *sim, const uint64_t *values)
{
    for (unsigned i = 0; i < sim->counter_table_count; i++) {
        struct sim_counter_table *table = &sim->counter_tables[i];
        if (table->values == values) {
            free(table->component);
            sim->counter_table_count--;
            memmove(table, table + 1, (sim->counter_table_count - i) * sizeof *table);
            return;
        }
    }
}

void sim_counters_fini(sim_t *sim)
{
    for (unsigned i = 0; i < sim->counter_table_count; i++) {
        free(sim->counter_tables[i].component);
    }
    free(sim->counter_tables);
}

void sim_counters_visit(const sim_t *sim, sim_counter_visit_fn visit, void *ctx)
{
    for (unsigned i = 0; i < sim->counter_table_count; i++) {
        const struct sim_counter_table *table = &sim->counter_tables[i];
        for (unsigned j = 0; j < table->count; j++) {
            visit(ctx, table->component, &table->descs[j], table->values[j]);
        }
    }
}

uint64_t sim_counter_value(const sim_t *sim, const char *component, const char *name, bool *found_out)
{
    const uint64_t *value = find(sim, component, name);
    if (found_out != NULL) {
        *found_out = value != NULL;
    }
    return value != NULL ? *value : 0;
}
