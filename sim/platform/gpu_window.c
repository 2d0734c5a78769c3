#include "sim/platform/gpu_window.h"

#include <stdlib.h>

static struct plat_gpu_window *find(const struct plat_gpu *gpu, uint64_t device_address, uint64_t bytes)
{
    struct plat_gpu_window *window = gpu->windows;
    while (window != NULL) {
        uint64_t within = device_address - window->device_address; // wraps to a large number if the address is below
        if (within < window->bytes && bytes <= window->bytes - within) {
            return window;
        }
        window = window->next;
    }
    return NULL;
}

static enum sim_status open_one(struct plat_gpu *gpu, uint64_t device_address, uint64_t bytes)
{
    struct plat_gpu_window *window = calloc(1, sizeof *window);
    if (window == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    uint64_t within = device_address % GPU_PAGE_BYTES;
    window->device_address = device_address - within;
    window->bytes = bytes + within;
    enum sim_status status = gpu_pin(gpu->gpu, window->device_address, window->bytes, &window->bar_offset);
    if (status != SIM_OK) {
        free(window);
        return status;
    }
    window->next = gpu->windows;
    gpu->windows = window;
    return SIM_OK;
}

// Opens a window onto the whole allocation, or if there is no room for it, onto the requested bytes.
static enum sim_status open_for(struct plat_gpu *gpu, uint64_t device_address, uint64_t bytes)
{
    uint64_t base, size;
    if (!gpu_memory_find(gpu->gpu, device_address, &base, &size)) {
        return SIM_ERR_NOT_FOUND;
    }
    if (bytes > size - (device_address - base)) {
        return SIM_ERR_RANGE;
    }
    enum sim_status status = open_one(gpu, base, size);
    if (status == SIM_ERR_NO_MEMORY) {
        plat_gpu_windows_close_all(gpu);
        status = open_one(gpu, base, size);
    }
    return status == SIM_ERR_NO_MEMORY ? open_one(gpu, device_address, bytes) : status;
}

enum sim_status plat_gpu_window_take(struct plat_gpu *gpu, uint64_t device_address, uint64_t bytes,
                                     struct plat_gpu_window **window_out, uint64_t *offset_out)
{
    struct plat_gpu_window *window = find(gpu, device_address, bytes);
    if (window == NULL) {
        enum sim_status status = open_for(gpu, device_address, bytes);
        if (status != SIM_OK) {
            return status;
        }
        window = gpu->windows;
    }
    window->users++;
    *window_out = window;
    *offset_out = window->bar_offset + (device_address - window->device_address);
    return SIM_OK;
}

void plat_gpu_window_give(struct plat_gpu_window *window)
{
    window->users--;
}

// Closes the windows of the given bytes from base on.
static void close_within(struct plat_gpu *gpu, uint64_t base, uint64_t bytes)
{
    for (struct plat_gpu_window **link = &gpu->windows; *link != NULL;) {
        struct plat_gpu_window *window = *link;
        if (window->users == 0 && window->device_address - base < bytes) {
            (void)gpu_unpin(gpu->gpu, window->bar_offset);
            *link = window->next;
            free(window);
        } else {
            link = &window->next;
        }
    }
}

void plat_gpu_windows_close(struct plat_gpu *gpu, uint64_t device_address)
{
    uint64_t base, bytes;
    if (gpu_memory_find(gpu->gpu, device_address, &base, &bytes) && base == device_address) {
        close_within(gpu, base, bytes);
    }
}

void plat_gpu_windows_close_all(struct plat_gpu *gpu)
{
    close_within(gpu, 0, UINT64_MAX);
}

void plat_gpu_windows_forget(struct plat_gpu *gpu)
{
    while (gpu->windows != NULL) {
        struct plat_gpu_window *window = gpu->windows;
        gpu->windows = window->next;
        free(window);
    }
}
