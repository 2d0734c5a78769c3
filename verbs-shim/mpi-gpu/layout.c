// Datatypes as runs of bytes, and the kernels that pack and unpack them on the device.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/backend/backend.h"
#include "verbs-shim/cuda/cuda_runtime_api.h"
#include "verbs-shim/cuda/tcasim_kernel.h"
#include "verbs-shim/mpi-gpu/gpu.h"

#define DEPTH_MAX 32 // nesting of datatypes

// --- runs -----------------------------------------------------------------------------------------------------------

static bool run_add(struct mpi_gpu_layout *layout, mpi_aint offset, size_t bytes)
{
    struct mpi_gpu_run *last = layout->count > 0 ? &layout->runs[layout->count - 1] : NULL;
    layout->bytes += bytes;
    if (bytes == 0) {
        return true;
    }
    if (last != NULL && last->offset + (mpi_aint)last->bytes == offset) {
        last->bytes += bytes;
        return true;
    }
    if (layout->count == layout->room) {
        size_t room = layout->room != 0 ? 2 * layout->room : 16;
        struct mpi_gpu_run *larger = realloc(layout->runs, room * sizeof *larger);
        if (larger == NULL) {
            return false;
        }
        layout->runs = larger;
        layout->room = room;
    }
    layout->runs[layout->count++] = (struct mpi_gpu_run){offset, bytes};
    return true;
}

struct contents {
    int combiner, integer_count, address_count, type_count;
    int *integers;
    mpi_aint *addresses;
    void *types;
};

static void contents_free(struct contents *contents)
{
    // Handles of derived types are copies and must be freed.
    for (int i = 0; contents->types != NULL && i < contents->type_count; i++) {
        int integers, addresses, types, combiner;
        mpi_handle type = mpi_handle_at(contents->types, i);
        if (CALL Type_get_envelope(type, &integers, &addresses, &types, &combiner) == MPI_OK &&
            combiner - !mpi_abi()->open_mpi != MPI_MADE_NAMED) {
            (void)CALL Type_free(mpi_handle_slot(contents->types, i));
        }
    }
    free(contents->integers);
    free(contents->addresses);
    free(contents->types);
}

static bool contents_get(mpi_handle type, struct contents *contents)
{
    *contents = (struct contents){0};
    if (CALL Type_get_envelope(type, &contents->integer_count, &contents->address_count, &contents->type_count,
                               &contents->combiner) != MPI_OK) {
        return false;
    }
    contents->combiner -= !mpi_abi()->open_mpi; // MPICH's numbers start at 1
    if (contents->combiner == MPI_MADE_NAMED) {
        return true;
    }
    contents->integers = calloc((size_t)contents->integer_count + 1, sizeof *contents->integers);
    contents->addresses = calloc((size_t)contents->address_count + 1, sizeof *contents->addresses);
    contents->types = calloc((size_t)contents->type_count + 1, mpi_abi()->handle_bytes);
    bool good = contents->integers != NULL && contents->addresses != NULL && contents->types != NULL &&
                CALL Type_get_contents(type, contents->integer_count, contents->address_count, contents->type_count,
                                       contents->integers, contents->addresses, contents->types) == MPI_OK;
    if (!good) {
        contents->type_count = 0;
        contents_free(contents);
    }
    return good;
}

static bool type_add(struct mpi_gpu_layout *layout, mpi_handle type, mpi_aint at, unsigned depth);

// Adds count consecutive elements of a datatype.
static bool elements_add(struct mpi_gpu_layout *layout, mpi_handle type, mpi_aint at, int count, unsigned depth)
{
    mpi_aint lower = 0, extent = 0;
    int integers, addresses, types, combiner, size = 0;
    if (CALL Type_get_extent(type, &lower, &extent) != MPI_OK || CALL Type_size(type, &size) != MPI_OK ||
        CALL Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_OK) {
        return false;
    }
    if (combiner - !mpi_abi()->open_mpi == MPI_MADE_NAMED && size == extent && count > 0) {
        return run_add(layout, at, (size_t)size * (size_t)count);
    }
    bool good = true;
    for (int i = 0; i < count && good; i++) {
        good = type_add(layout, type, at + i * extent, depth);
    }
    return good;
}

// Blocks of one datatype: a length for each or one for all, displacements in bytes or in elements.
static bool blocks_add(struct mpi_gpu_layout *layout, const struct contents *contents, mpi_aint at, unsigned depth)
{
    mpi_handle type = mpi_handle_at(contents->types, 0);
    const int *integers = contents->integers;
    int count = integers[0], combiner = contents->combiner;
    bool of_one_length = combiner == MPI_MADE_INDEXED_BLOCK || combiner == MPI_MADE_HINDEXED_BLOCK;
    bool in_bytes = combiner == MPI_MADE_HINDEXED || combiner == MPI_MADE_HINDEXED_BLOCK;
    const int *displacements = of_one_length ? integers + 2 : integers + 1 + count;
    mpi_aint lower = 0, extent = 0;
    bool good = CALL Type_get_extent(type, &lower, &extent) == MPI_OK;
    for (int i = 0; i < count && good; i++) {
        mpi_aint displacement = in_bytes ? contents->addresses[i] : displacements[i] * extent;
        good = elements_add(layout, type, at + displacement, of_one_length ? integers[1] : integers[1 + i], depth);
    }
    return good;
}

static bool vector_add(struct mpi_gpu_layout *layout, const struct contents *contents, mpi_aint at, unsigned depth)
{
    mpi_handle type = mpi_handle_at(contents->types, 0);
    mpi_aint lower = 0, extent = 0;
    bool good = CALL Type_get_extent(type, &lower, &extent) == MPI_OK;
    mpi_aint stride = contents->combiner == MPI_MADE_VECTOR ? contents->integers[2] * extent : contents->addresses[0];
    for (int i = 0; i < contents->integers[0] && good; i++) {
        good = elements_add(layout, type, at + i * stride, contents->integers[1], depth);
    }
    return good;
}

static bool struct_add(struct mpi_gpu_layout *layout, const struct contents *contents, mpi_aint at, unsigned depth)
{
    bool good = true;
    for (int i = 0; i < contents->integers[0] && good; i++) {
        good = elements_add(layout, mpi_handle_at(contents->types, i), at + contents->addresses[i],
                            contents->integers[1 + i], depth);
    }
    return good;
}

static bool contents_add(struct mpi_gpu_layout *layout, const struct contents *contents, mpi_aint at, unsigned depth)
{
    switch (contents->combiner) {
    case MPI_MADE_DUP:
    case MPI_MADE_RESIZED:
        return type_add(layout, mpi_handle_at(contents->types, 0), at, depth);
    case MPI_MADE_CONTIGUOUS:
        return elements_add(layout, mpi_handle_at(contents->types, 0), at, contents->integers[0], depth);
    case MPI_MADE_VECTOR:
    case MPI_MADE_HVECTOR:
        return vector_add(layout, contents, at, depth);
    case MPI_MADE_INDEXED:
    case MPI_MADE_HINDEXED:
    case MPI_MADE_INDEXED_BLOCK:
    case MPI_MADE_HINDEXED_BLOCK:
        return blocks_add(layout, contents, at, depth);
    case MPI_MADE_STRUCT:
        return struct_add(layout, contents, at, depth);
    default:
        return false;
    }
}

static bool type_add(struct mpi_gpu_layout *layout, mpi_handle type, mpi_aint at, unsigned depth)
{
    struct contents contents;
    if (depth == DEPTH_MAX || !contents_get(type, &contents)) {
        return false;
    }
    if (contents.combiner == MPI_MADE_NAMED) {
        int bytes = 0;
        mpi_aint lower, extent;
        return CALL Type_size(type, &bytes) == MPI_OK && CALL Type_get_true_extent(type, &lower, &extent) == MPI_OK &&
               extent == bytes && // pairs such as MPI_SHORT_INT have a gap
               run_add(layout, at, (size_t)bytes);
    }
    bool good = contents_add(layout, &contents, at, depth + 1);
    contents_free(&contents);
    return good;
}

bool mpi_gpu_layout_make(mpi_handle type, struct mpi_gpu_layout *layout_out)
{
    mpi_aint lower;
    *layout_out = (struct mpi_gpu_layout){0};
    if (CALL Type_get_extent(type, &lower, &layout_out->extent) == MPI_OK && type_add(layout_out, type, 0, 0)) {
        return true;
    }
    mpi_gpu_layout_free(layout_out);
    return false;
}

void mpi_gpu_layout_free(struct mpi_gpu_layout *layout)
{
    free(layout->runs);
    *layout = (struct mpi_gpu_layout){0};
}

bool mpi_gpu_layout_is_run(const struct mpi_gpu_layout *layout, int count)
{
    return layout->count == 0 ||
           (layout->count == 1 && (count <= 1 || layout->extent == (mpi_aint)layout->runs[0].bytes));
}

// --- kernels --------------------------------------------------------------------------------------------------------

#define SECTOR_BYTES 32 // access unit of a Kepler's memory (CUDA C Programming Guide, global memory)

// Everything in it must exist until the kernel has ended.
struct packing {
    const struct mpi_gpu_layout *layout;
    char *elements, *packed; // device memory
    mpi_aint first, last;    // range of the elements' bytes, relative to `elements`
    size_t bytes;
    bool unpacks;
};

static void pack_kernel(void)
{
}

static void pack_cost(const struct tcasim_launch *launch, struct tcasim_kernel *cost)
{
    const struct packing *packing = *(const struct packing *const *)launch->args[0];
    size_t left = packing->bytes;
    cost->memory_bytes = left;
    for (mpi_aint at = 0; left > 0; at += packing->layout->extent) {
        for (size_t i = 0; i < packing->layout->count && left > 0; i++) {
            const struct mpi_gpu_run *run = &packing->layout->runs[i];
            uint64_t begin = (uint64_t)(uintptr_t)packing->elements + (uint64_t)(at + run->offset);
            uint64_t end = begin + (run->bytes < left ? run->bytes : left);
            cost->memory_bytes +=
                (end + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES - begin / SECTOR_BYTES * SECTOR_BYTES;
            left -= end - begin;
        }
    }
}

static void pack_run(const struct tcasim_launch *launch)
{
    const struct packing *packing = *(const struct packing *const *)launch->args[0];
    char *elements =
        tcasimKernelMemory(launch, packing->elements + packing->first, (size_t)(packing->last - packing->first));
    char *packed = tcasimKernelMemory(launch, packing->packed, packing->bytes);
    size_t done = 0;
    if (elements == NULL || packed == NULL) {
        return; // freed in the meantime
    }
    for (mpi_aint at = -packing->first; done < packing->bytes; at += packing->layout->extent) {
        for (size_t i = 0; i < packing->layout->count && done < packing->bytes; i++) {
            const struct mpi_gpu_run *run = &packing->layout->runs[i];
            size_t left = packing->bytes - done, bytes = run->bytes < left ? run->bytes : left;
            char *element = elements + at + run->offset;
            memcpy(packing->unpacks ? element : packed + done, packing->unpacks ? packed + done : element, bytes);
            done += bytes;
        }
    }
}

// The range of the buffer's bytes that its data uses, relative to its first element.
static void span_find(struct packing *packing)
{
    size_t left = packing->bytes;
    packing->first = packing->layout->runs[0].offset;
    packing->last = packing->first;
    for (mpi_aint at = 0; left > 0; at += packing->layout->extent) {
        for (size_t i = 0; i < packing->layout->count && left > 0; i++) {
            const struct mpi_gpu_run *run = &packing->layout->runs[i];
            size_t bytes = run->bytes < left ? run->bytes : left;
            mpi_aint begin = at + run->offset, end = begin + (mpi_aint)bytes;
            packing->first = begin < packing->first ? begin : packing->first;
            packing->last = end > packing->last ? end : packing->last;
            left -= bytes;
        }
    }
}

static bool kernel_launch(struct packing *packing, cudaStream_t stream)
{
    static const size_t argument_bytes[] = {sizeof(struct packing *)};
    static const struct tcasim_kernel_definition definition = {.name = "pack of an MPI datatype",
                                                               .argument_count = 1,
                                                               .argument_bytes = argument_bytes,
                                                               .cost = pack_cost,
                                                               .run = pack_run};
    const void *kernel = (const void *)(uintptr_t)pack_kernel;
    void *args[] = {&packing};
    return tcasimKernelRegister(kernel, &definition) == cudaSuccess &&
           cudaLaunchKernel(kernel, (dim3){(unsigned)(packing->bytes / 1024 + 1), 1, 1}, (dim3){256, 1, 1}, args, 0,
                            stream) == cudaSuccess;
}

// Device memory between the elements and the host, kept for the next message; used under the lock.
struct scratch {
    void *memory;
    size_t bytes;
};
static struct scratch scratches[BACKEND_GPUS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *scratch_of(size_t bytes)
{
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) {
        return NULL;
    }
    struct scratch *scratch = &scratches[device];
    if (scratch->bytes < bytes) {
        (void)cudaFree(scratch->memory);
        scratch->bytes = cudaMalloc(&scratch->memory, bytes) == cudaSuccess ? bytes : 0;
        scratch->memory = scratch->bytes != 0 ? scratch->memory : NULL;
    }
    return scratch->memory;
}

static bool transfer_locked(void *host, struct packing *packing, cudaStream_t stream)
{
    packing->packed = scratch_of(packing->bytes);
    if (packing->packed == NULL) {
        return false;
    }
    if (packing->unpacks) {
        return cudaMemcpyAsync(packing->packed, host, packing->bytes, cudaMemcpyHostToDevice, stream) == cudaSuccess &&
               kernel_launch(packing, stream);
    }
    return kernel_launch(packing, stream) &&
           (host == NULL ||
            cudaMemcpyAsync(host, packing->packed, packing->bytes, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
}

// Transfers to or from the host; without a host the packed data stays in the scratch memory.
static bool transfer(void *host, struct packing *packing)
{
    struct mpi_gpu_work work;
    if (packing->bytes == 0) {
        return true;
    }
    span_find(packing);
    if (!mpi_gpu_stream(packing->elements + packing->first, &work)) {
        return false;
    }
    bool good = transfer_locked(host, packing, work.stream);
    return mpi_gpu_stream_end(&work) && good;
}

static bool transfer_alone(void *host, struct packing *packing)
{
    (void)pthread_mutex_lock(&lock);
    bool good = transfer(host, packing);
    (void)pthread_mutex_unlock(&lock);
    return good;
}

bool mpi_gpu_pack(void *host, const void *device, const struct mpi_gpu_layout *layout, size_t bytes)
{
    struct packing packing = {.layout = layout, .elements = (char *)(uintptr_t)device, .bytes = bytes};
    return transfer_alone(host, &packing);
}

bool mpi_gpu_unpack(void *device, const void *host, const struct mpi_gpu_layout *layout, size_t bytes)
{
    struct packing packing = {.layout = layout, .elements = device, .bytes = bytes, .unpacks = true};
    return transfer_alone((void *)(uintptr_t)host, &packing);
}

bool mpi_gpu_pack_chunks(void *host, const void *device, const struct mpi_gpu_layout *layout, size_t bytes,
                         size_t chunk_bytes, mpi_gpu_ready_fn *ready, void *argument)
{
    struct packing packing = {.layout = layout, .elements = (char *)(uintptr_t)device, .bytes = bytes};
    (void)pthread_mutex_lock(&lock);
    bool good = transfer(NULL, &packing);
    good = mpi_gpu_read_chunks(host, good ? packing.packed : NULL, bytes, chunk_bytes, ready, argument) && good;
    (void)pthread_mutex_unlock(&lock);
    return good;
}
