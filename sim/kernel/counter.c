// The registry of counters: a list in the order of registration, and an index by component and one by values.
#include "sim/kernel/counter.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/internal.h"

struct sim_counter_table {
    const char *component; // kept as a name
    const struct sim_counter_desc *descs;
    const uint64_t *values;
    unsigned count;
    struct sim_counter_table *previous, *next;
    struct sim_counter_table *sibling; // of the same component; the first one is in the index
};

static int component_compare(const void *a, const void *b)
{
    const struct sim_counter_table *left = a, *right = b;
    return strcmp(left->component, right->component);
}

static int values_compare(const void *a, const void *b)
{
    const struct sim_counter_table *left = a, *right = b;
    return (left->values > right->values) - (left->values < right->values);
}

static struct sim_counter_table *first_of(const sim_t *sim, const char *component)
{
    const struct sim_counter_table key = {.component = component};
    struct sim_counter_table *const *found = tfind(&key, &sim->counters.by_component, component_compare);
    return found != NULL ? *found : NULL;
}

static const uint64_t *find(const sim_t *sim, const char *component, const char *name)
{
    for (const struct sim_counter_table *table = first_of(sim, component); table != NULL; table = table->sibling) {
        for (unsigned i = 0; i < table->count; i++) {
            if (strcmp(table->descs[i].name, name) == 0) {
                return &table->values[i];
            }
        }
    }
    return NULL;
}

static enum sim_status index_add(sim_t *sim, struct sim_counter_table *table)
{
    struct sim_counter_table *const *of_values = tsearch(table, &sim->counters.by_values, values_compare);
    if (of_values == NULL || *of_values != table) {
        return of_values == NULL ? SIM_ERR_NO_MEMORY : SIM_ERR_EXISTS;
    }
    struct sim_counter_table *const *of_component = tsearch(table, &sim->counters.by_component, component_compare);
    if (of_component == NULL) {
        (void)tdelete(table, &sim->counters.by_values, values_compare);
        return SIM_ERR_NO_MEMORY;
    }
    if (*of_component != table) {
        table->sibling = (*of_component)->sibling;
        (*of_component)->sibling = table;
    }
    return SIM_OK;
}

static void index_remove(sim_t *sim, struct sim_counter_table *table)
{
    struct sim_counter_table **first = tfind(table, &sim->counters.by_component, component_compare);
    (void)tdelete(table, &sim->counters.by_values, values_compare);
    if (*first != table) {
        struct sim_counter_table *before = *first;
        while (before->sibling != table) {
            before = before->sibling;
        }
        before->sibling = table->sibling;
    } else if (table->sibling != NULL) {
        *first = table->sibling; // of the same place in the tree
    } else {
        (void)tdelete(table, &sim->counters.by_component, component_compare);
    }
}

enum sim_status sim_counters_register(sim_t *sim, const char *component, const struct sim_counter_desc *descs,
                                      const uint64_t *values, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (find(sim, component, descs[i].name) != NULL) {
            return SIM_ERR_EXISTS;
        }
    }
    const char *kept = sim_name_keep(sim, component);
    struct sim_counter_table *table = malloc(sizeof *table);
    if (kept == NULL || table == NULL) {
        free(table);
        return SIM_ERR_NO_MEMORY;
    }
    *table = (struct sim_counter_table){
        .component = kept, .descs = descs, .values = values, .count = count, .previous = sim->counters.last};
    enum sim_status status = index_add(sim, table);
    if (status != SIM_OK) {
        free(table);
        return status;
    }
    *(table->previous != NULL ? &table->previous->next : &sim->counters.first) = table;
    sim->counters.last = table;
    return SIM_OK;
}

void sim_counters_unregister(sim_t *sim, const uint64_t *values)
{
    const struct sim_counter_table key = {.values = values};
    struct sim_counter_table *const *found = tfind(&key, &sim->counters.by_values, values_compare);
    if (found == NULL) {
        return;
    }
    struct sim_counter_table *table = *found;
    index_remove(sim, table);
    *(table->previous != NULL ? &table->previous->next : &sim->counters.first) = table->next;
    *(table->next != NULL ? &table->next->previous : &sim->counters.last) = table->previous;
    free(table);
}

static void leave(void *table)
{
    (void)table; // the list frees it
}

void sim_counters_fini(sim_t *sim)
{
    tdestroy(sim->counters.by_component, leave);
    tdestroy(sim->counters.by_values, leave);
    for (struct sim_counter_table *table = sim->counters.first, *next; table != NULL; table = next) {
        next = table->next;
        free(table);
    }
}

void sim_counters_visit(const sim_t *sim, sim_counter_visit_fn visit, void *ctx)
{
    for (const struct sim_counter_table *table = sim->counters.first; table != NULL; table = table->next) {
        for (unsigned i = 0; i < table->count; i++) {
            visit(ctx, table->component, &table->descs[i], table->values[i]);
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
