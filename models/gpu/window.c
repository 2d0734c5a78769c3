// BAR 1: the pages of device memory that it maps.
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
        gpu->pages[(offset + done) / GPU_PAGE_BYTES] = (uint32_t)((address + done) / GPU_PAGE_BYTES);
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
        gpu->pages[(bar_offset + done) / GPU_PAGE_BYTES] = 0;
    }
    pin->allocation->uses--;
    *link = pin->next;
    free(pin);
    return SIM_OK;
}

void gpu_window_end(gpu_t *gpu)
{
    memset(gpu->pages, 0, gpu->config.bar_bytes / GPU_PAGE_BYTES * sizeof *gpu->pages);
}

bool gpu_window_find(const gpu_t *gpu, uint64_t bus_address, uint64_t *device_address_out)
{
    uint64_t offset = bus_address - gpu->bar_base; // an address below the base wraps to a large offset
    uint32_t page = offset < gpu->config.bar_bytes ? gpu->pages[offset / GPU_PAGE_BYTES] : 0;
    if (page == 0) {
        return false;
    }
    *device_address_out = page * GPU_PAGE_BYTES + bus_address % GPU_PAGE_BYTES;
    return true;
}
