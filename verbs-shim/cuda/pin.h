// Windows onto device memory (GPUDirect RDMA), and what gdrcopy and libtca need to know about CUDA's memory.
//
// A window consists of 64 KB pages in the GPU's BAR. cudaFree and cudaDeviceReset close it; it then stays in the list
// of its process, revoked, until its creator destroys it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs-shim/backend/backend.h"

#define CUDA_PIN_PAGE_BYTES 65536u

struct cuda_pin {
    struct cuda_pin *next;
    unsigned gpu;
    uint64_t device_address, bytes; // whole pages
    uint64_t bar_offset;            // of the first page in the GPU's BAR
    uint64_t bus_address;           // of the first page, for devices of the node
    uint64_t start, length;         // the requested range, counted from the first page
    bool revoked;
};

struct cuda_tokens {
    uint64_t p2p;
    uint32_t va_space;
};

// Pins bytes at pointer, which are inside one allocation of the calling process. in_pages: the range may extend to the
// end of its last page, as libraries register pages of 4 KiB (Open MPI's openib). Pays the driver's call. -ENODEV: no
// GPU. -EINVAL: no such memory. -ENOSPC: the BAR is full. -ENOMEM, -EIO.
int cuda_pin_create(const void *pointer, size_t bytes, bool in_pages, struct cuda_pin **pin_out);
void cuda_pin_destroy(struct cuda_pin *pin);
// The offset of pointer, which is inside the pin, from the first page.
uint64_t cuda_pin_offset(const struct cuda_pin *pin, const void *pointer);
// For bytes at pointer inside one cudaMallocHost of the calling process: the address for devices, and the number of
// that allocation (never reused). False: they are not.
bool cuda_host_pinned(const void *pointer, size_t bytes, uint64_t *bus_address_out, uint64_t *number_out);
// The tokens of this process for memory of a GPU. False: pointer is not device memory of the process.
bool cuda_tokens_of(const void *pointer, struct cuda_tokens *tokens_out);
