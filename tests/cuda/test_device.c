// Devices, errors, and calls that exist only by name. Numeric values are from the public documentation.
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cuda_fixture.h"

TEST(CudaErrors, HaveThePublicValues)
{
    static const struct {
        int code, value;
        const char *name;
    } known[] = {{cudaErrorInvalidValue, 1, "cudaErrorInvalidValue"},
                 {cudaErrorMemoryAllocation, 2, "cudaErrorMemoryAllocation"},
                 {cudaErrorInvalidPitchValue, 12, "cudaErrorInvalidPitchValue"},
                 {cudaErrorInvalidMemcpyDirection, 21, "cudaErrorInvalidMemcpyDirection"},
                 {cudaErrorNoDevice, 100, "cudaErrorNoDevice"},
                 {cudaErrorInvalidDevice, 101, "cudaErrorInvalidDevice"},
                 {cudaErrorPeerAccessUnsupported, 217, "cudaErrorPeerAccessUnsupported"},
                 {cudaErrorInvalidResourceHandle, 400, "cudaErrorInvalidResourceHandle"},
                 {cudaErrorNotReady, 600, "cudaErrorNotReady"},
                 {cudaErrorIllegalAddress, 700, "cudaErrorIllegalAddress"},
                 {cudaErrorPeerAccessAlreadyEnabled, 704, "cudaErrorPeerAccessAlreadyEnabled"},
                 {cudaErrorPeerAccessNotEnabled, 705, "cudaErrorPeerAccessNotEnabled"},
                 {cudaErrorNotSupported, 801, "cudaErrorNotSupported"}};
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++) {
        EXPECT_EQ(known[i].code, known[i].value);
        EXPECT_STREQ(cudaGetErrorName((cudaError_t)known[i].code), known[i].name);
        EXPECT_GT(strlen(cudaGetErrorString((cudaError_t)known[i].code)), 5);
    }
    EXPECT_STREQ(cudaGetErrorString((cudaError_t)12345), "unrecognized error code");
    EXPECT_STREQ(cudaGetErrorName((cudaError_t)12345), "unrecognized error code");
}

TEST(CudaErrors, StayUntilTheyAreTaken)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(9), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    cuda_fixture_close(fixture);
}

TEST(CudaErrors, OfAGpuStayUntilItsReset)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    void *device, *host;
    EXPECT_EQ(cudaMalloc(&device, 4096), cudaSuccess);
    EXPECT_EQ(cudaMallocHost(&host, 4096), cudaSuccess);
    fixture->fail_next = true;
    EXPECT_EQ(cudaMemcpyAsync(device, host, 4096, cudaMemcpyHostToDevice, NULL), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaMemcpy(device, host, 4096, cudaMemcpyHostToDevice), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaMalloc(&device, 4096), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&device, 4096), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(device, host, 4096, cudaMemcpyHostToDevice), cudaSuccess);
    cuda_fixture_close(fixture);
}

TEST(CudaDevices, AreCountedAndChosen)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    int number = -1;
    EXPECT_EQ(cudaGetDeviceCount(&number), cudaSuccess);
    EXPECT_EQ(number, 3);
    EXPECT_EQ(cudaGetDevice(&number), cudaSuccess);
    EXPECT_EQ(number, 0);
    EXPECT_EQ(cudaSetDevice(2), cudaSuccess);
    EXPECT_EQ(cudaGetDevice(&number), cudaSuccess);
    EXPECT_EQ(number, 2);
    EXPECT_EQ(cudaSetDevice(3), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetDeviceCount(NULL), cudaErrorInvalidValue);
    EXPECT_EQ(cudaGetDevice(NULL), cudaErrorInvalidValue);
    cuda_fixture_close(fixture);
}

TEST(CudaDevices, TellWhatTheyAre)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    struct cudaDeviceProp prop;
    char id[13];
    EXPECT_EQ(cudaGetDeviceProperties(&prop, 1), cudaSuccess);
    EXPECT_STREQ(prop.name, "Fixture");
    EXPECT_EQ(prop.totalGlobalMem, CUDA_FIXTURE_GPU_BYTES);
    EXPECT_EQ(prop.pciBusID, 3);
    EXPECT_EQ(prop.asyncEngineCount, 2);
    EXPECT_EQ(prop.unifiedAddressing, 1);
    EXPECT_EQ(cudaDeviceGetPCIBusId(id, sizeof id, 2), cudaSuccess);
    EXPECT_STREQ(id, "0000:04:00.0");
    EXPECT_EQ(cudaDeviceGetPCIBusId(id, 12, 2), cudaErrorInvalidValue);
    EXPECT_EQ(cudaDeviceGetPCIBusId(NULL, 13, 2), cudaErrorInvalidValue);
    EXPECT_EQ(cudaDeviceGetPCIBusId(id, 13, 3), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetDeviceProperties(&prop, 3), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetDeviceProperties(NULL, 0), cudaErrorInvalidValue);
    cuda_fixture_close(fixture);
}

TEST(CudaDevices, AreNoneWhereThereIsNoGpu)
{
    int count = 7, version = 0;
    void *pointer;
    EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice); // no process at all
    EXPECT_EQ(count, 0);
    struct cuda_fixture *fixture = cuda_fixture_open();
    fixture->gpus = 0;
    EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    EXPECT_EQ(cudaMalloc(&pointer, 16), cudaErrorNoDevice);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNoDevice);
    EXPECT_EQ(cudaDeviceReset(), cudaErrorNoDevice);
    EXPECT_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
    EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
    EXPECT_EQ(version, 10020);
    EXPECT_EQ(cudaDriverGetVersion(NULL), cudaErrorInvalidValue);
    cuda_fixture_close(fixture);
}

TEST(CudaReset, EndsMemoryStreamsAndEvents)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    void *device, *other;
    cudaStream_t stream;
    cudaEvent_t event;
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&other, 4096), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&device, 4096), cudaSuccess);
    EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(device, 1, 4096, stream), cudaSuccess);
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    EXPECT_EQ(cudaFree(device), cudaErrorInvalidValue);
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaMemset(other, 1, 4096), cudaSuccess);
    EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    cuda_fixture_close(fixture);
}

// What the calls write to stderr, in a buffer.
static void stderr_catch(char *text, size_t bytes, void (*calls)(void))
{
    FILE *caught = tmpfile();
    int saved = dup(STDERR_FILENO);
    ASSERT_NOT_NULL(caught);
    ASSERT_GE(saved, 0);
    fflush(stderr);
    dup2(fileno(caught), STDERR_FILENO);
    calls();
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(caught);
    text[fread(text, 1, bytes - 1, caught)] = 0;
    fclose(caught);
}

static void register_twice(void)
{
    EXPECT_EQ(cudaHostRegister(NULL, 8, 0), cudaErrorNotSupported);
    EXPECT_EQ(cudaHostRegister(NULL, 8, 0), cudaErrorNotSupported);
}

TEST(CudaUnsupported, SaysSoOnceInEachProcess)
{
    static const char line[] = "tcasim: cudaHostRegister is not supported and returns cudaErrorNotSupported\n";
    struct cuda_fixture *fixture = cuda_fixture_open();
    char text[512];
    stderr_catch(text, sizeof text, register_twice);
    EXPECT_STREQ(text, line);
    cuda_fixture_process(fixture, 1);
    stderr_catch(text, sizeof text, register_twice);
    EXPECT_STREQ(text, line);
    cuda_fixture_close(fixture);
}

TEST(CudaUnsupported, IsRefusedByName)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    void *pointer;
    size_t pitch;
    cudaIpcMemHandle_t handle = {{0}};
    cudaStream_t stream;
    EXPECT_EQ(cudaHostRegister(&pointer, 8, 0), cudaErrorNotSupported);
    EXPECT_EQ(cudaHostRegister(&pointer, 8, 0), cudaErrorNotSupported);
    EXPECT_EQ(cudaHostUnregister(&pointer), cudaErrorNotSupported);
    EXPECT_EQ(cudaHostGetDevicePointer(&pointer, &pointer, 0), cudaErrorNotSupported);
    EXPECT_EQ(cudaMallocManaged(&pointer, 8, cudaMemAttachGlobal), cudaErrorNotSupported);
    EXPECT_EQ(cudaMallocPitch(&pointer, &pitch, 8, 8), cudaErrorNotSupported);
    EXPECT_EQ(cudaMemset2D(NULL, 8, 0, 8, 8), cudaErrorNotSupported);
    EXPECT_EQ(cudaIpcGetMemHandle(&handle, NULL), cudaErrorNotSupported);
    EXPECT_EQ(cudaIpcOpenMemHandle(&pointer, handle, 0), cudaErrorNotSupported);
    EXPECT_EQ(cudaIpcCloseMemHandle(NULL), cudaErrorNotSupported);
    EXPECT_EQ(cudaStreamCreateWithPriority(&stream, 0, 0), cudaErrorNotSupported);
    EXPECT_EQ(cudaStreamAddCallback(NULL, NULL, NULL, 0), cudaErrorNotSupported);
    EXPECT_EQ(cudaSetDeviceFlags(0), cudaErrorNotSupported);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
    cuda_fixture_close(fixture);
}
