#include "sim/report/difference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/difference_internal.h"

// The same tolerance as in expect.c.
#define ROUNDING 1e-12

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (memory == NULL) {
        sim_panic("report", "out of memory for a difference of %zu numbers", count);
    }
    return memory;
}

const struct measured_number *difference_number(const struct difference_item *item)
{
    return item->first != NULL ? item->first : item->second;
}

const char *difference_state_name(enum difference_state state)
{
    static const char *const names[] = {[DIFFERENCE_EQUAL] = "equal",
                                        [DIFFERENCE_WITHIN] = "within",
                                        [DIFFERENCE_BEYOND] = "beyond",
                                        [DIFFERENCE_FIRST] = "only in the first",
                                        [DIFFERENCE_SECOND] = "only in the second"};
    return names[state];
}

bool difference_counts(const struct difference_item *item)
{
    return item->state != DIFFERENCE_EQUAL && item->state != DIFFERENCE_WITHIN;
}

// --- numbers --------------------------------------------------------------------------------------------------------

static int pointers_compare(const void *left, const void *right)
{
    return measured_compare(*(const struct measured_number *const *)left,
                            *(const struct measured_number *const *)right);
}

static void item_judge(struct difference_item *item, double within_percent)
{
    if (item->first == NULL || item->second == NULL) {
        item->state = item->first != NULL ? DIFFERENCE_FIRST : DIFFERENCE_SECOND;
        item->percent = NAN;
        return;
    }
    long double first = item->first->value, change = item->second->value - first;
    item->change = change;
    item->percent = change == 0  ? 0
                    : first != 0 ? (double)(change / fabsl(first) * 100)
                                 : copysign(INFINITY, (double)change);
    bool within = within_percent > 0 && fabsl(change) <= fabsl(first) * ((long double)within_percent / 100 + ROUNDING);
    item->state = change == 0 ? DIFFERENCE_EQUAL : within ? DIFFERENCE_WITHIN : DIFFERENCE_BEYOND;
}

static struct difference_items items_make(const struct measured_numbers *first, const struct measured_numbers *second,
                                          double within_percent)
{
    struct difference_items made = {.items = allocate(first->count + second->count, sizeof *made.items)};
    const struct measured_number **sorted = allocate(second->count, sizeof(void *));
    bool *met = allocate(second->count, sizeof *met);
    for (size_t i = 0; i < second->count; i++) {
        sorted[i] = &second->items[i];
    }
    qsort(sorted, second->count, sizeof *sorted, pointers_compare);
    for (size_t i = 0; i < first->count; i++) {
        const struct measured_number *number = &first->items[i];
        const struct measured_number **found =
            bsearch(&number, sorted, second->count, sizeof *sorted, pointers_compare);
        if (found != NULL) {
            met[(*found)->order] = true;
        }
        made.items[made.count++] = (struct difference_item){.first = number, .second = found != NULL ? *found : NULL};
    }
    for (size_t i = 0; i < second->count; i++) {
        if (!met[i]) {
            made.items[made.count++] = (struct difference_item){.second = &second->items[i]};
        }
    }
    for (size_t i = 0; i < made.count; i++) {
        item_judge(&made.items[i], within_percent);
    }
    free(met);
    free(sorted);
    return made;
}

// --- keys -----------------------------------------------------------------------------------------------------------

static int keys_compare(const void *left, const void *right)
{
    return strcmp(((const struct measured_key *)left)->path, ((const struct measured_key *)right)->path);
}

static const char *value_find(const struct measured_keys *keys, const struct measured_key *sorted, const char *path)
{
    const struct measured_key wanted = {.path = path};
    const struct measured_key *found = bsearch(&wanted, sorted, keys->count, sizeof *sorted, keys_compare);
    return found != NULL ? found->value : NULL;
}

static struct measured_key *keys_sort(const struct measured_keys *keys)
{
    struct measured_key *sorted = allocate(keys->count, sizeof *sorted);
    if (keys->count > 0) {
        memcpy(sorted, keys->items, keys->count * sizeof *sorted);
    }
    qsort(sorted, keys->count, sizeof *sorted, keys_compare);
    return sorted;
}

static void keys_differ(struct difference *difference, const struct measured_keys *first,
                        const struct measured_keys *second)
{
    struct measured_key *sorted[2] = {keys_sort(first), keys_sort(second)};
    for (size_t i = 0; i < first->count; i++) {
        const struct measured_key *key = &first->items[i];
        const char *other = value_find(second, sorted[1], key->path);
        if (other == NULL || strcmp(key->value, other) != 0) {
            difference->keys[difference->key_count++] = (struct difference_key){key->path, key->value, other};
        }
    }
    for (size_t i = 0; i < second->count; i++) {
        const struct measured_key *key = &second->items[i];
        if (value_find(first, sorted[0], key->path) == NULL) {
            difference->keys[difference->key_count++] = (struct difference_key){key->path, NULL, key->value};
        }
    }
    free(sorted[0]);
    free(sorted[1]);
}

// Machines count only if the runs disagree, which they otherwise do not depend on.
static void keys_make(struct difference *difference)
{
    const struct measured *first = &difference->sides[0], *second = &difference->sides[1];
    size_t most = first->keys.count + second->keys.count + first->machine.count + second->machine.count;
    difference->keys = allocate(most, sizeof *difference->keys);
    keys_differ(difference, &first->keys, &second->keys);
    if (first->hash != NULL && second->hash != NULL && strcmp(first->hash, second->hash) != 0) {
        keys_differ(difference, &first->machine, &second->machine);
    }
}

// --- all of it ------------------------------------------------------------------------------------------------------

enum sim_status difference_create(const char *first, const char *second, double within_percent,
                                  difference_t **difference_out, char *error, size_t error_size)
{
    struct difference *made = allocate(1, sizeof *made);
    *made = (struct difference){.names = {first, second}, .within_percent = within_percent};
    for (unsigned i = 0; i < 2; i++) {
        if (measured_read(made->names[i], &made->sides[i], error, error_size) != SIM_OK) {
            difference_destroy(made);
            return SIM_ERR_INVALID;
        }
    }
    made->data = items_make(&made->sides[0].data, &made->sides[1].data, within_percent);
    made->counters = items_make(&made->sides[0].counters, &made->sides[1].counters, within_percent);
    keys_make(made);
    *difference_out = made;
    return SIM_OK;
}

void difference_destroy(difference_t *difference)
{
    if (difference == NULL) {
        return;
    }
    free(difference->data.items);
    free(difference->counters.items);
    free(difference->keys);
    measured_free(&difference->sides[0]);
    measured_free(&difference->sides[1]);
    free(difference);
}

static size_t items_count(const struct difference_items *items)
{
    size_t count = 0;
    for (size_t i = 0; i < items->count; i++) {
        count += difference_counts(&items->items[i]);
    }
    return count;
}

size_t difference_count(const difference_t *difference)
{
    return items_count(&difference->data) + items_count(&difference->counters);
}
