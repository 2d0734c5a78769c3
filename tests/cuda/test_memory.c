// Allocation and pointers.
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdlib.h>
#include <tcasim_kernel.h>

#include "tests/support/cuda_fixture.h"

TEST(CudaMalloc, GivesAddressesOfTheDevicesRange)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    void *first, *second, *other;
    EXPECT_EQ(cudaMalloc(&first, 1000), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&second, 1000), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(2), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&other, 1000), cudaSuccess);
    EXPECT_EQ((uintptr_t)first, 0x2300000000);
    EXPECT_EQ((uintptr_t)second, 0x2300000400);
    EXPECT_EQ((uintptr_t)other, 0x4300000000);
    EXPECT_EQ(cudaFree(first), cudaSuccess); // on another device than the current one
    cuda_fixture_close(fixture);
}

TEST(CudaMalloc, RefusesWhatDoesNotFit)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    void *pointer = &pointer;
    size_t free_bytes, total_bytes;
    EXPECT_EQ(cudaMalloc(NULL, 16), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMalloc(&pointer, CUDA_FIXTURE_GPU_BYTES + 1), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaMalloc(&pointer, 0), cudaSuccess);
    EXPECT_NULL(pointer);
    EXPECT_EQ(cudaMalloc(&pointer, 4096), cudaSuccess);
    EXPECT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    EXPECT_EQ(free_bytes, CUDA_FIXTURE_GPU_BYTES - 4096);
    EXPECT_EQ(total_bytes, CUDA_FIXTURE_GPU_BYTES);
    EXPECT_EQ(cudaMemGetInfo(NULL, &total_bytes), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemGetInfo(&free_bytes, NULL), cudaErrorInvalidValue);
    cuda_fixture_close(fixture);
}

TEST(CudaFree, TakesWhatCudaMallocGaveOnce)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    char *pointer, *again;
    int host;
    EXPECT_EQ(cudaMalloc((void **)&pointer, 4096), cudaSuccess);
    EXPECT_EQ(cudaFree(NULL), cudaSuccess);
    EXPECT_EQ(cudaFree(pointer + 256), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree(&host), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree(pointer), cudaSuccess);
    EXPECT_EQ(cudaFree(pointer), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMalloc((void **)&again, 4096), cudaSuccess);
    EXPECT_EQ(again, pointer);
    cuda_fixture_close(fixture);
}

TEST(CudaFree, WaitsForTheDevicesWork)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    void *device, *host;
    EXPECT_EQ(cudaMalloc(&device, 4096), cudaSuccess);
    EXPECT_EQ(cudaMallocHost(&host, 4096), cudaSuccess);
    cuda_fixture_fill(cuda_fixture_device(fixture, device), 4096, 1);
    EXPECT_EQ(cudaMemcpyAsync(host, device, 4096, cudaMemcpyDeviceToHost, NULL), cudaSuccess);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    EXPECT_TRUE(cuda_fixture_work(fixture, BACKEND_GPU_TO_HOST, 0)->ended);
    EXPECT_EQ(cudaMalloc(&device, 4096), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(device, host, 4096, cudaMemcpyHostToDevice, NULL), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
    EXPECT_TRUE(cuda_fixture_work(fixture, BACKEND_GPU_TO_DEVICE, 0)->ended);
    cuda_fixture_close(fixture);
}

TEST(CudaFreeHost, WaitsForTheWorkOfAllDevices)
{
    static const struct tcasim_kernel long_kernel = {.duration_ns = 1000000};
    struct cuda_fixture *fixture = cuda_fixture_open();
    void *device, *host;
    EXPECT_EQ(cudaMallocHost(&host, 4096), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&device, 4096), cudaSuccess);
    EXPECT_EQ(tcasimLaunchKernel(&long_kernel, NULL), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(host, device, 4096, cudaMemcpyDeviceToHost, NULL), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
    EXPECT_TRUE(cuda_fixture_work(fixture, BACKEND_GPU_TO_HOST, 0)->ended);
    cuda_fixture_close(fixture);
}

TEST(CudaHostMemory, IsPinnedAndGivenBack)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    char *pointer, *flagged;
    EXPECT_EQ(cudaMallocHost((void **)&pointer, 5000), cudaSuccess);
    EXPECT_EQ(cudaHostAlloc((void **)&flagged, 64, cudaHostAllocPortable | cudaHostAllocWriteCombined), cudaSuccess);
    EXPECT_EQ(fixture->pinned_live, 2);
    EXPECT_EQ(cudaHostAlloc((void **)&flagged, 64, 0x100), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMallocHost(NULL, 64), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFreeHost(pointer + 8), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFreeHost(NULL), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pointer), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pointer), cudaErrorInvalidValue);
    EXPECT_EQ(fixture->pinned_live, 1);
    fixture->no_pinned = true;
    EXPECT_EQ(cudaMallocHost((void **)&pointer, 64), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaMallocHost((void **)&pointer, 0), cudaSuccess);
    EXPECT_NULL(pointer);
    cuda_fixture_close(fixture);
}

TEST(CudaPointers, TellWhereTheyLie)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    struct cudaPointerAttributes attributes;
    char *device, *host, pageable;
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&device, 4096), cudaSuccess);
    EXPECT_EQ(cudaMallocHost((void **)&host, 4096), cudaSuccess);
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, device + 100), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
    EXPECT_EQ(attributes.device, 1);
    EXPECT_EQ(attributes.devicePointer, device + 100);
    EXPECT_NULL(attributes.hostPointer);
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, host + 100), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
    EXPECT_EQ(attributes.hostPointer, host + 100);
    EXPECT_NULL(attributes.devicePointer);
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, &pageable), cudaErrorInvalidValue);
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, device + 4096), cudaErrorInvalidValue);
    EXPECT_EQ(cudaPointerGetAttributes(NULL, device), cudaErrorInvalidValue);
    cuda_fixture_close(fixture);
}

TEST(CudaDriverApi, ComesAfterCuInit)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    int number = 0;
    unsigned type;
    EXPECT_EQ(cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDeviceGetCount(&number), CUDA_SUCCESS);
    EXPECT_EQ(number, 3);
    EXPECT_EQ(cuDeviceGetCount(NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuDeviceGet(&number, 2), CUDA_SUCCESS);
    EXPECT_EQ(number, 2);
    EXPECT_EQ(cuDeviceGet(&number, 3), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(cuDeviceGet(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuDriverGetVersion(&number), CUDA_SUCCESS);
    EXPECT_EQ(number, 10020);
    cuda_fixture_close(fixture);
}

TEST(CudaDriverApi, TellsOfErrorsByName)
{
    const char *text = NULL;
    EXPECT_EQ(cuGetErrorName(CUDA_ERROR_INVALID_DEVICE, &text), CUDA_SUCCESS);
    EXPECT_STREQ(text, "CUDA_ERROR_INVALID_DEVICE");
    EXPECT_EQ(cuGetErrorString(CUDA_ERROR_INVALID_DEVICE, &text), CUDA_SUCCESS);
    EXPECT_STREQ(text, "invalid device ordinal");
    EXPECT_EQ(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
}

TEST(CudaPointerAttribute, TellsOfDeviceMemory)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    char *device, *second;
    uint64_t value = 0, other = 0;
    EXPECT_EQ(cudaSetDevice(2), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&device, 4096), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&second, 4096), cudaSuccess);
    CUdeviceptr at = (uintptr_t)device + 8;
    EXPECT_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at), CUDA_SUCCESS);
    EXPECT_EQ(value, CU_MEMORYTYPE_DEVICE);
    EXPECT_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at), CUDA_SUCCESS);
    EXPECT_EQ(value, 2);
    EXPECT_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at), CUDA_SUCCESS);
    EXPECT_EQ(value, at);
    EXPECT_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_BUFFER_ID, at), CUDA_SUCCESS);
    EXPECT_EQ(cuPointerGetAttribute(&other, CU_POINTER_ATTRIBUTE_BUFFER_ID, (uintptr_t)second), CUDA_SUCCESS);
    EXPECT_NE(value, 0);
    EXPECT_NE(value, other);
    EXPECT_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_HOST_POINTER, at), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_CONTEXT, at), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_BUFFER_ID, at), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuPointerGetAttribute(&value, (CUpointer_attribute)77, at), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    EXPECT_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_BUFFER_ID, at), CUDA_ERROR_INVALID_VALUE);
    cuda_fixture_close(fixture);
}

TEST(CudaPointerAttribute, TellsOfPinnedHostMemory)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    char *host, pageable;
    uint64_t value = 0;
    EXPECT_EQ(cudaMallocHost((void **)&host, 4096), cudaSuccess);
    CUdeviceptr at = (uintptr_t)host + 8;
    EXPECT_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at), CUDA_SUCCESS);
    EXPECT_EQ(value, CU_MEMORYTYPE_HOST);
    EXPECT_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_HOST_POINTER, at), CUDA_SUCCESS);
    EXPECT_EQ(value, at);
    EXPECT_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_BUFFER_ID, at), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_P2P_TOKENS, at), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&pageable),
              CUDA_ERROR_INVALID_VALUE);
    cuda_fixture_close(fixture);
}

TEST(CudaPointerAttribute, NamesTheAllocationAround)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    char *device, *host;
    CUdeviceptr base = 0;
    size_t bytes = 0;
    EXPECT_EQ(cudaMalloc((void **)&device, 5000), cudaSuccess);
    EXPECT_EQ(cudaMallocHost((void **)&host, 64), cudaSuccess);
    EXPECT_EQ(cuMemGetAddressRange(&base, &bytes, (uintptr_t)device + 4999), CUDA_SUCCESS);
    EXPECT_EQ(base, (uintptr_t)device);
    EXPECT_EQ(bytes, 5000);
    EXPECT_EQ(cuMemGetAddressRange(&base, &bytes, (uintptr_t)device + 5000), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemGetAddressRange(&base, &bytes, (uintptr_t)host), CUDA_ERROR_INVALID_VALUE);
    cuda_fixture_close(fixture);
}

TEST(CudaPointerAttribute, MakesFillsAndCopiesWait)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    char *device;
    unsigned on = 1, is_on = 0;
    EXPECT_EQ(cudaMalloc((void **)&device, 8192), cudaSuccess);
    EXPECT_EQ(cudaMemset(device, 1, 4096), cudaSuccess);
    EXPECT_FALSE(cuda_fixture_work(fixture, BACKEND_GPU_SET, 0)->ended);
    EXPECT_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (uintptr_t)device), CUDA_SUCCESS);
    EXPECT_EQ(cuPointerGetAttribute(&is_on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (uintptr_t)device), CUDA_SUCCESS);
    EXPECT_EQ(is_on, 1);
    EXPECT_EQ(cudaMemset(device, 2, 4096), cudaSuccess);
    EXPECT_TRUE(cuda_fixture_work(fixture, BACKEND_GPU_SET, 1)->ended);
    EXPECT_EQ(cudaMemcpy(device + 4096, device, 4096, cudaMemcpyDeviceToDevice), cudaSuccess);
    EXPECT_TRUE(cuda_fixture_work(fixture, BACKEND_GPU_INSIDE, 0)->ended);
    EXPECT_EQ(cudaMemsetAsync(device, 3, 4096, NULL), cudaSuccess);
    EXPECT_FALSE(cuda_fixture_work(fixture, BACKEND_GPU_SET, 2)->ended);
    EXPECT_EQ(cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (uintptr_t)device),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_BUFFER_ID, (uintptr_t)device), CUDA_ERROR_INVALID_VALUE);
    cuda_fixture_close(fixture);
}

TEST(CudaPointerAttribute, MakesACopyWaitOnWhicheverSideItIs)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    char *waiting, *other;
    unsigned on = 1;
    EXPECT_EQ(cudaMalloc((void **)&waiting, 4096), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&other, 4096), cudaSuccess);
    EXPECT_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (uintptr_t)waiting), CUDA_SUCCESS);
    EXPECT_EQ(cudaMemcpy(other, waiting, 4096, cudaMemcpyDeviceToDevice), cudaSuccess);
    EXPECT_TRUE(cuda_fixture_work(fixture, BACKEND_GPU_INSIDE, 0)->ended);
    EXPECT_EQ(cudaMemcpy(waiting, other, 4096, cudaMemcpyDeviceToDevice), cudaSuccess);
    EXPECT_TRUE(cuda_fixture_work(fixture, BACKEND_GPU_INSIDE, 1)->ended);
    cuda_fixture_close(fixture);
}

TEST(CudaPointerAttribute, LetsFillsReturnAtOnceAgainWhenSwitchedOff)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    char *device;
    unsigned value = 1;
    EXPECT_EQ(cudaMalloc((void **)&device, 4096), cudaSuccess);
    EXPECT_EQ(cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (uintptr_t)device), CUDA_SUCCESS);
    value = 0;
    EXPECT_EQ(cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (uintptr_t)device), CUDA_SUCCESS);
    value = 1;
    EXPECT_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (uintptr_t)device), CUDA_SUCCESS);
    EXPECT_EQ(value, 0);
    EXPECT_EQ(cudaMemset(device, 2, 4096), cudaSuccess);
    EXPECT_FALSE(cuda_fixture_work(fixture, BACKEND_GPU_SET, 0)->ended);
    cuda_fixture_close(fixture);
}

TEST(CudaProcesses, DoNotSeeEachOthersMemory)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    void *mine, *theirs;
    int device = -1;
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&mine, 4096), cudaSuccess);
    cuda_fixture_process(fixture, 1);
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 0);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&theirs, 4096), cudaSuccess);
    EXPECT_NE(mine, theirs);
    EXPECT_EQ(cudaMemset(mine, 1, 4096), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree(mine), cudaErrorInvalidValue);
    cuda_fixture_process(fixture, 0);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_EQ(cudaFree(theirs), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree(mine), cudaSuccess);
    cuda_fixture_close(fixture);
}

TEST(CudaProcesses, StartAfreshWhenOneHasEnded)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    void *pointer;
    int device = -1;
    EXPECT_EQ(cudaSetDevice(2), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&pointer, 4096), cudaSuccess);
    EXPECT_EQ(cudaMemset(NULL, 0, 8), cudaErrorInvalidValue);
    cuda_fixture_process_end(fixture, 0);
    cuda_fixture_process(fixture, 0);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 0);
    EXPECT_EQ(cudaFree(pointer), cudaErrorInvalidValue);
    cuda_fixture_close(fixture);
}
