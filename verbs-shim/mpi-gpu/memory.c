#include "verbs-shim/mpi-gpu/gpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/backend/backend.h"
#include "verbs-shim/cuda/cuda_runtime_api.h"
#include "verbs-shim/cuda/internal.h"
#include "verbs-shim/gdrcopy/gdrapi.h"

// MVAPICH2-GDR's default limits: MV2_GPUDIRECT_GDRCOPY_LIMIT (8 KiB). For messages that Open MPI sends eagerly (12 KiB
// with its header, btl_openib_eager_limit) it copies by the processor, which is impossible with device memory.
#define GDRCOPY_BYTES     8192
#define DIRECT_BYTES      16384
#define CHUNK_BYTES_LEAST 4096
#define CHUNK_BYTES       262144 // MV2_CUDA_BLOCK_SIZE

// --- settings -------------------------------------------------------------------------------------------------------

static size_t bytes_of(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    char *end;
    if (text == NULL || text[0] == '\0') {
        return otherwise;
    }
    unsigned long long bytes = strtoull(text, &end, 10);
    if (*end != '\0' || text[0] == '-') {
        fprintf(stderr, "libtcasim-mpi-gpu: %s=%s is no number of bytes; %zu is taken\n", name, text, otherwise);
        return otherwise;
    }
    return (size_t)bytes;
}

static struct mpi_gpu_settings settings;

static void settings_read(void)
{
    const char *mode = getenv("TCASIM_MPI_GPU");
    settings.direct = mode != NULL && strcmp(mode, "direct") == 0;
    if (mode != NULL && mode[0] != '\0' && !settings.direct && strcmp(mode, "staged") != 0) {
        fprintf(stderr, "libtcasim-mpi-gpu: TCASIM_MPI_GPU=%s is none of staged, direct; staged is taken\n", mode);
    }
    settings.direct_bytes = bytes_of("TCASIM_MPI_GPU_DIRECT_BYTES", DIRECT_BYTES);
    settings.gdrcopy_bytes = bytes_of("TCASIM_MPI_GPU_GDRCOPY_BYTES", GDRCOPY_BYTES);
    settings.chunk_bytes = bytes_of("TCASIM_MPI_GPU_CHUNK_BYTES", CHUNK_BYTES);
    if (settings.chunk_bytes != 0 && settings.chunk_bytes < CHUNK_BYTES_LEAST) {
        fprintf(stderr, "libtcasim-mpi-gpu: TCASIM_MPI_GPU_CHUNK_BYTES is less than %d, which is taken\n",
                CHUNK_BYTES_LEAST);
        settings.chunk_bytes = CHUNK_BYTES_LEAST;
    }
}

const struct mpi_gpu_settings *mpi_gpu_settings(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, settings_read);
    return &settings;
}

// --- kind of memory of a pointer ------------------------------------------------------------------------------------

static bool in_the_window(const void *pointer)
{
    uintptr_t address = (uintptr_t)pointer;
    return address >= CUDA_BASE && address - CUDA_BASE < (uint64_t)BACKEND_GPUS_MAX << CUDA_DEVICE_SHIFT;
}

enum mpi_gpu_pointer_kind mpi_gpu_pointer_kind(const void *pointer)
{
    struct cudaPointerAttributes attributes;
    const struct backend_process *process = in_the_window(pointer) ? backend_current() : NULL;
    if (process == NULL || process->libraries[BACKEND_LIBRARY_CUDA].state == NULL) {
        return MPI_GPU_HOST; // a program without devices may use these addresses
    }
    bool known = cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess;
    (void)(known || cudaGetLastError() == cudaSuccess); // not an error of the program
    return known && attributes.type == cudaMemoryTypeDevice ? MPI_GPU_DEVICE : MPI_GPU_NOWHERE;
}

// --- host memory ----------------------------------------------------------------------------------------------------

struct host_block {
    struct host_block *next;
    void *host;
    size_t bytes;
    bool used;
};

static struct host_block *blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects the static data of this file

static struct host_block *block_find(size_t bytes)
{
    struct host_block *best = NULL;
    for (struct host_block *block = blocks; block != NULL; block = block->next) {
        if (!block->used && block->bytes >= bytes && (best == NULL || block->bytes < best->bytes)) {
            best = block;
        }
    }
    return best;
}

static struct host_block *block_make(size_t bytes)
{
    size_t whole = 4096;
    while (whole < bytes) {
        whole *= 2;
    }
    struct host_block *block = calloc(1, sizeof *block);
    if (block == NULL || cudaMallocHost(&block->host, whole) != cudaSuccess) {
        free(block);
        return NULL;
    }
    block->bytes = whole;
    block->next = blocks;
    blocks = block;
    return block;
}

void *mpi_gpu_host_take(size_t bytes)
{
    (void)pthread_mutex_lock(&lock);
    struct host_block *block = block_find(bytes);
    block = block != NULL ? block : block_make(bytes);
    if (block != NULL) {
        block->used = true;
    }
    (void)pthread_mutex_unlock(&lock);
    return block != NULL ? block->host : NULL;
}

void mpi_gpu_host_give(void *host)
{
    (void)pthread_mutex_lock(&lock);
    for (struct host_block *block = blocks; block != NULL; block = block->next) {
        block->used = block->used && block->host != host;
    }
    (void)pthread_mutex_unlock(&lock);
}

// --- by the processor -----------------------------------------------------------------------------------------------

// A page of device memory mapped for the processor. Kept until its memory is freed.
struct window {
    struct window *next;
    uintptr_t page;
    gdr_mh_t handle;
    char *mapping;
};

static struct window *windows;
static gdr_t gdr;

static void window_drop(struct window **link)
{
    struct window *window = *link;
    *link = window->next;
    (void)gdr_unmap(gdr, window->handle, window->mapping, CUDA_PIN_PAGE_BYTES);
    (void)gdr_unpin_buffer(gdr, window->handle);
    free(window);
}

static struct window *window_make(uintptr_t page)
{
    struct window *window = calloc(1, sizeof *window);
    void *mapping = NULL;
    gdr = gdr != NULL ? gdr : gdr_open();
    if (window == NULL || gdr == NULL || gdr_pin_buffer(gdr, page, 1, 0, 0, &window->handle) != 0) {
        free(window);
        return NULL;
    }
    if (gdr_map(gdr, window->handle, &mapping, CUDA_PIN_PAGE_BYTES) != 0) {
        (void)gdr_unpin_buffer(gdr, window->handle);
        free(window);
        return NULL;
    }
    window->page = page;
    window->mapping = mapping;
    window->next = windows;
    windows = window;
    return window;
}

static struct window *window_of(uintptr_t page)
{
    for (struct window **link = &windows; *link != NULL;) {
        struct window *window = *link;
        int freed = 0;
        if (window->page == page && gdr_get_callback_flag(gdr, window->handle, &freed) == 0 && !freed) {
            return window;
        }
        if (window->page == page) {
            window_drop(link);
        } else {
            link = &window->next;
        }
    }
    return window_make(page);
}

// Copies data inside one page by the processor. False: the BAR has no room, or the data is longer; then the device
// copies.
static bool processor_copies(void *host, const void *device, size_t bytes, bool to_device)
{
    uintptr_t address = (uintptr_t)device, page = address & ~(uintptr_t)(CUDA_PIN_PAGE_BYTES - 1);
    if (bytes > mpi_gpu_settings()->gdrcopy_bytes || address + bytes > page + CUDA_PIN_PAGE_BYTES) {
        return false;
    }
    (void)pthread_mutex_lock(&lock);
    const struct window *window = window_of(page);
    bool copied =
        window != NULL &&
        (to_device ? gdr_copy_to_mapping(window->handle, window->mapping + (address - page), host, bytes)
                   : gdr_copy_from_mapping(window->handle, host, window->mapping + (address - page), bytes)) == 0;
    (void)pthread_mutex_unlock(&lock);
    return copied;
}

// --- by the device --------------------------------------------------------------------------------------------------

// The streams are the library's own and do not wait for the program's; the program's data must be ready before it calls
// MPI.
bool mpi_gpu_stream(const void *device_pointer, struct mpi_gpu_work *work)
{
    static cudaStream_t streams[BACKEND_GPUS_MAX][2];
    struct cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, device_pointer) != cudaSuccess ||
        cudaGetDevice(&work->before) != cudaSuccess || cudaSetDevice(attributes.device) != cudaSuccess) {
        return false;
    }
    bool good = true;
    (void)pthread_mutex_lock(&lock);
    cudaStream_t *own = streams[attributes.device];
    for (int i = 0; i < 2 && good; i++) {
        good = own[i] != NULL || cudaStreamCreateWithFlags(&own[i], cudaStreamNonBlocking) == cudaSuccess;
    }
    (void)pthread_mutex_unlock(&lock);
    work->stream = own[0];
    work->second = own[1];
    if (!good) {
        (void)cudaSetDevice(work->before);
    }
    return good;
}

bool mpi_gpu_stream_end(const struct mpi_gpu_work *work)
{
    bool good = cudaStreamSynchronize(work->stream) == cudaSuccess;
    return cudaSetDevice(work->before) == cudaSuccess && good;
}

static bool device_copies(void *to, const void *from, size_t bytes, bool to_device)
{
    struct mpi_gpu_work work;
    if (!mpi_gpu_stream(to_device ? to : from, &work)) {
        return false;
    }
    bool good = cudaMemcpyAsync(to, from, bytes, to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                                work.stream) == cudaSuccess;
    return mpi_gpu_stream_end(&work) && good;
}

bool mpi_gpu_read(void *host, const void *device, size_t bytes)
{
    return bytes == 0 || processor_copies(host, device, bytes, false) || device_copies(host, device, bytes, false);
}

bool mpi_gpu_write(void *device, const void *host, size_t bytes)
{
    return bytes == 0 || processor_copies((void *)(uintptr_t)host, device, bytes, true) ||
           device_copies(device, host, bytes, true);
}

// --- in chunks ------------------------------------------------------------------------------------------------------

bool mpi_gpu_read_chunks(char *host, const char *device, size_t bytes, size_t chunk_bytes, mpi_gpu_ready_fn *ready,
                         void *argument)
{
    struct mpi_gpu_work work;
    bool good = mpi_gpu_stream(device, &work), has_work = good;
    // One chunk is in flight while ready sends the previous one.
    for (size_t begun = 0, reported = 0; reported < bytes;) {
        for (; begun < bytes && begun < reported + 2 * chunk_bytes; begun += chunk_bytes) {
            size_t left = bytes - begun, part = left < chunk_bytes ? left : chunk_bytes;
            cudaStream_t stream = begun / chunk_bytes % 2 == 0 ? work.stream : work.second;
            good = good &&
                   cudaMemcpyAsync(host + begun, device + begun, part, cudaMemcpyDeviceToHost, stream) == cudaSuccess;
        }
        good =
            good && cudaStreamSynchronize(reported / chunk_bytes % 2 == 0 ? work.stream : work.second) == cudaSuccess;
        ready(argument, good);
        reported += chunk_bytes;
    }
    if (has_work) {
        good = cudaStreamSynchronize(work.second) == cudaSuccess && good;
        good = mpi_gpu_stream_end(&work) && good;
    }
    return good;
}

bool mpi_gpu_write_begin(void *device, const void *host, size_t bytes)
{
    struct mpi_gpu_work work;
    if (!mpi_gpu_stream(device, &work)) {
        return false;
    }
    bool good = cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, work.second) == cudaSuccess;
    return cudaSetDevice(work.before) == cudaSuccess && good;
}

bool mpi_gpu_write_end(const void *device)
{
    struct mpi_gpu_work work;
    if (!mpi_gpu_stream(device, &work)) {
        return false;
    }
    bool good = cudaStreamSynchronize(work.second) == cudaSuccess;
    return mpi_gpu_stream_end(&work) && good;
}
