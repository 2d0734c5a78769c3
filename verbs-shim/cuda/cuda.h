/// @file
/// The calls of the CUDA driver API that communication programs make beside the runtime: they classify pointers. The
/// names are those of the public API (CUDA 10.2). Contexts are those of the runtime; cuInit, or any call of the
/// runtime, must come first.
///
/// General errors of every call except cuDriverGetVersion, cuGetErrorName and cuGetErrorString:
/// CUDA_ERROR_NOT_INITIALIZED before that, CUDA_ERROR_NO_DEVICE without a GPU, and CUDA_ERROR_ILLEGAL_ADDRESS after a
/// GPU could not do its work.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The API's version: 10.2.
#define CUDA_VERSION 10020

typedef unsigned long long CUdeviceptr; ///< any address: of device memory, or of the host
typedef int CUdevice;                   ///< number of a device, from 0

/// What calls return.
typedef enum cudaError_enum {
    CUDA_SUCCESS = 0,                 ///< done
    CUDA_ERROR_INVALID_VALUE = 1,     ///< a wrong argument
    CUDA_ERROR_OUT_OF_MEMORY = 2,     ///< never
    CUDA_ERROR_NOT_INITIALIZED = 3,   ///< cuInit, or a call of the runtime, must come first
    CUDA_ERROR_NO_DEVICE = 100,       ///< the node has no GPU
    CUDA_ERROR_INVALID_DEVICE = 101,  ///< an unknown device
    CUDA_ERROR_ILLEGAL_ADDRESS = 700, ///< a GPU could not do its work
    CUDA_ERROR_NOT_SUPPORTED = 801,   ///< the attribute is not modelled
    CUDA_ERROR_UNKNOWN = 999          ///< never
} CUresult;

/// Kinds of memory.
typedef enum CUmemorytype_enum {
    CU_MEMORYTYPE_HOST = 1,  ///< pinned host memory
    CU_MEMORYTYPE_DEVICE = 2 ///< device memory
} CUmemorytype;

/// Attributes of a pointer, with the type of the value.
typedef enum CUpointer_attribute_enum {
    CU_POINTER_ATTRIBUTE_CONTEXT = 1,        ///< CUDA_ERROR_NOT_SUPPORTED
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,    ///< unsigned: a CUmemorytype
    CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3, ///< CUdeviceptr: the pointer, of device memory
    CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,   ///< void *: the pointer, of host memory
    CU_POINTER_ATTRIBUTE_P2P_TOKENS = 5,     ///< CUDA_POINTER_ATTRIBUTE_P2P_TOKENS, of device memory
    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,    ///< unsigned: 1 if set by cuPointerSetAttribute
    CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,      ///< unsigned long long: the number of the allocation, of device memory
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,     ///< unsigned char: 0
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9  ///< int: of device memory; for host memory the current device
} CUpointer_attribute;

/// For gdr_pin_buffer; valid only for this process and device.
typedef struct CUDA_POINTER_ATTRIBUTE_P2P_TOKENS_st {
    unsigned long long p2pToken; ///< opaque
    unsigned int vaSpaceToken;   ///< opaque
} CUDA_POINTER_ATTRIBUTE_P2P_TOKENS;

/// Initialises the library for this process; more calls are allowed.
/// @param flags 0
/// @retval CUDA_SUCCESS done
/// @retval CUDA_ERROR_INVALID_VALUE other flags
/// @return a general error
CUresult cuInit(unsigned flags);
/// The driver's version.
/// @param[out] version CUDA_VERSION
/// @retval CUDA_SUCCESS *version is set
/// @retval CUDA_ERROR_INVALID_VALUE version is null
CUresult cuDriverGetVersion(int *version);
/// The number of GPUs of the node.
/// @param[out] count number of devices
/// @retval CUDA_SUCCESS *count is set
/// @retval CUDA_ERROR_INVALID_VALUE count is null
/// @return a general error
CUresult cuDeviceGetCount(int *count);
/// A device by its number.
/// @param[out] device the same number
/// @param ordinal from 0
/// @retval CUDA_SUCCESS *device is set
/// @retval CUDA_ERROR_INVALID_VALUE device is null
/// @retval CUDA_ERROR_INVALID_DEVICE no such device
/// @return a general error
CUresult cuDeviceGet(CUdevice *device, int ordinal);
/// An attribute of memory.
/// @param[out] data the caller's, of the attribute's type
/// @param attribute which one
/// @param pointer inside an allocation
/// @retval CUDA_SUCCESS *data is set
/// @retval CUDA_ERROR_INVALID_VALUE data is null, pageable memory, freed memory, or an attribute that this kind of
///         memory does not have
/// @retval CUDA_ERROR_NOT_SUPPORTED CU_POINTER_ATTRIBUTE_CONTEXT
/// @return a general error
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer);
/// SYNC_MEMOPS of device memory: from then on, copies and fills of the allocation always wait, except the Async calls.
/// @param value an unsigned; 0: no longer
/// @param attribute CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
/// @param pointer inside an allocation of device memory
/// @retval CUDA_SUCCESS it is set
/// @retval CUDA_ERROR_INVALID_VALUE value is null, another attribute, or no device memory
/// @return a general error
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer);
/// The allocation around a pointer.
/// @param[out] base its first byte; may be NULL
/// @param[out] bytes its size; may be NULL
/// @param pointer inside an allocation of device memory
/// @retval CUDA_SUCCESS both are set
/// @retval CUDA_ERROR_INVALID_VALUE no device memory
/// @return a general error
CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer);
/// The name of a code.
/// @param error a value of CUresult
/// @param[out] name a constant text
/// @retval CUDA_SUCCESS *name is set
/// @retval CUDA_ERROR_INVALID_VALUE name is null, or an unknown code
CUresult cuGetErrorName(CUresult error, const char **name);
/// The meaning of a code.
/// @param error a value of CUresult
/// @param[out] text a constant text
/// @retval CUDA_SUCCESS *text is set
/// @retval CUDA_ERROR_INVALID_VALUE text is null, or an unknown code
CUresult cuGetErrorString(CUresult error, const char **text);

#ifdef __cplusplus
}
#endif
