// The CUDA runtime calls that communication programs make, on the GPUs of backend.h. The names are those of the public
// API, and the code is written from its public documentation (CUDA 10.2), so that C programs compile.
//
// A device pointer is a number in a range of its GPU, 0x2300000000 + device * 64 GB, and is never dereferenced; so
// every pointer shows which memory it belongs to (unified addressing). Memory from cudaMallocHost is pinned, and GPUs
// reach it directly; any other memory of the program is pageable, and the library copies it through two pinned bounce
// buffers: the processor fills or empties one while a GPU copies the other:
//   cudaMemcpy       host to device: up to 64 KB returns when the last byte is staged, more when it is in the device.
//                    To host: when it has arrived. Device to device: does not wait. Host to host: when done.
//   cudaMemcpyAsync  pinned: does not wait. Pageable: to device when all is staged, to host when it has arrived.
//   cudaMemcpyPeer   does not wait, and stays in order with the work of both devices. With peer access enabled in
//                    either direction the source writes to the other GPU; without it, copies go through the bounce
//                    buffers, driven by the GPUs.
//   cudaMemset       does not wait, and stays in order with the work of the memory's device.
// The default stream (0) is the legacy one: its work waits for that of the device's other streams, and theirs for it,
// except for streams made with cudaStreamNonBlocking. The current device belongs to the process.
//
// Every call that fails leaves its code for cudaGetLastError. After a GPU could not do its work (an address without an
// answer), every call except cudaGetErrorString, cudaGetErrorName and cudaDeviceReset returns cudaErrorIllegalAddress.
// Without a GPU: cudaErrorNoDevice. Each function lists its other errors; a null argument or an unknown flag is
// cudaErrorInvalidValue, an unknown device cudaErrorInvalidDevice, an unknown stream or event
// cudaErrorInvalidResourceHandle.
//
// Not modelled: kernels except those of tcasim_kernel.h, arrays and textures, managed memory, mapped host memory,
// callbacks, graphs. The calls at the end of this header exist only by name: they return cudaErrorNotSupported and
// report this once on stderr.
#pragma once

#include "driver_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDART_VERSION 10020

// --- errors ---------------------------------------------------------------------------------------------------------

const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetLastError(void);    // and resets it
cudaError_t cudaPeekAtLastError(void); // and keeps it

// --- devices --------------------------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int *count); // *count is 0 with cudaErrorNoDevice
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device); // "0000:02:00.0"
cudaError_t cudaDeviceSynchronize(void);
// Destroys everything that this process has on the current device: memory, streams, events. Pinned host memory remains.
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
// Waits for the device's work. Windows onto the memory (GPUDirect RDMA) are closed. NULL: success.
// cudaErrorInvalidValue: not from cudaMalloc, or already freed.
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMallocHost(void **pointer, size_t bytes);
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
// Pageable memory: cudaErrorInvalidValue.
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer);

// --- copies ---------------------------------------------------------------------------------------------------------

// A kind that the addresses contradict, or a range that is not inside one allocation: cudaErrorInvalidValue; an unknown
// kind: cudaErrorInvalidMemcpyDirection; a pitch below the width: cudaErrorInvalidPitchValue; no memory for bounce
// buffers: cudaErrorMemoryAllocation; a driver without bounce buffers: cudaErrorInitializationError.
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream);
// A pointer that does not belong to its device: cudaErrorInvalidValue.
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream);
cudaError_t cudaMemset(void *pointer, int value, size_t bytes); // device memory only
cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream);

// --- streams and events ---------------------------------------------------------------------------------------------

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream); // its pending work still runs
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream); // cudaErrorNotReady
// Does not wait for an event that was never recorded.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);

cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
// Event and stream must belong to one device: otherwise cudaErrorInvalidResourceHandle.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event); // cudaErrorNotReady; success if never recorded
cudaError_t cudaEventSynchronize(cudaEvent_t event);
// cudaErrorInvalidResourceHandle: never recorded, or created without timing. cudaErrorNotReady.
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

// Launches a kernel registered with tcasimKernelRegister (tcasim_kernel.h). cudaErrorInvalidDeviceFunction: it is not
// registered. cudaErrorInvalidConfiguration: a grid or block without threads, a block of more than 1024.
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
