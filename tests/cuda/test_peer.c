// Copies between GPUs, with and without access to each other.
#include <cuda_runtime.h>
#include <string.h>
#include <tcasim_kernel.h>

#include "tests/support/cuda_fixture.h"

enum { BYTES = 3 * CUDA_FIXTURE_STAGING + 100 };

struct pair {
    struct cuda_fixture *fixture;
    uint8_t *near, *far; // of devices 0 and 1, near filled
};

static void pair_init(struct pair *pair)
{
    pair->fixture = cuda_fixture_open();
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&pair->far, BYTES), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&pair->near, BYTES), cudaSuccess);
    cuda_fixture_fill(cuda_fixture_device(pair->fixture, pair->near), BYTES, 3);
}

static void pair_check(struct pair *pair)
{
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_MEMEQ(cuda_fixture_device(pair->fixture, pair->far), cuda_fixture_device(pair->fixture, pair->near), BYTES);
    EXPECT_EQ(pair->fixture->copied_bytes, 0); // by the processor
}

TEST(CudaPeers, AreThoseBehindTheSameSocket)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    int can = -1;
    EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
    EXPECT_EQ(can, 1);
    EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 2), cudaSuccess);
    EXPECT_EQ(can, 0);
    EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 1, 1), cudaSuccess);
    EXPECT_EQ(can, 0);
    EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 3), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaDeviceCanAccessPeer(&can, -1, 0), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaDeviceCanAccessPeer(NULL, 0, 1), cudaErrorInvalidValue);
    cuda_fixture_close(fixture);
}

TEST(CudaPeers, AreGivenAccessOnce)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(3, 0), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(2, 0), cudaErrorPeerAccessUnsupported);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
    EXPECT_EQ(cudaDeviceDisablePeerAccess(-1), cudaErrorInvalidDevice);
    cuda_fixture_close(fixture);
}

TEST(CudaPeers, AreForgottenAtAReset)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    cuda_fixture_close(fixture);
}

TEST(CudaPeers, WithAccessWriteToEachOther)
{
    struct pair pair;
    pair_init(&pair);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    EXPECT_EQ(cudaMemcpyPeer(pair.far, 1, pair.near, 0, BYTES), cudaSuccess);
    const struct cuda_fixture_work *work = cuda_fixture_work(pair.fixture, BACKEND_GPU_TO_PEER, 0);
    ASSERT_NOT_NULL(work);
    EXPECT_FALSE(work->ended); // does not wait
    EXPECT_EQ(work->work.peer, 1);
    EXPECT_EQ(work->work.bytes, BYTES);
    pair_check(&pair);
    EXPECT_EQ(cuda_fixture_work_count(pair.fixture, BACKEND_GPU_TO_HOST), 0);
    cuda_fixture_close(pair.fixture);
}

TEST(CudaPeers, CopyDirectlyWhicheverOfTheTwoWasGivenAccess)
{
    struct pair pair;
    pair_init(&pair);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaMemcpyPeer(pair.far, 1, pair.near, 0, BYTES), cudaSuccess);
    EXPECT_EQ(cuda_fixture_work_count(pair.fixture, BACKEND_GPU_TO_PEER), 1);
    EXPECT_EQ(cuda_fixture_work_count(pair.fixture, BACKEND_GPU_TO_HOST), 0);
    pair_check(&pair);
    EXPECT_EQ(cudaMemcpyPeer(pair.near, 0, pair.far, 1, BYTES), cudaSuccess);
    EXPECT_EQ(cuda_fixture_work_count(pair.fixture, BACKEND_GPU_TO_PEER), 2);
    cuda_fixture_close(pair.fixture);
}

TEST(CudaPeers, WithoutAccessGoThroughTheHostInPieces)
{
    struct pair pair;
    pair_init(&pair);
    EXPECT_EQ(cudaMemcpyPeer(pair.far, 1, pair.near, 0, BYTES), cudaSuccess);
    EXPECT_EQ(cuda_fixture_work_count(pair.fixture, BACKEND_GPU_TO_PEER), 0);
    EXPECT_EQ(cuda_fixture_work_count(pair.fixture, BACKEND_GPU_TO_HOST), 4);
    EXPECT_EQ(cuda_fixture_work_count(pair.fixture, BACKEND_GPU_TO_DEVICE), 4);
    EXPECT_EQ(cuda_fixture_work(pair.fixture, BACKEND_GPU_TO_HOST, 3)->work.bytes, 100);
    pair_check(&pair);
    // The second piece leaves while the first one arrives.
    EXPECT_LT(cuda_fixture_work(pair.fixture, BACKEND_GPU_TO_HOST, 1)->started_ps,
              cuda_fixture_work(pair.fixture, BACKEND_GPU_TO_DEVICE, 0)->ended_ps);
    cuda_fixture_close(pair.fixture);
}

TEST(CudaPeers, AreStagedAcrossSocketsWhateverIsEnabled)
{
    struct pair pair;
    uint8_t *remote;
    pair_init(&pair);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(2), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&remote, BYTES), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(remote, pair.near, BYTES, cudaMemcpyDefault), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_MEMEQ(cuda_fixture_device(pair.fixture, remote), cuda_fixture_device(pair.fixture, pair.near), BYTES);
    EXPECT_EQ(cuda_fixture_work_count(pair.fixture, BACKEND_GPU_TO_PEER), 0);
    cuda_fixture_close(pair.fixture);
}

// A third device is the current one; the other two have work before and after the copy.
static void stay_in_order(bool direct)
{
    struct pair pair;
    const struct tcasim_kernel kernel = {.duration_ns = 500000};
    uint8_t *pinned;
    pair_init(&pair);
    EXPECT_EQ(direct ? cudaDeviceEnablePeerAccess(1, 0) : cudaSuccess, cudaSuccess);
    EXPECT_EQ(cudaMallocHost((void **)&pinned, BYTES), cudaSuccess);
    EXPECT_EQ(tcasimLaunchKernel(&kernel, NULL), cudaSuccess);
    EXPECT_EQ(cudaMemset(pair.near, 0x5a, BYTES), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(2), cudaSuccess);
    EXPECT_EQ(cudaMemcpyPeer(pair.far, 1, pair.near, 0, BYTES), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaMemset(pair.near, 0, BYTES), cudaSuccess); // after the copy
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(pinned, pair.far, BYTES, cudaMemcpyDeviceToHost), cudaSuccess); // and this one, too
    for (unsigned i = 0; i < BYTES; i++) {
        ASSERT_EQ(pinned[i], 0x5a);
    }
    cuda_fixture_close(pair.fixture);
}

TEST(CudaPeers, StayInOrderWithBothDevices)
{
    stay_in_order(true);
    stay_in_order(false);
}

TEST(CudaPeers, CopyInTheOrderOfAStream)
{
    struct pair pair;
    cudaStream_t stream;
    pair_init(&pair);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(pair.near, 9, BYTES, stream), cudaSuccess);
    EXPECT_EQ(cudaMemcpyPeerAsync(pair.far, 1, pair.near, 0, BYTES, stream), cudaSuccess);
    EXPECT_EQ(cudaMemcpyPeerAsync(pair.near, 0, pair.far, 1, 10, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(cuda_fixture_device(pair.fixture, pair.far)[BYTES - 1], 9);
    pair_check(&pair);
    cuda_fixture_close(pair.fixture);
}

TEST(CudaPeers, MustOwnTheirPointers)
{
    struct pair pair;
    int host;
    pair_init(&pair);
    EXPECT_EQ(cudaMemcpyPeer(pair.far, 0, pair.near, 0, 8), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpyPeer(pair.far, 1, &host, 0, 4), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpyPeer(pair.far, 3, pair.near, 0, 8), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaMemcpyPeerAsync(pair.far, 1, pair.near, -1, 8, NULL), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaMemcpyPeerAsync(pair.far, 1, pair.far, 0, 8, NULL), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpyPeer(pair.far, 1, pair.near, 0, BYTES + 1), cudaErrorInvalidValue);
    cuda_fixture_close(pair.fixture);
}

TEST(CudaPeers, ShareTheBounceBuffersWithPageableCopies)
{
    struct pair pair;
    static uint8_t host[BYTES];
    pair_init(&pair);
    for (unsigned i = 0; i < 5; i++) {
        cuda_fixture_fill(host, BYTES, i);
        EXPECT_EQ(cudaMemcpyPeer(pair.far, 1, pair.near, 0, BYTES), cudaSuccess);
        EXPECT_EQ(cudaMemcpy(pair.near, host, BYTES, cudaMemcpyHostToDevice), cudaSuccess);
    }
    EXPECT_EQ(cudaMemcpyPeer(pair.far, 1, pair.near, 0, BYTES), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_MEMEQ(cuda_fixture_device(pair.fixture, pair.far), host, BYTES);
    cuda_fixture_close(pair.fixture);
}
