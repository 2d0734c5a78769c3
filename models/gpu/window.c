// BAR 1: the pages of device memory that it maps, and the time of a translation.
#include <stdlib.h>
#include <string.h>

#include "models/gpu/internal.h"

// --- pins ------------------------------------------------------------------------------------------------------------

// Finds the lowest gap and the link at which to insert it. false: there is none.
static bool gap_find(gpu_t *gpu, uint64_t size, uint64_t *offset_out, struct gpu_pin ***link_out)
{
    uint64_t offset = 0;
    struct gpu_pin **link = &gpu->pins;
    while (*link != NULL && (*link)->offset - offset < size) {
        offset = (*link)->offset + (*link)->bytes;
        link = &(*link)->next;
    }
    *offset_out = offset;
    *link_out = link;
    return gpu->config.bar_bytes - offset >= size;
}

enum sim_status gpu_pin(gpu_t *gpu, uint64_t address, uint64_t bytes, uint64_t *bar_offset_out)
{
    if (address % GPU_PAGE_BYTES != 0 || bytes == 0) {
        return SIM_ERR_INVALID;
    }
    struct gpu_allocation *allocation = gpu_memory_holder(gpu, address, 1);
    if (allocation == NULL) {
        return SIM_ERR_NOT_FOUND;
    }
    if (bytes > gpu_pages_bytes(allocation->bytes) - (address - allocation->base)) {
        return SIM_ERR_RANGE;
    }
    uint64_t size = gpu_pages_bytes(bytes), offset;
    struct gpu_pin **link;
    struct gpu_pin *pin = gap_find(gpu, size, &offset, &link) ? malloc(sizeof *pin) : NULL;
    if (pin == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    *pin = (struct gpu_pin){.offset = offset, .bytes = size, .allocation = allocation, .next = *link};
    *link = pin;
    allocation->uses++;
    for (uint64_t done = 0; done < size; done += GPU_PAGE_BYTES) {
        gpu->pages[(offset + done) / GPU_PAGE_BYTES].device_page = (uint32_t)((address + done) / GPU_PAGE_BYTES);
    }
    *bar_offset_out = offset;
    return SIM_OK;
}

enum sim_status gpu_unpin(gpu_t *gpu, uint64_t bar_offset)
{
    struct gpu_pin **link = &gpu->pins;
    while (*link != NULL && (*link)->offset != bar_offset) {
        link = &(*link)->next;
    }
    struct gpu_pin *pin = *link;
    if (pin == NULL) {
        return SIM_ERR_NOT_FOUND;
    }
    for (uint64_t done = 0; done < pin->bytes; done += GPU_PAGE_BYTES) {
        struct gpu_window_page *page = &gpu->pages[(bar_offset + done) / GPU_PAGE_BYTES];
        if (page->cached > 0) {
            gpu->cache[page->cached - 1].valid = false;
        }
        *page = (struct gpu_window_page){0};
    }
    pin->allocation->uses--;
    *link = pin->next;
    free(pin);
    return SIM_OK;
}

void gpu_window_end(gpu_t *gpu)
{
    for (uint64_t i = 0; i < gpu->config.bar_bytes / GPU_PAGE_BYTES; i++) {
        struct gpu_window_page *page = &gpu->pages[i];
        if (page->cached > 0) {
            gpu->cache[page->cached - 1].valid = false;
        }
        *page = (struct gpu_window_page){0};
    }
}

// --- translation -----------------------------------------------------------------------------------------------------

static struct gpu_window_page *page_of(const gpu_t *gpu, uint64_t bus_address)
{
    uint64_t offset = bus_address - gpu->bar_base; // an address below the base wraps to a large offset
    return offset < gpu->config.bar_bytes ? &gpu->pages[offset / GPU_PAGE_BYTES] : NULL;
}

bool gpu_window_find(const gpu_t *gpu, uint64_t bus_address, uint64_t *device_address_out)
{
    const struct gpu_window_page *page = page_of(gpu, bus_address);
    if (page == NULL || page->device_page == 0) {
        return false;
    }
    *device_address_out = page->device_page * GPU_PAGE_BYTES + bus_address % GPU_PAGE_BYTES;
    return true;
}

// A free entry, or the least recently used one.
static struct gpu_translation *victim_find(gpu_t *gpu)
{
    struct gpu_translation *victim = &gpu->cache[0];
    for (uint32_t i = 0; i < gpu->config.translations && victim->valid; i++) {
        struct gpu_translation *entry = &gpu->cache[i];
        if (!entry->valid || entry->used < victim->used) {
            victim = entry;
        }
    }
    if (victim->valid) {
        gpu->pages[victim->window_page].cached = 0;
    }
    return victim;
}

static uint64_t walk(gpu_t *gpu)
{
    uint64_t *free_ps = &gpu->walk_free_ps[0], now_ps = sim_now_ps(gpu->sim);
    for (uint32_t i = 1; i < gpu->config.translation_walks_max; i++) {
        free_ps = gpu->walk_free_ps[i] < *free_ps ? &gpu->walk_free_ps[i] : free_ps;
    }
    gpu->counters[GPU_TRANSLATION_MISSES]++;
    *free_ps = (*free_ps > now_ps ? *free_ps : now_ps) + gpu->config.translation_miss_ps;
    return *free_ps;
}

static void entry_add(gpu_t *gpu, struct gpu_window_page *page, uint64_t ready_ps)
{
    struct gpu_translation *entry = victim_find(gpu);
    *entry =
        (struct gpu_translation){.window_page = (uint32_t)(page - gpu->pages), .valid = true, .ready_ps = ready_ps};
    page->cached = (uint32_t)(entry - gpu->cache) + 1;
}

// Goes through a copy of the cache in the order of the pages.
uint64_t gpu_window_misses(const gpu_t *gpu, uint64_t bus_address, uint64_t pages)
{
    uint32_t count = gpu->config.translations;
    uint64_t misses = 0, uses = gpu->cache_uses, first = (bus_address - gpu->bar_base) / GPU_PAGE_BYTES;
    struct gpu_translation *cache = malloc(count * sizeof *cache);
    if (cache == NULL) {
        sim_panic(gpu->name, "no memory for %u translations", count);
    }
    memcpy(cache, gpu->cache, count * sizeof *cache);
    for (uint64_t page = first; page < first + pages; page++) {
        struct gpu_translation *victim = &cache[0], *found = NULL;
        for (uint32_t i = 0; i < count && found == NULL; i++) {
            found = cache[i].valid && cache[i].window_page == page ? &cache[i] : NULL;
            bool older = !cache[i].valid || (victim->valid && cache[i].used < victim->used);
            victim = older ? &cache[i] : victim;
        }
        misses += found == NULL ? 1 : 0;
        found = found != NULL ? found : victim;
        *found = (struct gpu_translation){.window_page = (uint32_t)page, .valid = true, .used = ++uses};
    }
    free(cache);
    return misses;
}

void gpu_window_touch(gpu_t *gpu, uint64_t bus_address)
{
    struct gpu_window_page *page = page_of(gpu, bus_address);
    if (page->cached == 0) {
        gpu->counters[GPU_TRANSLATION_MISSES]++;
        entry_add(gpu, page, sim_now_ps(gpu->sim));
    }
    gpu->cache[page->cached - 1].used = ++gpu->cache_uses;
}

uint64_t gpu_window_translate(gpu_t *gpu, uint64_t bus_address)
{
    uint64_t now_ps = sim_now_ps(gpu->sim);
    struct gpu_window_page *page = page_of(gpu, bus_address);
    if (page == NULL) {
        return now_ps; // the BAR's comparator rejects it
    }
    if (page->cached == 0) {
        uint64_t ready_ps = walk(gpu);
        if (page->device_page == 0) {
            return ready_ps; // no translation to keep
        }
        entry_add(gpu, page, ready_ps);
    }
    struct gpu_translation *entry = &gpu->cache[page->cached - 1];
    entry->used = ++gpu->cache_uses;
    return entry->ready_ps > now_ps ? entry->ready_ps : now_ps;
}
