// Windows onto device memory (GPUDirect RDMA), and what else the libraries beside CUDA, gdrcopy
// and libtca, need to know of its memory.
//
// A window is of 64 KB pages and lies in the GPU's BAR. cudaFree and cudaDeviceReset close it; it stays in the list of
// its process, revoked, until whoever made it destroys it.
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
    uint64_t start, length;         // what was asked for, from the first page on
    bool revoked;
};

struct cuda_tokens {
    uint64_t p2p;
    uint32_t va_space;
};

// For bytes at pointer, which lie in one allocation of the calling process; in_pages: or behind it in its last page, as
// those do who register pages of 4 KiB (Open MPI's openib). Pays the driver's call. -ENODEV: no GPU.
// -EINVAL: no such memory. -ENOSPC: the BAR is full. -ENOMEM, -EIO.
int cuda_pin_create(const void *pointer, size_t bytes, bool in_pages, struct cuda_pin **pin_out);
void cuda_pin_destroy(struct cuda_pin *pin);
// Where pointer, which lies in the pin, is: an offset from the first page.
uint64_t cuda_pin_offset(const struct cuda_pin *pin, const void *pointer);
// Of bytes at pointer, which lie in one cudaMallocHost of the calling process: where devices reach them, and which one
// it is (no later one has its number). False: they do not.
bool cuda_host_pinned(const void *pointer, size_t bytes, uint64_t *bus_address_out, uint64_t *number_out);
// The tokens of this process for memory of a GPU. False: pointer is not device memory of the process.
bool cuda_tokens_of(const void *pointer, struct cuda_tokens *tokens_out);
