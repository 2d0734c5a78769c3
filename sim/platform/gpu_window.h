// Windows onto a GPU's memory that its driver keeps for copies of other GPUs of the node. A window is opened for the
// first copy to an allocation, and closed when the allocation is freed or when its room is needed: later copies need no
// work of the driver. Private to the room.
#pragma once

#include "sim/platform/gpus.h"

struct plat_gpu_window {
    struct plat_gpu_window *next;
    uint64_t device_address, bytes; // the range that it maps
    uint64_t bar_offset;
    uint32_t users; // copies in progress
};

// Takes a window for bytes at the device address, which are in one allocation; it is in use until it is given back.
// offset: of the first byte in the BAR. SIM_ERR_NO_MEMORY: the BAR has no room. SIM_ERR_NOT_FOUND, SIM_ERR_RANGE: no
// such memory.
enum sim_status plat_gpu_window_take(struct plat_gpu *gpu, uint64_t device_address, uint64_t bytes,
                                     struct plat_gpu_window **window_out, uint64_t *offset_out);
void plat_gpu_window_give(struct plat_gpu_window *window);
// Close the windows that are not in use: of the allocation that begins at this address; all.
void plat_gpu_windows_close(struct plat_gpu *gpu, uint64_t device_address);
void plat_gpu_windows_close_all(struct plat_gpu *gpu);
void plat_gpu_windows_forget(struct plat_gpu *gpu); // frees only their memory, when the GPU is destroyed
