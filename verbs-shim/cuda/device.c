// Devices, and access between them.
#include <stdio.h>
#include <string.h>

#include "verbs-shim/cuda/internal.h"

static bool is_device(const struct cuda_context *context, int device)
{
    return device >= 0 && (unsigned)device < context->count;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    if (count == NULL) {
        return cuda_leave(context, cudaErrorInvalidValue);
    }
    *count = context != NULL ? (int)context->count : 0;
    return cuda_leave(context, error);
}

cudaError_t cudaSetDevice(int device)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    if (error == cudaSuccess && !is_device(context, device)) {
        error = cudaErrorInvalidDevice;
    }
    if (error == cudaSuccess) {
        cuda_pay_call(context);
        context->current = (unsigned)device;
    }
    return cuda_leave(context, error);
}

cudaError_t cudaGetDevice(int *device)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    if (error == cudaSuccess && device == NULL) {
        error = cudaErrorInvalidValue;
    }
    if (error == cudaSuccess) {
        *device = (int)context->current;
    }
    return cuda_leave(context, error);
}

static cudaError_t properties_get(struct cuda_context *context, struct cudaDeviceProp *prop, int device)
{
    if (prop == NULL) {
        return cudaErrorInvalidValue;
    }
    if (!is_device(context, device)) {
        return cudaErrorInvalidDevice;
    }
    const struct backend_gpu_info *info = &context->devices[device].info;
    *prop = (struct cudaDeviceProp){
        .totalGlobalMem = info->memory_bytes,
        .major = 3,
        .minor = 5,
        .pciBusID = (int)info->pci_bus,
        .asyncEngineCount = (int)info->copy_engines,
        .deviceOverlap = info->copy_engines != 0,
        .concurrentKernels = 1,
        .unifiedAddressing = 1,
    };
    snprintf(prop->name, sizeof prop->name, "%s", info->name);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : properties_get(context, prop, device));
}

static cudaError_t bus_id_get(struct cuda_context *context, char *id, int bytes, int device)
{
    char text[32];
    if (!is_device(context, device)) {
        return cudaErrorInvalidDevice;
    }
    int length = snprintf(text, sizeof text, "0000:%02x:00.0", (unsigned)context->devices[device].info.pci_bus);
    if (id == NULL || bytes <= length) {
        return cudaErrorInvalidValue;
    }
    memcpy(id, text, (size_t)length + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : bus_id_get(context, id, bytes, device));
}

static cudaError_t version_get(int *version)
{
    struct cuda_context *context = cuda_context_current();
    if (version == NULL) {
        return cuda_leave(context, cudaErrorInvalidValue);
    }
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    return version_get(version);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    return version_get(version);
}

// --- device reset ---------------------------------------------------------------------------------------------------

cudaError_t cudaDeviceSynchronize(void)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    if (error == cudaSuccess) {
        cuda_pay_call(context);
        error = cuda_device_wait(context, context->current);
    }
    return cuda_leave(context, error);
}

cudaError_t cudaDeviceReset(void)
{
    struct cuda_context *context = cuda_context_current();
    if (context == NULL) {
        return cudaErrorNoDevice;
    }
    unsigned gpu = context->current;
    struct cuda_device *device = &context->devices[gpu];
    cuda_pay_ns(context, device->info.manage_call_ns);
    for (struct cuda_queue *queue = device->queues; queue != NULL; queue = queue->next) {
        (void)cuda_wait(context, queue, queue->last); // the failure is dropped with the device's state
    }
    context->broken = context->last = cudaSuccess;
    cudaError_t error = cuda_allocations_drop(context, gpu);
    cuda_streams_drop(context, gpu);
    cuda_events_drop(context, gpu);
    cuda_bounces_forget(context, gpu);
    for (struct cuda_queue *queue = device->queues; queue != NULL; queue = queue->next) {
        (void)context->gpu->queue_destroy(context->backend.ctx, gpu, queue->id);
    }
    cuda_queues_free(device);
    device->peers = 0;
    return cuda_leave(context, error);
}

// --- peers ----------------------------------------------------------------------------------------------------------

static bool can_access(const struct cuda_context *context, int device, int peer)
{
    return device != peer && context->devices[device].info.socket == context->devices[peer].info.socket;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    if (error == cudaSuccess && can == NULL) {
        error = cudaErrorInvalidValue;
    }
    if (error == cudaSuccess && (!is_device(context, device) || !is_device(context, peer))) {
        error = cudaErrorInvalidDevice;
    }
    if (error == cudaSuccess) {
        *can = can_access(context, device, peer);
    }
    return cuda_leave(context, error);
}

static cudaError_t peer_check(const struct cuda_context *context, int peer)
{
    return is_device(context, peer) && (unsigned)peer != context->current ? cudaSuccess : cudaErrorInvalidDevice;
}

static cudaError_t peer_enable(struct cuda_context *context, int peer, unsigned flags)
{
    struct cuda_device *device = &context->devices[context->current];
    cudaError_t error = peer_check(context, peer);
    if (error != cudaSuccess) {
        return error;
    }
    if (flags != 0) {
        return cudaErrorInvalidValue;
    }
    if (!can_access(context, (int)context->current, peer)) {
        return cudaErrorPeerAccessUnsupported;
    }
    if ((device->peers & 1u << peer) != 0) {
        return cudaErrorPeerAccessAlreadyEnabled;
    }
    cuda_pay_ns(context, device->info.manage_call_ns);
    device->peers |= 1u << peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : peer_enable(context, peer, flags));
}

static cudaError_t peer_disable(struct cuda_context *context, int peer)
{
    struct cuda_device *device = &context->devices[context->current];
    cudaError_t error = peer_check(context, peer);
    if (error != cudaSuccess) {
        return error;
    }
    if ((device->peers & 1u << peer) == 0) {
        return cudaErrorPeerAccessNotEnabled;
    }
    cuda_pay_ns(context, device->info.manage_call_ns);
    device->peers &= ~(1u << peer);
    return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : peer_disable(context, peer));
}
