// The CUDA runtime calls that communication programs make, on the GPUs of backend.h. Named after the public API and
// written from its public documentation (CUDA 10.2), so that C programs compile.
//
// A device pointer is a number in a range of its GPU, 0x2300000000 + device * 64 GB, and is never dereferenced; so
// every pointer tells where it lies (unified addressing). Memory from cudaMallocHost is pinned and reached by GPUs
// directly; any other memory of the program is pageable, and the library copies it through two pinned bounce buffers,
// the processor filling or emptying one while a GPU copies the other:
//   cudaMemcpy       host to device: up to 64 KB returns when the last byte is staged, more when it is in the device.
//                    To host: when it is there. Device to device: does not wait. Host to host: when done.
//   cudaMemcpyAsync  pinned: does not wait. Pageable: to the device when all is staged, to host when it is there.
//   cudaMemcpyPeer   does not wait, and stays in order with the work of both devices. With peer access enabled in
//                    either direction the source writes to the other GPU; without, copies go through the bounce
//                    buffers, driven by the GPUs.
//   cudaMemset       does not wait, and stays in order with the work of the memory's device.
// The default stream (0) is the legacy one: its work waits for that of the device's other streams, and theirs for it,
// but for streams made with cudaStreamNonBlocking. The current device belongs to the process.
//
// Every call that fails leaves its code for cudaGetLastError. When a GPU could not do its work (an address that nobody
// answers for), every call but cudaGetErrorString, cudaGetErrorName and cudaDeviceReset gives cudaErrorIllegalAddress
// from then on. Without a GPU: cudaErrorNoDevice. Each function lists what else it refuses; an argument that is null or
// a flag that is not known is cudaErrorInvalidValue, an unknown device cudaErrorInvalidDevice, an unknown stream or
// event cudaErrorInvalidResourceHandle.
//
// Left out: kernels but those of tcasim_kernel.h, arrays and textures, managed memory, mapped host memory, callbacks, graphs.
// Calls at the end of this header are known by name: they give cudaErrorNotSupported and say so once on stderr.
#pragma once

#include "driver_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDART_VERSION 10020

// --- errors ---------------------------------------------------------------------------------------------------------

const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetLastError(void);    // and forgets it
cudaError_t cudaPeekAtLastError(void); // and keeps it

// --- devices --------------------------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int *count); // *count 0 with cudaErrorNoDevice
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device); // "0000:02:00.0"
cudaError_t cudaDeviceSynchronize(void);
// Ends everything this process has on the current device: memory, streams, events. Not the pinned host memory.
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);

// Between GPUs behind the same socket.
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
// cudaErrorInvalidDevice (also the device itself), cudaErrorPeerAccessUnsupported, cudaErrorPeerAccessAlreadyEnabled,
// cudaErrorPeerAccessNotEnabled.
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);

// --- memory ---------------------------------------------------------------------------------------------------------

// No bytes: success and NULL. cudaErrorMemoryAllocation.
cudaError_t cudaMalloc(void **pointer, size_t bytes);
// Waits for the device's work. Windows onto the memory (GPUDirect RDMA) close. NULL: success. cudaErrorInvalidValue:
// not what cudaMalloc gave, or freed before.
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMallocHost(void **pointer, size_t bytes);
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
// Pageable memory: cudaErrorInvalidValue.
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer);

// --- copies ---------------------------------------------------------------------------------------------------------

// A kind that the addresses contradict, and a range that does not lie in one allocation, are cudaErrorInvalidValue; no
// such kind: cudaErrorInvalidMemcpyDirection; a pitch below the width: cudaErrorInvalidPitchValue;
// no memory for bounce buffers: cudaErrorMemoryAllocation; a driver without any: cudaErrorInitializationError.
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream);
// A pointer that is not of its device: cudaErrorInvalidValue.
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream);
cudaError_t cudaMemset(void *pointer, int value, size_t bytes); // of device memory
cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream);

// --- streams and events ---------------------------------------------------------------------------------------------

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream); // what is in it still runs
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream); // cudaErrorNotReady
// An event that was never recorded: no wait.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);

cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
// Event and stream of one device: cudaErrorInvalidResourceHandle.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event); // cudaErrorNotReady; success when never recorded
cudaError_t cudaEventSynchronize(cudaEvent_t event);
// cudaErrorInvalidResourceHandle: never recorded, or without timing. cudaErrorNotReady.
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

// A kernel that tcasimKernelRegister knows (tcasim_kernel.h). cudaErrorInvalidDeviceFunction: there is none.
// cudaErrorInvalidConfiguration: a grid or block without threads, a block of more than 1024.
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared_bytes,
                             cudaStream_t stream);

// --- known by name: cudaErrorNotSupported ---------------------------------------------------------------------------

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *pointer);
cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *host_pointer, unsigned flags);
cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags);
cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer);
cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned flags);
cudaError_t cudaIpcCloseMemHandle(void *pointer);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, void (*callback)(cudaStream_t, cudaError_t, void *), void *arg,
                                  unsigned flags);
cudaError_t cudaSetDeviceFlags(unsigned flags);

#ifdef __cplusplus
}
#endif
