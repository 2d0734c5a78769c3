// gdrcopy: the processor reads and writes device memory through a window in the GPU's BAR. The names are those of the
// public API (2.x), so that C programs compile; this is not the library itself.
//
// A mapping is a number, not an address: it must never be dereferenced. gdr_copy_to_mapping and gdr_copy_from_mapping
// are the only ways to access it. Stores are write-combined and end with a fence; loads are streaming loads of lines of
// 64 B. Any size and alignment is allowed; whole aligned lines are fastest.
//
// Functions that return int give 0, or a positive errno value. Handles belong to the process that made them. cudaFree
// of the memory closes its window: copies then return EINVAL, and gdr_get_callback_flag reports it.
//
// Not modelled: persistent and forced-cached mappings, gdr_get_attribute.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GDR_API_MAJOR_VERSION 2
#define GDR_API_MINOR_VERSION 3

#define GPU_PAGE_SHIFT  16
#define GPU_PAGE_SIZE   (1UL << GPU_PAGE_SHIFT)
#define GPU_PAGE_OFFSET (GPU_PAGE_SIZE - 1)
#define GPU_PAGE_MASK   (~GPU_PAGE_OFFSET)

typedef struct gdr *gdr_t;

typedef struct gdr_mh_s {
    unsigned long h;
} gdr_mh_t;

typedef enum gdr_mapping_type { GDR_MAPPING_TYPE_NONE = 0, GDR_MAPPING_TYPE_WC = 1 } gdr_mapping_type_t;

typedef struct gdr_info_v2 {
    uint64_t va;          // of the first page, as a device pointer
    uint64_t mapped_size; // of the pages
    uint32_t page_size;
    uint64_t tm_cycles; // 0
    uint32_t cycles_per_ms;
    unsigned mapped : 1;
    unsigned wc_mapping : 1;
    gdr_mapping_type_t mapping_type;
} gdr_info_t;

// NULL: the node has no GPU.
gdr_t gdr_open(void);
// Also unpins what is still pinned. EINVAL: not a handle of gdr_open.
int gdr_close(gdr_t g);

// The pages around size bytes at addr, which are inside one cudaMalloc. The tokens are those of cuPointerGetAttribute,
// or both 0. EINVAL: no such memory, no bytes, or tokens of another process or device. ENOMEM: the BAR is full.
int gdr_pin_buffer(gdr_t g, unsigned long addr, size_t size, uint64_t p2p_token, uint32_t va_space, gdr_mh_t *handle);
int gdr_unpin_buffer(gdr_t g, gdr_mh_t handle);
// The flag is set if cudaFree or cudaDeviceReset closed the window.
int gdr_get_callback_flag(gdr_t g, gdr_mh_t handle, int *flag);
int gdr_get_info(gdr_t g, gdr_mh_t handle, gdr_info_t *info);

// Maps the first size bytes of the pages: *va corresponds to info.va. EAGAIN: mapped already. EINVAL: beyond the pages.
int gdr_map(gdr_t g, gdr_mh_t handle, void **va, size_t size);
// va and size must be those of the mapping.
int gdr_unmap(gdr_t g, gdr_mh_t handle, void *va, size_t size);

// map_d_ptr may be anywhere in the mapping. EINVAL: not mapped, or beyond its end. EIO: the GPU did not answer.
int gdr_copy_to_mapping(gdr_mh_t handle, void *map_d_ptr, const void *h_ptr, size_t size);
int gdr_copy_from_mapping(gdr_mh_t handle, void *h_ptr, const void *map_d_ptr, size_t size);

void gdr_runtime_get_version(int *major, int *minor);
int gdr_driver_get_version(gdr_t g, int *major, int *minor);

#ifdef __cplusplus
}
#endif
