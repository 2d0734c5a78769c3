#include "sim/scenario/source.h"

#include <stdlib.h>
#include <string.h>

#include "sim/kernel/status.h"

static bool is_before(const struct scn_source *source, size_t offset, bool structure)
{
    return source->offset < offset || (source->offset == offset && !source->structure && structure);
}

static size_t position(const struct scn_sources *sources, size_t offset, bool structure)
{
    size_t low = 0, high = sources->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before(&sources->items[middle], offset, structure)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool holds(const struct scn_sources *sources, size_t index, size_t offset, bool structure)
{
    return index < sources->count && sources->items[index].offset == offset &&
           sources->items[index].structure == structure;
}

static void grow(struct scn_sources *sources)
{
    size_t capacity = sources->capacity == 0 ? 256 : sources->capacity * 2;
    struct scn_source *items = realloc(sources->items, capacity * sizeof *items);
    if (items == NULL) {
        sim_panic("scenario", "no memory for %zu sources", capacity);
    }
    sources->items = items;
    sources->capacity = capacity;
}

void scn_sources_put(struct scn_sources *sources, const struct scn_source *source)
{
    size_t index = position(sources, source->offset, source->structure);
    if (!holds(sources, index, source->offset, source->structure)) {
        if (sources->count == sources->capacity) {
            grow(sources);
        }
        memmove(&sources->items[index + 1], &sources->items[index], (sources->count - index) * sizeof *sources->items);
        sources->count++;
    }
    sources->items[index] = *source;
}

const struct scn_source *scn_sources_find(const struct scn_sources *sources, size_t offset, bool structure)
{
    size_t index = position(sources, offset, structure);
    return holds(sources, index, offset, structure) ? &sources->items[index] : NULL;
}

void scn_sources_forget(struct scn_sources *sources, size_t offset, size_t size)
{
    size_t first = position(sources, offset, false);
    size_t last = position(sources, offset + size, false);
    if (first < last) {
        memmove(&sources->items[first], &sources->items[last], (sources->count - last) * sizeof *sources->items);
        sources->count -= last - first;
    }
}

void scn_sources_fini(struct scn_sources *sources)
{
    free(sources->items);
    sources->items = NULL;
    sources->count = 0;
    sources->capacity = 0;
}
