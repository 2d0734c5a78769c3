// Copies and fills: classifies the pointers and selects the path of a copy.
#include <string.h>

#include "verbs-shim/cuda/internal.h"

// --- pieces ---------------------------------------------------------------------------------------------------------

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

bool cuda_piece_next(const struct cuda_copy *copy, uint64_t limit, struct cuda_piece *piece)
{
    piece->column += piece->bytes;
    if (piece->bytes != 0 && piece->column == copy->width) {
        piece->row += piece->rows;
        piece->column = 0;
    }
    if (piece->row == copy->rows) {
        return false;
    }
    bool whole = copy->width <= limit;
    piece->rows = whole ? smaller(limit / copy->width, copy->rows - piece->row) : 1;
    piece->bytes = whole ? copy->width : smaller(limit, copy->width - piece->column);
    return true;
}

uint64_t cuda_side_offset(const struct cuda_side *side, const struct cuda_piece *piece)
{
    return piece->row * side->pitch + piece->column;
}

// --- classification of pointers -------------------------------------------------------------------------------------

// Bytes from the first one to the end of the last row; false: the number overflows.
static bool extent(const struct cuda_copy *copy, uint64_t pitch, uint64_t *bytes_out)
{
    uint64_t gaps;
    return !__builtin_mul_overflow(pitch, copy->rows - 1, &gaps) &&
           !__builtin_add_overflow(gaps, copy->width, bytes_out);
}

static bool is_within(uint64_t offset, uint64_t bytes, uint64_t size)
{
    return offset <= size && bytes <= size - offset;
}

static cudaError_t side_find(struct cuda_context *context, const struct cuda_copy *copy, const void *pointer,
                             struct cuda_side *side)
{
    uint64_t bytes;
    if (!extent(copy, side->pitch, &bytes)) {
        return cudaErrorInvalidValue;
    }
    if (cuda_pointer_device(context, pointer, &side->gpu, &side->device_address)) {
        side->kind = CUDA_DEVICE;
        side->allocation = cuda_allocation_around(context, side->gpu, side->device_address);
        bool inside = side->allocation != NULL && is_within(side->device_address - side->allocation->device_address,
                                                            bytes, side->allocation->bytes);
        return inside ? cudaSuccess : cudaErrorInvalidValue;
    }
    const struct cuda_pinned *pinned = cuda_pinned_around(context, pointer);
    side->kind = pinned != NULL ? CUDA_PINNED : CUDA_PAGEABLE;
    side->host = (char *)(uintptr_t)pointer;
    if (pinned == NULL) {
        return pointer != NULL ? cudaSuccess : cudaErrorInvalidValue;
    }
    uint64_t offset = (uintptr_t)pointer - (uintptr_t)pinned->buffer.address;
    side->bus_address = pinned->buffer.bus_address + offset;
    return is_within(offset, bytes, pinned->buffer.bytes) ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t kind_check(const struct cuda_copy *copy, enum cudaMemcpyKind kind)
{
    bool to = copy->to.kind == CUDA_DEVICE, from = copy->from.kind == CUDA_DEVICE;
    bool fits = false;
    switch (kind) {
    case cudaMemcpyHostToHost:
        fits = !to && !from;
        break;
    case cudaMemcpyHostToDevice:
        fits = to && !from;
        break;
    case cudaMemcpyDeviceToHost:
        fits = !to && from;
        break;
    case cudaMemcpyDeviceToDevice:
        fits = to && from;
        break;
    case cudaMemcpyDefault:
        fits = true;
        break;
    }
    return fits ? cudaSuccess : cudaErrorInvalidValue;
}

// --- paths ----------------------------------------------------------------------------------------------------------

static cudaError_t copy_inside_host(struct cuda_context *context, const struct cuda_copy *copy)
{
    cudaError_t error = cuda_queue_wait_all(context, copy->queue);
    if (error != cudaSuccess) {
        return error;
    }
    for (uint64_t row = 0; row < copy->rows; row++) {
        memmove(copy->to.host + row * copy->to.pitch, copy->from.host + row * copy->from.pitch, copy->width);
    }
    context->backend.ops->cost(context->backend.ctx, BACKEND_COST_COPY, copy->rows * copy->width);
    return cudaSuccess;
}

// One work item of one GPU: between pinned memory and device memory, or inside device memory.
static cudaError_t copy_direct(struct cuda_context *context, const struct cuda_copy *copy)
{
    bool to_device = copy->to.kind == CUDA_DEVICE, from_device = copy->from.kind == CUDA_DEVICE;
    const struct cuda_side *device = to_device ? &copy->to : &copy->from;
    const struct cuda_side *other = to_device ? &copy->from : &copy->to;
    struct cuda_queue *queue;
    struct backend_gpu_work work = {
        .kind = to_device ? BACKEND_GPU_TO_DEVICE : BACKEND_GPU_TO_HOST,
        .device_address = device->device_address,
        .other_address = other->bus_address,
        .bytes = copy->width,
        .rows = copy->rows,
        .device_pitch = device->pitch,
        .other_pitch = other->pitch,
    };
    if (to_device && from_device) {
        work.kind = BACKEND_GPU_INSIDE;
        work.device_address = copy->to.device_address;
        work.other_address = copy->from.device_address;
    }
    cudaError_t error = cuda_detour_begin(context, copy->queue, device->gpu, &queue);
    if (error == cudaSuccess) {
        error = cuda_submit(context, queue, &work);
    }
    return error == cudaSuccess ? cuda_detour_end(context, copy->queue, queue) : error;
}

static bool is_inside_devices(const struct cuda_copy *copy)
{
    return copy->to.kind == CUDA_DEVICE && copy->from.kind == CUDA_DEVICE;
}

// Pageable memory: the call itself takes part in the copy, even if it is an Async call.
static bool is_staged(const struct cuda_copy *copy)
{
    return copy->to.kind == CUDA_PAGEABLE || copy->from.kind == CUDA_PAGEABLE;
}

static bool is_inside_host(const struct cuda_copy *copy)
{
    return copy->to.kind != CUDA_DEVICE && copy->from.kind != CUDA_DEVICE;
}

static bool wants_sync(const struct cuda_side *side)
{
    return side->kind == CUDA_DEVICE && side->allocation->sync_memops;
}

static bool is_waited_for(const struct cuda_copy *copy)
{
    if (!copy->waits) {
        return false;
    }
    return !is_inside_devices(copy) || wants_sync(&copy->to) || wants_sync(&copy->from);
}

static cudaError_t copy_go(struct cuda_context *context, const struct cuda_copy *copy)
{
    if (is_inside_host(copy)) {
        return copy_inside_host(context, copy);
    }
    if (is_staged(copy)) {
        return cuda_copy_staged(context, copy);
    }
    bool peer = is_inside_devices(copy) && copy->to.gpu != copy->from.gpu;
    return peer ? cuda_copy_peer(context, copy) : copy_direct(context, copy);
}

// A call without a stream is ordered with the default streams of all devices that take part.
static cudaError_t sides_join(struct cuda_context *context, const struct cuda_copy *copy)
{
    cudaError_t error = cudaSuccess;
    if (copy->waits && copy->to.kind == CUDA_DEVICE) {
        error = cuda_submit_after_device(context, copy->queue, copy->to.gpu);
    }
    if (error == cudaSuccess && copy->waits && copy->from.kind == CUDA_DEVICE) {
        error = cuda_submit_after_device(context, copy->queue, copy->from.gpu);
    }
    return error;
}

static cudaError_t side_follow(struct cuda_context *context, const struct cuda_copy *copy, const struct cuda_side *side)
{
    struct cuda_device *device;
    if (!copy->waits || side->kind != CUDA_DEVICE || side->gpu == copy->queue->gpu) {
        return cudaSuccess;
    }
    cudaError_t error = cuda_device_use(context, side->gpu, &device);
    return error == cudaSuccess ? cuda_submit_after(context, device->first, copy->queue, copy->queue->last) : error;
}

static cudaError_t copy_run(struct cuda_context *context, const struct cuda_copy *copy)
{
    const struct backend_gpu_info *info = &context->devices[copy->queue->gpu].info;
    bool waited = is_waited_for(copy);
    cuda_pay_ns(context, waited || is_staged(copy) ? info->copy_call_ns : info->submit_call_ns);
    cudaError_t error = sides_join(context, copy);
    if (error == cudaSuccess) {
        error = copy_go(context, copy);
    }
    if (error == cudaSuccess) {
        error = side_follow(context, copy, &copy->to);
    }
    if (error == cudaSuccess) {
        error = side_follow(context, copy, &copy->from);
    }
    // A staged copy has already waited as long as it must.
    return error == cudaSuccess && waited && !is_staged(copy) ? cuda_wait(context, copy->queue, copy->queue->last)
                                                              : error;
}

// --- calls ----------------------------------------------------------------------------------------------------------

// Rows without gaps are merged into one run.
static void rows_merge(struct cuda_copy *copy)
{
    uint64_t bytes;
    if (copy->to.pitch == copy->width && copy->from.pitch == copy->width &&
        !__builtin_mul_overflow(copy->width, copy->rows, &bytes)) {
        copy->width = copy->to.pitch = copy->from.pitch = bytes;
        copy->rows = 1;
    }
}

static cudaError_t copy_find(struct cuda_context *context, struct cuda_copy *copy, const void *to, const void *from,
                             enum cudaMemcpyKind kind, cudaStream_t stream)
{
    if ((unsigned)kind > cudaMemcpyDefault) {
        return cudaErrorInvalidMemcpyDirection;
    }
    if (copy->rows > 1 && (copy->to.pitch < copy->width || copy->from.pitch < copy->width)) {
        return cudaErrorInvalidPitchValue;
    }
    cudaError_t error = cuda_stream_queue(context, stream, &copy->queue);
    if (error != cudaSuccess || copy->width == 0 || copy->rows == 0) {
        return error;
    }
    rows_merge(copy);
    error = side_find(context, copy, to, &copy->to);
    if (error == cudaSuccess) {
        error = side_find(context, copy, from, &copy->from);
    }
    return error == cudaSuccess ? kind_check(copy, kind) : error;
}

static cudaError_t copy_call(struct cuda_copy *copy, const void *to, const void *from, enum cudaMemcpyKind kind,
                             cudaStream_t stream)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    if (error == cudaSuccess) {
        error = copy_find(context, copy, to, from, kind, stream);
    }
    if (error == cudaSuccess && copy->width != 0 && copy->rows != 0) {
        error = copy_run(context, copy);
    }
    return cuda_leave(context, error);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    struct cuda_copy copy = {.to.pitch = bytes, .from.pitch = bytes, .width = bytes, .rows = 1, .waits = true};
    return copy_call(&copy, to, from, kind, NULL);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    struct cuda_copy copy = {.to.pitch = bytes, .from.pitch = bytes, .width = bytes, .rows = 1};
    return copy_call(&copy, to, from, kind, stream);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind)
{
    struct cuda_copy copy = {
        .to.pitch = to_pitch, .from.pitch = from_pitch, .width = width, .rows = height, .waits = true};
    return copy_call(&copy, to, from, kind, NULL);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    struct cuda_copy copy = {.to.pitch = to_pitch, .from.pitch = from_pitch, .width = width, .rows = height};
    return copy_call(&copy, to, from, kind, stream);
}

static cudaError_t peer_check(const void *pointer, int device)
{
    struct cuda_context *context;
    unsigned gpu;
    uint64_t device_address;
    cudaError_t error = cuda_enter(&context);
    if (error != cudaSuccess) {
        return error;
    }
    if (device < 0 || (unsigned)device >= context->count) {
        return cuda_leave(context, cudaErrorInvalidDevice);
    }
    bool fits = cuda_pointer_device(context, pointer, &gpu, &device_address) && gpu == (unsigned)device;
    return cuda_leave(context, fits ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    cudaError_t error = peer_check(to, to_device);
    if (error == cudaSuccess) {
        error = peer_check(from, from_device);
    }
    return error == cudaSuccess ? cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice) : error;
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream)
{
    cudaError_t error = peer_check(to, to_device);
    if (error == cudaSuccess) {
        error = peer_check(from, from_device);
    }
    return error == cudaSuccess ? cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream) : error;
}
