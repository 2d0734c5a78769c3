/// @file
/// The CUDA runtime calls that communication programs make, on the GPUs of backend.h. The names are those of the public
/// API, and the code is written from its public documentation (CUDA 10.2), so that C programs compile.
///
/// A device pointer is a number in a range of its GPU, 0x2300000000 + device * 64 GB, and is never dereferenced; so
/// every pointer shows which memory it belongs to (unified addressing). Memory from cudaMallocHost is pinned, and GPUs
/// reach it directly; any other memory of the program is pageable, and the library copies it through two pinned bounce
/// buffers: the processor fills or empties one while a GPU copies the other.
/// - cudaMemcpy: host to device: up to 64 KB returns when the last byte is staged, more when it is in the device. To
///   host: when it has arrived. Device to device: does not wait. Host to host: when done.
/// - cudaMemcpyAsync: pinned: does not wait. Pageable: to device when all is staged, to host when it has arrived.
/// - cudaMemcpyPeer: does not wait, and stays in order with the work of both devices. With peer access enabled in
///   either direction the source writes to the other GPU; without it, copies go through the bounce buffers, driven by
///   the GPUs.
/// - cudaMemset: does not wait, and stays in order with the work of the memory's device.
///
/// The default stream (0) is the legacy one: its work waits for that of the device's other streams, and theirs for it,
/// except for streams made with cudaStreamNonBlocking. The current device belongs to the process.
///
/// Errors: every call that fails leaves its code for cudaGetLastError. The general errors, which the functions below do
/// not list again:
/// - cudaErrorNoDevice: the node has no GPU. cudaDriverGetVersion and cudaRuntimeGetVersion do not need one.
/// - cudaErrorIllegalAddress: a GPU could not do its work (an address without an answer). From then on every call
///   returns it, except cudaGetErrorString, cudaGetErrorName, the versions and cudaDeviceReset.
/// - cudaErrorInvalidValue: a null argument or an unknown flag.
/// - cudaErrorInvalidDevice: an unknown device.
/// - cudaErrorInvalidResourceHandle: an unknown stream or event.
/// - cudaErrorMemoryAllocation: no memory for the library's own objects.
///
/// Units: sizes and pitches are bytes; a pitch is the distance of two rows.
///
/// Not modelled: kernels except those of tcasim_kernel.h, arrays and textures, managed memory, mapped host memory,
/// callbacks, graphs. The calls at the end of this header exist only by name.
#pragma once

#include "driver_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The API's version: 10.2.
#define CUDART_VERSION 10020

// --- errors ---------------------------------------------------------------------------------------------------------

/// The meaning of a code.
/// @param error a value of cudaError_t
/// @return a constant text
const char *cudaGetErrorString(cudaError_t error);
/// The name of a code.
/// @param error a value of cudaError_t
/// @return a constant text
const char *cudaGetErrorName(cudaError_t error);
/// The code of the last call of this process that failed, and resets it.
/// @return cudaSuccess: none failed since the last reset
cudaError_t cudaGetLastError(void);
/// The same, and keeps it.
/// @return as cudaGetLastError
cudaError_t cudaPeekAtLastError(void);

// --- devices --------------------------------------------------------------------------------------------------------

/// The number of GPUs of the node.
/// @param[out] count 0 with cudaErrorNoDevice
/// @return cudaSuccess or a general error
cudaError_t cudaGetDeviceCount(int *count);
/// Makes a device the current one of the process.
/// @param device from 0
/// @return cudaSuccess or a general error
cudaError_t cudaSetDevice(int device);
/// The current device.
/// @param[out] device its number
/// @return cudaSuccess or a general error
cudaError_t cudaGetDevice(int *device);
/// The properties of a device.
/// @param[out] prop the caller's
/// @param device from 0
/// @return cudaSuccess or a general error
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
/// The PCI address of a device, such as "0000:02:00.0".
/// @param[out] id the caller's, with a zero at its end
/// @param bytes size of id, 13 at least
/// @param device from 0
/// @retval cudaErrorInvalidValue id is null or too short
/// @return cudaSuccess or a general error
cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device);
/// Waits for all work of the current device.
/// @return cudaSuccess or a general error
cudaError_t cudaDeviceSynchronize(void);
/// Destroys everything that this process has on the current device: memory, streams, events. Pinned host memory
/// remains.
/// @return cudaSuccess or a general error
cudaError_t cudaDeviceReset(void);
/// The driver's version.
/// @param[out] version CUDART_VERSION
/// @return cudaSuccess or a general error
cudaError_t cudaDriverGetVersion(int *version);
/// The runtime's version.
/// @param[out] version CUDART_VERSION
/// @return cudaSuccess or a general error
cudaError_t cudaRuntimeGetVersion(int *version);

/// Asks whether one GPU may access another one's memory.
/// @param[out] can 1: they are behind the same socket
/// @param device from 0
/// @param peer from 0; the device itself: 0
/// @return cudaSuccess or a general error
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
/// Gives the current device access to another one's memory.
/// @param peer the other device
/// @param flags 0
/// @retval cudaErrorInvalidDevice also the current device itself
/// @retval cudaErrorPeerAccessUnsupported GPUs behind different sockets
/// @retval cudaErrorPeerAccessAlreadyEnabled it has access
/// @return cudaSuccess or a general error
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
/// Takes the access back.
/// @param peer the other device
/// @retval cudaErrorInvalidDevice also the current device itself
/// @retval cudaErrorPeerAccessNotEnabled it has no access
/// @return cudaSuccess or a general error
cudaError_t cudaDeviceDisablePeerAccess(int peer);

// --- memory ---------------------------------------------------------------------------------------------------------

/// Allocates memory of the current device. The caller releases it with cudaFree.
/// @param[out] pointer a device pointer; NULL for no bytes
/// @param bytes size
/// @retval cudaErrorMemoryAllocation the device has not that much left
/// @return cudaSuccess or a general error
cudaError_t cudaMalloc(void **pointer, size_t bytes);
/// Releases device memory. Waits for the device's work. Windows onto the memory (GPUDirect RDMA) are closed.
/// @param pointer of cudaMalloc; NULL: nothing to do
/// @retval cudaErrorInvalidValue not from cudaMalloc, or already freed
/// @return cudaSuccess or a general error
cudaError_t cudaFree(void *pointer);
/// Allocates pinned host memory. The caller releases it with cudaFreeHost.
/// @param[out] pointer page-aligned; NULL for no bytes
/// @param bytes size
/// @retval cudaErrorMemoryAllocation no memory
/// @return cudaSuccess or a general error
cudaError_t cudaMallocHost(void **pointer, size_t bytes);
/// The same with flags.
/// @param[out] pointer page-aligned; NULL for no bytes
/// @param bytes size
/// @param flags cudaHostAllocDefault and others; they have no effect
/// @retval cudaErrorMemoryAllocation no memory
/// @return cudaSuccess or a general error
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags);
/// Releases pinned host memory. Waits for the work of all devices.
/// @param pointer of cudaMallocHost or cudaHostAlloc; NULL: nothing to do
/// @retval cudaErrorInvalidValue not from these calls, or already freed
/// @return cudaSuccess or a general error
cudaError_t cudaFreeHost(void *pointer);
/// The memory of the current device.
/// @param[out] free_bytes what is left
/// @param[out] total_bytes its size
/// @return cudaSuccess or a general error
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
/// Says to which memory a pointer belongs.
/// @param[out] attributes the caller's
/// @param pointer any address
/// @retval cudaErrorInvalidValue pageable or freed memory
/// @return cudaSuccess or a general error
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer);

// --- copies ---------------------------------------------------------------------------------------------------------
// The list at the top of this file says when each returns. No bytes, or no rows: nothing to do.

/// A copy.
/// @param to destination
/// @param from source
/// @param bytes size
/// @param kind must fit the addresses
/// @retval cudaErrorInvalidValue a kind that the addresses contradict, or a range that is not inside one allocation
/// @retval cudaErrorInvalidMemcpyDirection an unknown kind
/// @retval cudaErrorMemoryAllocation no memory for bounce buffers
/// @retval cudaErrorInitializationError a driver without bounce buffers
/// @return cudaSuccess or a general error
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
/// A copy in the order of a stream.
/// @param to,from,bytes,kind as for cudaMemcpy
/// @param stream orders the copy
/// @return as cudaMemcpy
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream);
/// A copy of rows.
/// @param to,from,kind as for cudaMemcpy
/// @param to_pitch of the destination
/// @param from_pitch of the source
/// @param width bytes of a row
/// @param height rows
/// @retval cudaErrorInvalidPitchValue a pitch below the width, with more than one row
/// @return as cudaMemcpy
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind);
/// A copy of rows in the order of a stream.
/// @param to,to_pitch,from,from_pitch,width,height,kind as for cudaMemcpy2D
/// @param stream orders the copy
/// @return as cudaMemcpy2D
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream);
/// A copy between devices.
/// @param to device memory of to_device
/// @param to_device from 0
/// @param from device memory of from_device
/// @param from_device from 0
/// @param bytes size
/// @retval cudaErrorInvalidValue a pointer that does not belong to its device
/// @return as cudaMemcpy
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes);
/// A copy between devices in the order of a stream.
/// @param to,to_device,from,from_device,bytes as for cudaMemcpyPeer
/// @param stream orders the copy
/// @return as cudaMemcpyPeer
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream);
/// Fills device memory.
/// @param pointer device memory
/// @param value of each byte: its low 8 bits
/// @param bytes size
/// @retval cudaErrorInvalidValue other memory, or a range that is not inside one allocation
/// @return cudaSuccess or a general error
cudaError_t cudaMemset(void *pointer, int value, size_t bytes);
/// Fills device memory in the order of a stream.
/// @param pointer,value,bytes as for cudaMemset
/// @param stream orders the fill
/// @return as cudaMemset
cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream);

// --- streams and events ---------------------------------------------------------------------------------------------

/// Makes a stream of the current device. The caller destroys it with cudaStreamDestroy.
/// @param[out] stream the new one
/// @return cudaSuccess or a general error
cudaError_t cudaStreamCreate(cudaStream_t *stream);
/// The same with flags.
/// @param[out] stream the new one
/// @param flags cudaStreamDefault or cudaStreamNonBlocking
/// @return cudaSuccess or a general error
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
/// Destroys a stream. Its pending work still runs.
/// @param stream not the default one
/// @return cudaSuccess or a general error
cudaError_t cudaStreamDestroy(cudaStream_t stream);
/// Waits for a stream's work.
/// @param stream 0: the default stream, and all streams that are ordered with it
/// @return cudaSuccess or a general error
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
/// Asks whether cudaStreamSynchronize would wait.
/// @param stream as for cudaStreamSynchronize
/// @retval cudaSuccess its work has ended
/// @retval cudaErrorNotReady it has not
/// @return a general error
cudaError_t cudaStreamQuery(cudaStream_t stream);
/// Later work of a stream waits for an event; the program does not. An event that was never recorded is not waited for.
/// @param stream of any device
/// @param event of any device
/// @param flags 0
/// @return cudaSuccess or a general error
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);

/// Makes an event of the current device. The caller destroys it with cudaEventDestroy.
/// @param[out] event the new one
/// @return cudaSuccess or a general error
cudaError_t cudaEventCreate(cudaEvent_t *event);
/// The same with flags.
/// @param[out] event the new one
/// @param flags cudaEventDefault and others
/// @retval cudaErrorNotSupported cudaEventInterprocess
/// @return cudaSuccess or a general error
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
/// Destroys an event. What waits for it still does.
/// @param event of cudaEventCreate
/// @return cudaSuccess or a general error
cudaError_t cudaEventDestroy(cudaEvent_t event);
/// Records an event: it ends when all earlier work of the stream has ended.
/// @param event of the stream's device
/// @param stream 0: the default stream of the current device
/// @retval cudaErrorInvalidResourceHandle also if event and stream belong to different devices
/// @return cudaSuccess or a general error
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
/// Asks whether an event has ended.
/// @param event of cudaEventCreate
/// @retval cudaSuccess it has, or it was never recorded
/// @retval cudaErrorNotReady it has not
/// @return a general error
cudaError_t cudaEventQuery(cudaEvent_t event);
/// Waits for an event; not if it was never recorded.
/// @param event of cudaEventCreate
/// @return cudaSuccess or a general error
cudaError_t cudaEventSynchronize(cudaEvent_t event);
/// The simulated time between two events.
/// @param[out] ms milliseconds
/// @param start the earlier event
/// @param end the later event
/// @retval cudaErrorInvalidResourceHandle also if one was never recorded, or was created without timing
/// @retval cudaErrorNotReady one has not ended
/// @return cudaSuccess or a general error
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

/// Launches a kernel registered with tcasimKernelRegister (tcasim_kernel.h). Does not wait.
/// @param function as given to tcasimKernelRegister
/// @param grid blocks
/// @param block threads of a block
/// @param args pointers to the kernel's arguments, which are copied; may be NULL if it has none
/// @param shared_bytes passed to the kernel
/// @param stream of the current device
/// @retval cudaErrorInvalidDeviceFunction the function is not registered
/// @retval cudaErrorNotSupported a kernel with an effect, with `tcasim exec --functional`
/// @retval cudaErrorInvalidConfiguration a grid or block without threads, a block of more than 1024, or dimensions
///         beyond those of compute capability 3.0
/// @retval cudaErrorInvalidResourceHandle also a stream of another device
/// @return cudaSuccess or a general error
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared_bytes,
                             cudaStream_t stream);

// --- known by name --------------------------------------------------------------------------------------------------

// They do nothing, and report this once on stderr.

/// Not modelled.
/// @param pointer,bytes,flags not used
/// @return cudaErrorNotSupported, or cudaErrorNoDevice
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags);
/// Not modelled.
/// @param pointer not used
/// @return cudaErrorNotSupported, or cudaErrorNoDevice
cudaError_t cudaHostUnregister(void *pointer);
/// Not modelled.
/// @param device_pointer,host_pointer,flags not used
/// @return cudaErrorNotSupported, or cudaErrorNoDevice
cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *host_pointer, unsigned flags);
/// Not modelled.
/// @param pointer,bytes,flags not used
/// @return cudaErrorNotSupported, or cudaErrorNoDevice
cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags);
/// Not modelled.
/// @param pointer,pitch,width,height not used
/// @return cudaErrorNotSupported, or cudaErrorNoDevice
cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
/// Not modelled.
/// @param pointer,pitch,value,width,height not used
/// @return cudaErrorNotSupported, or cudaErrorNoDevice
cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height);
/// Not modelled.
/// @param handle,pointer not used
/// @return cudaErrorNotSupported, or cudaErrorNoDevice
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer);
/// Not modelled.
/// @param pointer,handle,flags not used
/// @return cudaErrorNotSupported, or cudaErrorNoDevice
cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned flags);
/// Not modelled.
/// @param pointer not used
/// @return cudaErrorNotSupported, or cudaErrorNoDevice
cudaError_t cudaIpcCloseMemHandle(void *pointer);
/// Not modelled.
/// @param stream,flags,priority not used
/// @return cudaErrorNotSupported, or cudaErrorNoDevice
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
/// Not modelled.
/// @param stream,callback,arg,flags not used
/// @return cudaErrorNotSupported, or cudaErrorNoDevice
cudaError_t cudaStreamAddCallback(cudaStream_t stream, void (*callback)(cudaStream_t, cudaError_t, void *), void *arg,
                                  unsigned flags);
/// Not modelled.
/// @param flags not used
/// @return cudaErrorNotSupported, or cudaErrorNoDevice
cudaError_t cudaSetDeviceFlags(unsigned flags);

#ifdef __cplusplus
}
#endif
