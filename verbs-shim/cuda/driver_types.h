/// @file
/// Types of the CUDA runtime calls in cuda_runtime_api.h. Names and values are those of the public documentation of
/// CUDA 10.2; what a program cannot use here is left out, so that its use does not compile.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What calls return; cuda_runtime_api.h says when. No call returns the values marked "never": they are for programs
/// that name them.
typedef enum cudaError {
    cudaSuccess = 0,                            ///< done
    cudaErrorInvalidValue = 1,                  ///< a wrong argument
    cudaErrorMemoryAllocation = 2,              ///< no memory
    cudaErrorInitializationError = 3,           ///< the driver has no bounce buffers
    cudaErrorInvalidConfiguration = 9,          ///< a wrong grid or block
    cudaErrorInvalidPitchValue = 12,            ///< a pitch below the width
    cudaErrorInvalidHostPointer = 16,           ///< never
    cudaErrorInvalidDevicePointer = 17,         ///< never
    cudaErrorInvalidMemcpyDirection = 21,       ///< an unknown cudaMemcpyKind
    cudaErrorInsufficientDriver = 35,           ///< never
    cudaErrorInvalidDeviceFunction = 98,        ///< a function that is not registered as a kernel
    cudaErrorNoDevice = 100,                    ///< the node has no GPU
    cudaErrorInvalidDevice = 101,               ///< an unknown device
    cudaErrorPeerAccessUnsupported = 217,       ///< GPUs behind different sockets
    cudaErrorInvalidResourceHandle = 400,       ///< an unknown or unfit stream or event
    cudaErrorNotReady = 600,                    ///< work has not ended
    cudaErrorIllegalAddress = 700,              ///< a GPU could not do its work; all later calls return it
    cudaErrorPeerAccessAlreadyEnabled = 704,    ///< access was given before
    cudaErrorPeerAccessNotEnabled = 705,        ///< access was not given
    cudaErrorHostMemoryAlreadyRegistered = 712, ///< never
    cudaErrorHostMemoryNotRegistered = 713,     ///< never
    cudaErrorLaunchFailure = 719,               ///< never
    cudaErrorNotPermitted = 800,                ///< never
    cudaErrorNotSupported = 801,                ///< the call, or this use of it, is not modelled
    cudaErrorUnknown = 999                      ///< an error of the driver without a code of its own
} cudaError_t;

/// Direction of a copy.
enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,     ///< inside host memory
    cudaMemcpyHostToDevice = 1,   ///< to device memory
    cudaMemcpyDeviceToHost = 2,   ///< from device memory
    cudaMemcpyDeviceToDevice = 3, ///< inside a device, or between two
    cudaMemcpyDefault = 4         ///< derived from the addresses
};

/// Kinds of memory.
enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0, ///< never: cudaPointerGetAttributes refuses pageable memory
    cudaMemoryTypeHost = 1,         ///< pinned host memory
    cudaMemoryTypeDevice = 2,       ///< device memory
    cudaMemoryTypeManaged = 3       ///< never
};

/// Result of cudaPointerGetAttributes.
struct cudaPointerAttributes {
    enum cudaMemoryType memoryType; ///< older name of `type`
    enum cudaMemoryType type;       ///< kind of memory
    int device;                     ///< of device memory; for host memory the current device
    void *devicePointer;            ///< NULL for host memory: kernels cannot access it
    void *hostPointer;              ///< NULL for device memory
    int isManaged;                  ///< 0
};

/// Only properties that are known for a simulated GPU.
struct cudaDeviceProp {
    char name[256];        ///< as the scenario's preset says, with a zero at its end
    size_t totalGlobalMem; ///< bytes of device memory
    int major;             ///< 3, of version 3.5: the minimum for GPUDirect RDMA; kernels are not compiled for it
    int minor;             ///< 5, likewise
    int pciBusID;          ///< the bus, as in cudaDeviceGetPCIBusId
    int pciDeviceID;       ///< 0
    int pciDomainID;       ///< 0
    int asyncEngineCount;  ///< number of copy engines
    int deviceOverlap;     ///< 1: there is a copy engine
    int concurrentKernels; ///< 1
    int unifiedAddressing; ///< 1
    int canMapHostMemory;  ///< 0: kernels cannot access host memory
    int managedMemory;     ///< 0
    int integrated;        ///< 0: not part of the host's chip
};

/// The dimensions of a kernel's grid, in blocks, and of its blocks, in threads.
typedef struct dim3 {
    unsigned x; ///< at least 1
    unsigned y; ///< at least 1
    unsigned z; ///< at least 1
#ifdef __cplusplus
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
#endif
} dim3;

typedef struct CUstream_st *cudaStream_t; ///< a stream; opaque; 0 is the default stream of the current device
typedef struct CUevent_st *cudaEvent_t;   ///< an event; opaque

/// For the calls of inter-process memory, which are not modelled.
typedef struct cudaIpcMemHandle_st {
    char reserved[64]; ///< not used
} cudaIpcMemHandle_t;

/// @name Flags of cudaHostAlloc
/// Combined with `|`. None has an effect: all host memory is pinned, for all devices, and not mapped.
/// @{
#define cudaHostAllocDefault       0x00 ///< no flags
#define cudaHostAllocPortable      0x01 ///< accepted
#define cudaHostAllocMapped        0x02 ///< accepted
#define cudaHostAllocWriteCombined 0x04 ///< accepted
/// @}

/// @name Flags of cudaStreamCreateWithFlags, and streams without a name
/// @{
#define cudaStreamDefault     0x00                ///< ordered with the default stream
#define cudaStreamNonBlocking 0x01                ///< not ordered with the default stream
#define cudaStreamLegacy      ((cudaStream_t)0x1) ///< the default stream of the current device
#define cudaStreamPerThread   ((cudaStream_t)0x2) ///< not supported: cudaErrorInvalidResourceHandle
/// @}

/// @name Flags of cudaEventCreateWithFlags
/// Combined with `|`.
/// @{
#define cudaEventDefault       0x00 ///< no flags
#define cudaEventBlockingSync  0x01 ///< accepted, no effect
#define cudaEventDisableTiming 0x02 ///< cudaEventElapsedTime refuses the event
#define cudaEventInterprocess  0x04 ///< not supported: cudaErrorNotSupported
/// @}

#define cudaIpcMemLazyEnablePeerAccess 0x01 ///< of cudaIpcOpenMemHandle, which is not modelled

#define cudaMemAttachGlobal 0x01 ///< of cudaMallocManaged, which is not modelled

#ifdef __cplusplus
}
#endif
