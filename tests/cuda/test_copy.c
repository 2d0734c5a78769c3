// Copies: every byte, every path, and refusals.
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cuda_fixture.h"

enum { BYTES = 300000, MEMORIES = 5 };

// Memory of every kind, with the contents that it should have.
struct memories {
    struct cuda_fixture *fixture;
    uint8_t *memory[MEMORIES]; // pageable, pinned, device 0, device 0 again, device 1
    uint8_t *expected[MEMORIES];
    uint32_t seed;
};

static void memories_init(struct memories *memories)
{
    *memories = (struct memories){.fixture = cuda_fixture_open(), .seed = 1};
    memories->memory[0] = malloc(BYTES);
    EXPECT_EQ(cudaMallocHost((void **)&memories->memory[1], BYTES), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&memories->memory[2], BYTES), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&memories->memory[3], BYTES), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&memories->memory[4], BYTES), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    for (unsigned i = 0; i < MEMORIES; i++) {
        memories->expected[i] = malloc(BYTES);
        cuda_fixture_fill(memories->expected[i], BYTES, i);
        memcpy(i < 2 ? memories->memory[i] : cuda_fixture_device(memories->fixture, memories->memory[i]),
               memories->expected[i], BYTES);
    }
}

static void memories_check(struct memories *memories)
{
    for (unsigned device = 0; device < 2; device++) {
        EXPECT_EQ(cudaSetDevice((int)device), cudaSuccess);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    for (unsigned i = 0; i < MEMORIES; i++) {
        const uint8_t *memory =
            i < 2 ? memories->memory[i] : cuda_fixture_device(memories->fixture, memories->memory[i]);
        EXPECT_MEMEQ(memory, memories->expected[i], BYTES);
    }
}

static void memories_fini(struct memories *memories)
{
    free(memories->memory[0]);
    for (unsigned i = 0; i < MEMORIES; i++) {
        free(memories->expected[i]);
    }
    cuda_fixture_close(memories->fixture);
}

static uint32_t draw(struct memories *memories, uint32_t below)
{
    memories->seed = memories->seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)memories->seed * below >> 32);
}

static uint32_t draw_other(struct memories *memories, uint32_t than)
{
    uint32_t other = draw(memories, MEMORIES - 1);
    return other >= than ? other + 1 : other;
}

static void copy_some(struct memories *memories)
{
    uint32_t to = draw(memories, MEMORIES), from = draw_other(memories, to);
    uint32_t bytes = draw(memories, draw(memories, 2) != 0 ? BYTES : 5000);
    uint32_t to_at = draw(memories, BYTES - bytes), from_at = draw(memories, BYTES - bytes);
    memcpy(memories->expected[to] + to_at, memories->expected[from] + from_at, bytes);
    EXPECT_EQ(cudaSetDevice((int)draw(memories, 3)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memories->memory[to] + to_at, memories->memory[from] + from_at, bytes, cudaMemcpyDefault),
              cudaSuccess);
}

static void copy_some_rows(struct memories *memories, cudaStream_t stream)
{
    uint32_t to = draw(memories, MEMORIES), from = draw_other(memories, to);
    uint32_t rows = 1 + draw(memories, 20), pitch = BYTES / rows;
    uint32_t width = 1 + draw(memories, pitch - 1);
    uint32_t to_pitch = width + draw(memories, pitch - width), from_pitch = width + draw(memories, pitch - width);
    for (uint32_t row = 0; row < rows; row++) {
        memcpy(memories->expected[to] + row * to_pitch, memories->expected[from] + row * from_pitch, width);
    }
    EXPECT_EQ(cudaSetDevice((int)draw(memories, 2)), cudaSuccess);
    EXPECT_EQ(stream != NULL ? cudaMemcpy2DAsync(memories->memory[to], to_pitch, memories->memory[from], from_pitch,
                                                 width, rows, cudaMemcpyDefault, stream)
                             : cudaMemcpy2D(memories->memory[to], to_pitch, memories->memory[from], from_pitch, width,
                                            rows, cudaMemcpyDefault),
              cudaSuccess);
}

TEST(CudaCopies, LeaveEveryByteRightWhateverTheWay)
{
    struct memories memories;
    memories_init(&memories);
    for (unsigned i = 0; i < 150; i++) {
        copy_some(&memories);
    }
    memories_check(&memories);
    memories_fini(&memories);
}

TEST(CudaCopies, OfRowsLeaveEveryByteRight)
{
    struct memories memories;
    memories_init(&memories);
    for (unsigned i = 0; i < 60; i++) {
        copy_some_rows(&memories, NULL);
    }
    memories_check(&memories);
    memories_fini(&memories);
}

// Copies of one stream run in its order, on any device.
TEST(CudaCopies, OfAStreamKeepItsOrder)
{
    struct memories memories;
    cudaStream_t stream;
    memories_init(&memories);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    for (unsigned i = 0; i < 30; i++) {
        copy_some_rows(&memories, stream);
    }
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    memories_check(&memories);
    memories_fini(&memories);
}

TEST(CudaCopies, TakeTheirKindFromTheAddresses)
{
    struct memories memories;
    memories_init(&memories);
    void *host = memories.memory[0], *pinned = memories.memory[1], *device = memories.memory[2];
    EXPECT_EQ(cudaMemcpy(device, host, 8, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(host, device, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(host, pinned, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(device, host, 8, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(host, device, 8, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(device, host, 8, cudaMemcpyHostToHost), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(pinned, host, 8, cudaMemcpyHostToHost), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(device, host, 8, (enum cudaMemcpyKind)5), cudaErrorInvalidMemcpyDirection);
    EXPECT_EQ(cudaMemcpy(device, host, 8, (enum cudaMemcpyKind) - 1), cudaErrorInvalidMemcpyDirection);
    memories_fini(&memories);
}

TEST(CudaCopies, InsideTheHostTakeTheProcessorAsLongAsAllTheirRows)
{
    enum { WIDTH = 1000, ROWS = 20, PITCH = 1500 };
    struct memories memories;
    memories_init(&memories);
    EXPECT_EQ(cudaMemcpy2D(memories.memory[0], PITCH, memories.memory[1], PITCH, WIDTH, ROWS, cudaMemcpyHostToHost),
              cudaSuccess);
    EXPECT_EQ(memories.fixture->copied_bytes, WIDTH * ROWS);
    memories_fini(&memories);
}

TEST(CudaCopies, StayWithinAnAllocation)
{
    struct memories memories;
    memories_init(&memories);
    uint8_t *host = memories.memory[0], *pinned = memories.memory[1], *device = memories.memory[2];
    EXPECT_EQ(cudaMemcpy(device + 1, host, BYTES, cudaMemcpyDefault), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(host, device + BYTES, 1, cudaMemcpyDefault), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(device, pinned + 1, BYTES, cudaMemcpyDefault), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(device, NULL, 1, cudaMemcpyDefault), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(device, host, SIZE_MAX, cudaMemcpyDefault), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(device, host, 0, cudaMemcpyDefault), cudaSuccess);
    EXPECT_EQ(cudaMemcpy2D(device, 1000, host, 1000, 1001, 2, cudaMemcpyDefault), cudaErrorInvalidPitchValue);
    EXPECT_EQ(cudaMemcpy2D(device, 1001, host, 1000, 1001, 2, cudaMemcpyDefault), cudaErrorInvalidPitchValue);
    EXPECT_EQ(cudaMemcpy2D(device, BYTES, host, 1000, 1000, 2, cudaMemcpyDefault), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy2D(device, SIZE_MAX, host, 1000, 1000, 3, cudaMemcpyDefault), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy2D(device, 1000, host, 1000, 0, 2, cudaMemcpyDefault), cudaSuccess);
    EXPECT_EQ(cudaMemcpy2D(device, 1000, host, 1000, 10, 0, cudaMemcpyDefault), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(device, host, 8, cudaMemcpyDefault, (cudaStream_t)host), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(device, host, 8, cudaMemcpyDefault), cudaErrorInvalidValue);
    EXPECT_EQ(cuda_fixture_work_count(memories.fixture, BACKEND_GPU_TO_DEVICE), 0);
    memories_fini(&memories);
}

TEST(CudaMemset, StaysInOrderWithTheMemorysDevice)
{
    struct memories memories;
    memories_init(&memories);
    EXPECT_EQ(cudaMemset(memories.memory[4], 0x77, BYTES), cudaSuccess); // while device 0 is the current one
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memories.memory[1], memories.memory[4], 4, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(*(uint32_t *)(void *)memories.memory[1], 0x77777777);
    memories_fini(&memories);
}

TEST(CudaMemset, FillsItsBytesAndNoOthers)
{
    struct memories memories;
    memories_init(&memories);
    uint8_t *device = memories.memory[2];
    memset(memories.expected[2] + 7, 0xab, 1001);
    EXPECT_EQ(cudaMemset(device + 7, 0x3ab, 1001), cudaSuccess);
    memset(memories.expected[4], 0x11, BYTES);
    EXPECT_EQ(cudaMemsetAsync(memories.memory[4], 0x11, BYTES, NULL), cudaSuccess); // of another device
    EXPECT_EQ(cudaMemset(device + 1, 0, BYTES), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemset(memories.memory[0], 0, 8), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemset(device, 0, 0), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(device, 0, 8, (cudaStream_t)device), cudaErrorInvalidResourceHandle);
    memories_check(&memories);
    memories_fini(&memories);
}

// 2 us: the processor submits the fill and does not wait for it.
TEST(CudaMemset, TakesTheTimeOfASubmission)
{
    struct memories memories;
    memories_init(&memories);
    uint64_t start_ps = memories.fixture->now_ps;
    EXPECT_EQ(cudaMemset(memories.memory[2], 0, BYTES), cudaSuccess);
    EXPECT_EQ(memories.fixture->now_ps - start_ps, 2000000);
    start_ps = memories.fixture->now_ps;
    EXPECT_EQ(cudaMemsetAsync(memories.memory[2], 0, BYTES, NULL), cudaSuccess);
    EXPECT_EQ(memories.fixture->now_ps - start_ps, 2000000);
    memories_fini(&memories);
}
