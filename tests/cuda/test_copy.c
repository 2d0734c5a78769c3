// Copies: every byte, every way, and what is refused.
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cuda_fixture.h"

enum { BYTES = 300000, PLACES = 5 };

// Memory of every kind, with a copy of what it should hold.
struct places {
    struct cuda_fixture *fixture;
    uint8_t *memory[PLACES]; // pageable, pinned, device 0, device 0 again, device 1
    uint8_t *expected[PLACES];
    uint32_t seed;
};

static void places_init(struct places *places)
{
    *places = (struct places){.fixture = cuda_fixture_open(), .seed = 1};
    places->memory[0] = malloc(BYTES);
    EXPECT_EQ(cudaMallocHost((void **)&places->memory[1], BYTES), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&places->memory[2], BYTES), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&places->memory[3], BYTES), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&places->memory[4], BYTES), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    for (unsigned i = 0; i < PLACES; i++) {
        places->expected[i] = malloc(BYTES);
        cuda_fixture_fill(places->expected[i], BYTES, i);
        memcpy(i < 2 ? places->memory[i] : cuda_fixture_device(places->fixture, places->memory[i]), places->expected[i],
               BYTES);
    }
}

static void places_check(struct places *places)
{
    for (unsigned device = 0; device < 2; device++) {
        EXPECT_EQ(cudaSetDevice((int)device), cudaSuccess);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    for (unsigned i = 0; i < PLACES; i++) {
        const uint8_t *memory = i < 2 ? places->memory[i] : cuda_fixture_device(places->fixture, places->memory[i]);
        EXPECT_MEMEQ(memory, places->expected[i], BYTES);
    }
}

static void places_fini(struct places *places)
{
    free(places->memory[0]);
    for (unsigned i = 0; i < PLACES; i++) {
        free(places->expected[i]);
    }
    cuda_fixture_close(places->fixture);
}

static uint32_t draw(struct places *places, uint32_t below)
{
    places->seed = places->seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)places->seed * below >> 32);
}

static uint32_t draw_other(struct places *places, uint32_t than)
{
    uint32_t other = draw(places, PLACES - 1);
    return other >= than ? other + 1 : other;
}

static void copy_some(struct places *places)
{
    uint32_t to = draw(places, PLACES), from = draw_other(places, to);
    uint32_t bytes = draw(places, draw(places, 2) != 0 ? BYTES : 5000);
    uint32_t to_at = draw(places, BYTES - bytes), from_at = draw(places, BYTES - bytes);
    memcpy(places->expected[to] + to_at, places->expected[from] + from_at, bytes);
    EXPECT_EQ(cudaSetDevice((int)draw(places, 3)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(places->memory[to] + to_at, places->memory[from] + from_at, bytes, cudaMemcpyDefault),
              cudaSuccess);
}

static void copy_some_rows(struct places *places, cudaStream_t stream)
{
    uint32_t to = draw(places, PLACES), from = draw_other(places, to);
    uint32_t rows = 1 + draw(places, 20), pitch = BYTES / rows;
    uint32_t width = 1 + draw(places, pitch - 1);
    uint32_t to_pitch = width + draw(places, pitch - width), from_pitch = width + draw(places, pitch - width);
    for (uint32_t row = 0; row < rows; row++) {
        memcpy(places->expected[to] + row * to_pitch, places->expected[from] + row * from_pitch, width);
    }
    EXPECT_EQ(cudaSetDevice((int)draw(places, 2)), cudaSuccess);
    EXPECT_EQ(stream != NULL ? cudaMemcpy2DAsync(places->memory[to], to_pitch, places->memory[from], from_pitch, width,
                                                 rows, cudaMemcpyDefault, stream)
                             : cudaMemcpy2D(places->memory[to], to_pitch, places->memory[from], from_pitch, width, rows,
                                            cudaMemcpyDefault),
              cudaSuccess);
}

TEST(CudaCopies, LeaveEveryByteRightWhateverTheWay)
{
    struct places places;
    places_init(&places);
    for (unsigned i = 0; i < 150; i++) {
        copy_some(&places);
    }
    places_check(&places);
    places_fini(&places);
}

TEST(CudaCopies, OfRowsLeaveEveryByteRight)
{
    struct places places;
    places_init(&places);
    for (unsigned i = 0; i < 60; i++) {
        copy_some_rows(&places, NULL);
    }
    places_check(&places);
    places_fini(&places);
}

// Every copy in the order of one stream, whichever devices do the work.
TEST(CudaCopies, OfAStreamKeepItsOrder)
{
    struct places places;
    cudaStream_t stream;
    places_init(&places);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    for (unsigned i = 0; i < 30; i++) {
        copy_some_rows(&places, stream);
    }
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    places_check(&places);
    places_fini(&places);
}

TEST(CudaCopies, TakeTheirKindFromTheAddresses)
{
    struct places places;
    places_init(&places);
    void *host = places.memory[0], *pinned = places.memory[1], *device = places.memory[2];
    EXPECT_EQ(cudaMemcpy(device, host, 8, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(host, device, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(host, pinned, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(device, host, 8, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(host, device, 8, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(device, host, 8, cudaMemcpyHostToHost), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(pinned, host, 8, cudaMemcpyHostToHost), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(device, host, 8, (enum cudaMemcpyKind)5), cudaErrorInvalidMemcpyDirection);
    EXPECT_EQ(cudaMemcpy(device, host, 8, (enum cudaMemcpyKind) - 1), cudaErrorInvalidMemcpyDirection);
    places_fini(&places);
}

TEST(CudaCopies, StayWithinAnAllocation)
{
    struct places places;
    places_init(&places);
    uint8_t *host = places.memory[0], *pinned = places.memory[1], *device = places.memory[2];
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
    EXPECT_EQ(cuda_fixture_work_count(places.fixture, BACKEND_GPU_TO_DEVICE), 0);
    places_fini(&places);
}

TEST(CudaMemset, StaysInOrderWithTheMemorysDevice)
{
    struct places places;
    places_init(&places);
    EXPECT_EQ(cudaMemset(places.memory[4], 0x77, BYTES), cudaSuccess); // while device 0 is the current one
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(places.memory[1], places.memory[4], 4, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(*(uint32_t *)(void *)places.memory[1], 0x77777777);
    places_fini(&places);
}

TEST(CudaMemset, FillsItsBytesAndNoOthers)
{
    struct places places;
    places_init(&places);
    uint8_t *device = places.memory[2];
    memset(places.expected[2] + 7, 0xab, 1001);
    EXPECT_EQ(cudaMemset(device + 7, 0x3ab, 1001), cudaSuccess);
    memset(places.expected[4], 0x11, BYTES);
    EXPECT_EQ(cudaMemsetAsync(places.memory[4], 0x11, BYTES, NULL), cudaSuccess); // of another device
    EXPECT_EQ(cudaMemset(device + 1, 0, BYTES), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemset(places.memory[0], 0, 8), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemset(device, 0, 0), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(device, 0, 8, (cudaStream_t)device), cudaErrorInvalidResourceHandle);
    places_check(&places);
    places_fini(&places);
}
