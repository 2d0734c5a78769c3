// GPU memory: every byte, at every alignment, on every path.
#include <cuda_runtime.h>
#include <string.h>

#include "fixture.h"

static const uint32_t sizes[] = {1, 8, 80, 81, 127, 128, 1001, 4032, 8191, 8192, 20003, 65536, 131075};
#define SIZES (sizeof sizes / sizeof sizes[0])

static void to_gpu(struct end *end, size_t offset, const uint8_t *data, uint32_t bytes)
{
    EXPECT_EQ(cudaMemcpy(end->device_memory.data + offset, data, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess); // small copies return early
}

static bool is_in_gpu(struct end *end, size_t offset, uint8_t *scratch, uint32_t bytes, uint32_t seed)
{
    EXPECT_EQ(cudaMemcpy(scratch, end->device_memory.data + offset, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return site_is_filled(scratch, bytes, seed);
}

static void gpu_sends(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board), *other = &fixture->ends[1];
    fixture_gpu(end);
    fixture_barrier(fixture, end);
    for (unsigned i = 0; i < SIZES * 20; i++) {
        uint32_t bytes = sizes[i % SIZES], from = 4096 + i / SIZES;
        struct ibv_sge sge = fixture_sge(&end->device_memory, from, bytes);
        struct ibv_sge to = fixture_sge(&other->device_memory, 8192 + 3 * (i / SIZES), 0);
        struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {to.addr, to.lkey}};
        site_fill(end->far.data, bytes, i);
        to_gpu(end, from, end->far.data, bytes);
        EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
        fixture_expect(end, 1, IBV_WC_SUCCESS);
        sge = fixture_sge(&end->device_memory, 300000 + i % 5, bytes);
        wr.opcode = IBV_WR_RDMA_READ;
        EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
        fixture_expect(end, 1, IBV_WC_SUCCESS);
        EXPECT_TRUE(is_in_gpu(end, 300000 + i % 5, end->near.data, bytes, i));
        sge = fixture_sge(&end->device_memory, from, bytes);
        wr.opcode = IBV_WR_SEND;
        EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
        fixture_expect(end, 1, IBV_WC_SUCCESS);
        fixture_barrier(fixture, end);
    }
    fixture_leave(fixture, board);
}

static void gpu_receives(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    fixture_gpu(end);
    fixture_barrier(fixture, end);
    for (unsigned i = 0; i < SIZES * 20; i++) {
        uint32_t bytes = sizes[i % SIZES];
        struct ibv_sge sge = fixture_sge(&end->device_memory, 500000 + i % 7, bytes);
        EXPECT_EQ(fixture_receive(&end->qps[0], 2, &sge), 0);
        fixture_expect(end, 2, IBV_WC_SUCCESS);
        EXPECT_TRUE(is_in_gpu(end, 500000 + i % 7, end->near.data, bytes, i));
        EXPECT_TRUE(is_in_gpu(end, 8192 + 3 * (i / SIZES), end->near.data, bytes, i));
        fixture_barrier(fixture, end);
    }
    fixture_leave(fixture, board);
}

TEST(TcaVerbsGpu, SendsWritesAndReadsEveryByteAtEveryAlignment)
{
    struct fixture fixture;
    fixture_init_published(&fixture);
    fixture_run(&fixture, gpu_sends, gpu_receives);
    fixture_fini(&fixture);
}
