// The calls of the driver API.
#include "verbs-shim/cuda/cuda.h"

#include <string.h>

#include "verbs-shim/cuda/internal.h"

static CUresult result_of(cudaError_t error)
{
    return (CUresult)error; // codes that both APIs have are equal
}

CUresult cuInit(unsigned flags)
{
    struct cuda_context *context;
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return result_of(cuda_enter(&context));
}

CUresult cuDriverGetVersion(int *version)
{
    return result_of(cudaDriverGetVersion(version));
}

// The runtime's state is made on first use; if there is none, cuInit was not called.
static CUresult enter(struct cuda_context **context_out)
{
    struct backend_process *process = backend_current();
    if (process == NULL || process->libraries[BACKEND_LIBRARY_CUDA].state == NULL) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    return result_of(cuda_enter(context_out));
}

CUresult cuDeviceGetCount(int *count)
{
    struct cuda_context *context;
    CUresult result = enter(&context);
    if (result == CUDA_SUCCESS && count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *count = (int)context->count;
    }
    return result;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    struct cuda_context *context;
    CUresult result = enter(&context);
    if (result != CUDA_SUCCESS || device == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    if (ordinal < 0 || (unsigned)ordinal >= context->count) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *device = ordinal;
    return CUDA_SUCCESS;
}

// --- pointers -------------------------------------------------------------------------------------------------------

struct pointer_info {
    struct cuda_context *context;
    struct cuda_allocation *allocation; // NULL: pinned host memory
    unsigned gpu;
    void *pointer;
};

static CUresult pointer_find(CUdeviceptr pointer, struct pointer_info *info)
{
    uint64_t device_address;
    CUresult result = enter(&info->context);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    info->pointer = (void *)(uintptr_t)pointer;
    info->allocation = NULL;
    if (cuda_pointer_device(info->context, info->pointer, &info->gpu, &device_address)) {
        info->allocation = cuda_allocation_around(info->context, info->gpu, device_address);
        return info->allocation != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    info->gpu = info->context->current;
    return cuda_pinned_around(info->context, info->pointer) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult tokens_get(void *data, const struct pointer_info *info)
{
    struct cuda_tokens tokens;
    if (!cuda_tokens_of(info->pointer, &tokens)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const CUDA_POINTER_ATTRIBUTE_P2P_TOKENS value = {tokens.p2p, tokens.va_space};
    memcpy(data, &value, sizeof value);
    return CUDA_SUCCESS;
}

static CUresult value_get(void *data, CUpointer_attribute attribute, const struct pointer_info *info)
{
    const struct cuda_allocation *allocation = info->allocation;
    const uint64_t address = (uintptr_t)info->pointer;
    const unsigned kind = allocation != NULL ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    const unsigned sync = allocation != NULL && allocation->sync_memops;
    const uint64_t number = allocation != NULL ? allocation->number : 0;
    const unsigned char managed = 0;
    bool device_only = attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER || attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID;
    if ((device_only && allocation == NULL) || (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER && allocation != NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return CUDA_ERROR_NOT_SUPPORTED;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        memcpy(data, &kind, sizeof kind);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        memcpy(data, &address, sizeof address);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return tokens_get(data, info);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        memcpy(data, &sync, sizeof sync);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        memcpy(data, &number, sizeof number);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        memcpy(data, &managed, sizeof managed);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        memcpy(data, &(int){(int)info->gpu}, sizeof(int));
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    struct pointer_info info;
    CUresult result = pointer_find(pointer, &info);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    return data != NULL ? value_get(data, attribute, &info) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    struct pointer_info info;
    unsigned sync;
    CUresult result = pointer_find(pointer, &info);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (value == NULL || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || info.allocation == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(&sync, value, sizeof sync);
    info.allocation->sync_memops = sync != 0;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer)
{
    struct pointer_info info;
    CUresult result = pointer_find(pointer, &info);
    if (result != CUDA_SUCCESS || info.allocation == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    if (base != NULL) {
        *base = (uintptr_t)cuda_pointer_make(info.gpu, info.allocation->device_address);
    }
    if (bytes != NULL) {
        *bytes = info.allocation->bytes;
    }
    return CUDA_SUCCESS;
}

// --- errors ---------------------------------------------------------------------------------------------------------

#define ROW(code, text)                                                                                                \
    {                                                                                                                  \
        code, #code, text                                                                                              \
    }

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
    ROW(CUDA_SUCCESS, "no error"),
    ROW(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ROW(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ROW(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ROW(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ROW(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ROW(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ROW(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ROW(CUDA_ERROR_UNKNOWN, "unknown error"),
};

static CUresult text_get(CUresult error, const char **text, bool name)
{
    for (unsigned i = 0; text != NULL && i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].code == error) {
            *text = name ? errors[i].name : errors[i].text;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    return text_get(error, name, true);
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    return text_get(error, text, false);
}
