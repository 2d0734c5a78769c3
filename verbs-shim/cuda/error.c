// Error codes as text.
#include "verbs-shim/cuda/internal.h"

#define ROW(code, text)                                                                                                \
    {                                                                                                                  \
        code, #code, text                                                                                              \
    }

static const struct {
    cudaError_t code;
    const char *name, *text;
} errors[] = {
    ROW(cudaSuccess, "no error"),
    ROW(cudaErrorInvalidValue, "invalid argument"),
    ROW(cudaErrorMemoryAllocation, "out of memory"),
    ROW(cudaErrorInitializationError, "initialization error"),
    ROW(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ROW(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    ROW(cudaErrorInvalidHostPointer, "invalid host pointer"),
    ROW(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    ROW(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ROW(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    ROW(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ROW(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ROW(cudaErrorInvalidDevice, "invalid device ordinal"),
    ROW(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    ROW(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ROW(cudaErrorNotReady, "device not ready"),
    ROW(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ROW(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    ROW(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    ROW(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    ROW(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    ROW(cudaErrorLaunchFailure, "unspecified launch failure"),
    ROW(cudaErrorNotPermitted, "operation not permitted"),
    ROW(cudaErrorNotSupported, "operation not supported"),
    ROW(cudaErrorUnknown, "unknown error"),
};

#define ERRORS (sizeof errors / sizeof errors[0])

const char *cudaGetErrorString(cudaError_t error)
{
    for (unsigned i = 0; i < ERRORS; i++) {
        if (errors[i].code == error) {
            return errors[i].text;
        }
    }
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t error)
{
    for (unsigned i = 0; i < ERRORS; i++) {
        if (errors[i].code == error) {
            return errors[i].name;
        }
    }
    return "unrecognized error code";
}

// The error of a broken process remains.
static cudaError_t last(bool forget)
{
    struct cuda_context *context = cuda_context_current();
    if (context == NULL) {
        return cudaErrorNoDevice;
    }
    if (context->broken != cudaSuccess) {
        return context->broken;
    }
    cudaError_t error = context->last;
    context->last = forget ? cudaSuccess : error;
    return error;
}

cudaError_t cudaGetLastError(void)
{
    return last(true);
}

cudaError_t cudaPeekAtLastError(void)
{
    return last(false);
}
