// Queues of GPUs as programs use them through the driver: which items a failure is told of, and what stays of it.
#include <errno.h>

#include "tests/support/site.h"

// A node without a board, whose GPU has 64 MB. Nothing answers at BEYOND: a copy from there fails.
#define BEYOND 0x700000000000ull
#define BYTES  4096u

struct queue {
    const struct backend *backend;
    const struct backend_gpu_ops *gpu;
    uint32_t number;
    uint64_t device_address, host_address;
};

static void queue_open(struct queue *queue)
{
    queue->backend = &backend_current()->backend;
    queue->gpu = queue->backend->ops->gpu;
    struct backend_buffer buffer = {0};
    EXPECT_EQ(queue->backend->ops->alloc_pinned(queue->backend->ctx, BYTES, &buffer), 0);
    EXPECT_EQ(queue->gpu->alloc(queue->backend->ctx, 0, BYTES, &queue->device_address), 0);
    EXPECT_EQ(queue->gpu->queue_create(queue->backend->ctx, 0, &queue->number), 0);
    queue->host_address = buffer.bus_address;
}

// Submits a copy from host memory, and returns its ticket.
static uint64_t copy_from(const struct queue *queue, uint64_t bus_address)
{
    const struct backend_gpu_work work = {.kind = BACKEND_GPU_TO_DEVICE,
                                          .device_address = queue->device_address,
                                          .other_address = bus_address,
                                          .bytes = BYTES,
                                          .rows = 1};
    uint64_t ticket = 0;
    EXPECT_EQ(queue->gpu->submit(queue->backend->ctx, 0, queue->number, &work, &ticket), 0);
    return ticket;
}

static int wait_for(const struct queue *queue, uint64_t ticket)
{
    return queue->gpu->wait(queue->backend->ctx, 0, queue->number, ticket);
}

static void run(plat_program_fn program)
{
    struct site site = {.scenario = platform_fixture_line(1)};
    site.scenario->nodes[0].board = (struct scn_board){0};
    platform_fixture_gpus(site.scenario, 0, 1);
    site_build(&site);
    site_run(&site, program);
    site_fini(&site);
}

static void fails_in_the_middle(void *arg, peach2_handle_t *board)
{
    struct queue queue;
    (void)arg;
    (void)board;
    queue_open(&queue);
    uint64_t before = copy_from(&queue, queue.host_address), failing = copy_from(&queue, BEYOND),
             behind = copy_from(&queue, queue.host_address);
    EXPECT_EQ(wait_for(&queue, before), 0);
    EXPECT_EQ(wait_for(&queue, failing), -EIO);
    EXPECT_EQ(wait_for(&queue, behind), -EIO);
    EXPECT_EQ(wait_for(&queue, before), 0);
}

TEST(GpuQueue, TellsOfAFailureWhoeverWaitsForTheItemThatFailedOrALaterOne)
{
    run(fails_in_the_middle);
}

static void fails_and_begins_anew(void *arg, peach2_handle_t *board)
{
    struct queue queue;
    (void)arg;
    (void)board;
    queue_open(&queue);
    uint32_t number = queue.number;
    EXPECT_EQ(wait_for(&queue, copy_from(&queue, BEYOND)), -EIO);
    EXPECT_EQ(queue.gpu->queue_destroy(queue.backend->ctx, 0, queue.number), 0);
    EXPECT_EQ(queue.gpu->queue_create(queue.backend->ctx, 0, &queue.number), 0);
    EXPECT_EQ(queue.number, number);
    EXPECT_EQ(wait_for(&queue, copy_from(&queue, queue.host_address)), 0);
}

TEST(GpuQueue, ThatIsNewKnowsNothingOfTheOneThatHadItsNumber)
{
    run(fails_and_begins_anew);
}
