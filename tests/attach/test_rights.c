// What a process may name, and what stays its own until when (docs/ownership.md): one rule after the other.
#include <errno.h>
#include <sys/resource.h>

#include "models/gpu/gpu.h"
#include "tests/shim/test.h"
#include "tests/support/script.h"

enum { PAGE = 4096, DEVICE_PAGE = 65536 };

// --- the HCA ---------------------------------------------------------------------------------------------------------

static struct script_queues theirs;

static void queues_lend(struct attach_thread *thread)
{
    theirs = script_queues(thread);
    script_sleep_until_us(thread, 100);
}

static void pairs_try(struct attach_thread *thread)
{
    script_sleep_until_us(thread, 50);
    const struct script_queues own = script_queues(thread);
    EXPECT_NE(own.cq, theirs.cq);
    EXPECT_EQ(script_pair(thread, &own, own.cq, theirs.cq), -EINVAL);
    EXPECT_EQ(script_pair(thread, &own, theirs.cq, own.cq), -EINVAL);
    EXPECT_EQ(script_pair(thread, &own, own.cq, own.cq), 0);
}

TEST(Rights, AQueuePairReportsToNoCompletionQueueOfAnotherProcess)
{
    script_run(&(struct script){.first = pairs_try, .second = queues_lend});
}

static void ring_replace(struct attach_thread *thread)
{
    const struct script_queues own = script_queues(thread);
    uint64_t old = script_pinned(thread, PAGE), fresh = script_pinned(thread, PAGE);
    uint32_t cq = script_create(
        thread,
        (struct hca_command){
            .id = HCA_CMD_CQ_CREATE,
            .cq_create = {.eqn = own.eq, .uar = own.uar, .base = old, .record = own.memory + 1040, .entries = 16}});
    struct hca_command resize = {.id = HCA_CMD_CQ_RESIZE, .number = cq, .cq_resize = {.base = fresh, .entries = 32}};
    EXPECT_EQ(script_command(thread, &resize), 0);
    EXPECT_EQ(script_free(thread, old), 0);
    EXPECT_EQ(script_pinned(thread, PAGE), old); // given away
    EXPECT_EQ(script_free(thread, fresh), 0);
    EXPECT_NE(script_pinned(thread, PAGE), fresh);
    struct hca_command destroy = {.id = HCA_CMD_CQ_DESTROY, .number = cq};
    EXPECT_EQ(script_command(thread, &destroy), 0);
    EXPECT_EQ(script_pinned(thread, PAGE), fresh);
}

TEST(Rights, ACompletionQueueThatWasResizedKeepsItsNewRingInsteadOfItsOldOne)
{
    script_run(&(struct script){.first = ring_replace});
}

static void doorbells_reach(struct attach_thread *thread)
{
    uint64_t page = script_create(thread, (struct hca_command){.id = HCA_CMD_UAR_ALLOC});
    uint64_t end = (page + 1) * HCA_UAR_BYTES;
    EXPECT_TRUE(attach_bar_allowed(thread->process, BACKEND_BAR_HCA_UAR, end - 64, 64));
    EXPECT_FALSE(attach_bar_allowed(thread->process, BACKEND_BAR_HCA_UAR, end - 32, 64));
    EXPECT_FALSE(attach_bar_allowed(thread->process, BACKEND_BAR_HCA_UAR, end, 64));
}

TEST(Rights, AStoreToAPageOfDoorbellsEndsWithinThePage)
{
    script_run(&(struct script){.first = doorbells_reach});
}

// --- GPUs ------------------------------------------------------------------------------------------------------------

static void peer_copies_try(struct attach_thread *thread)
{
    uint32_t queue = script_gpu_queue(thread, 0);
    uint64_t own = script_device_memory(thread, 0, DEVICE_PAGE);
    (void)script_device_memory(thread, 1, DEVICE_PAGE);
    uint64_t of_peer = script_device_memory(thread, 1, DEVICE_PAGE);
    struct backend_gpu_work copy = {.kind = BACKEND_GPU_TO_PEER,
                                    .device_address = own,
                                    .other_address = of_peer,
                                    .peer = 1,
                                    .bytes = 256,
                                    .rows = 1};
    EXPECT_EQ(script_submit(thread, 0, queue, &copy), 0);
    copy.other_address = of_peer + DEVICE_PAGE;
    EXPECT_EQ(script_submit(thread, 0, queue, &copy), -EINVAL);
}

// Each GPU has its own addresses, from the same one on.
TEST(Rights, ACopyToAPeerReachesMemoryOfThePeer)
{
    script_run(&(struct script){.first = peer_copies_try});
}

static uint64_t behind; // device memory of another process

static void page_behind_take(struct attach_thread *thread)
{
    script_sleep_until_us(thread, 50);
    behind = script_device_memory(thread, 0, DEVICE_PAGE);
    script_sleep_until_us(thread, 200);
}

static void rows_try(struct attach_thread *thread)
{
    uint32_t queue = script_gpu_queue(thread, 0);
    struct backend_gpu_work set = {.kind = BACKEND_GPU_SET,
                                   .device_address = script_device_memory(thread, 0, DEVICE_PAGE),
                                   .bytes = 4,
                                   .rows = 2,
                                   .device_pitch = DEVICE_PAGE - 4};
    script_sleep_until_us(thread, 100);
    ASSERT_EQ(behind, set.device_address + DEVICE_PAGE);
    EXPECT_EQ(script_submit(thread, 0, queue, &set), 0);
    set.device_pitch = DEVICE_PAGE;
    EXPECT_EQ(script_submit(thread, 0, queue, &set), -EINVAL);
    set.rows = 1; // its pitch is ignored
    EXPECT_EQ(script_submit(thread, 0, queue, &set), 0);
}

TEST(Rights, NoRowThatAGpuFillsLiesInMemoryOfAnotherProcess)
{
    script_run(&(struct script){.first = rows_try, .second = page_behind_take});
}

static int64_t region_at(struct attach_thread *thread, uint32_t pd, uint64_t bus_address)
{
    struct hca_command command = {.id = HCA_CMD_MR_REGISTER,
                                  .mr_register = {.pdn = pd,
                                                  .iova = 16 * PAGE + bus_address % PAGE,
                                                  .bytes = 64,
                                                  .access = HCA_LOCAL_WRITE,
                                                  .bus_address = bus_address}};
    return script_command(thread, &command);
}

static void pin_reach(struct attach_thread *thread)
{
    uint32_t pd = script_create(thread, (struct hca_command){.id = HCA_CMD_PD_CREATE});
    const uint64_t within = DEVICE_PAGE / 2;
    uint64_t address = script_device_memory(thread, 0, DEVICE_PAGE);
    const union attach_args args = {.gpu_pin = {0, address + within, PAGE}};
    ASSERT_EQ(script_request(thread, ATTACH_OP_GPU_PIN, &args), 0);
    uint64_t page = thread->slot->reply.gpu_pin.bus_address - within;
    EXPECT_EQ(region_at(thread, pd, page), 0);
    EXPECT_EQ(region_at(thread, pd, page + DEVICE_PAGE - 64), 0);
    EXPECT_EQ(region_at(thread, pd, page + DEVICE_PAGE), -EFAULT);
}

// The window shows whole pages, also where a pin begins within one.
TEST(Rights, APinnedPartOfDeviceMemoryIsReachedByThePage)
{
    script_run(&(struct script){.first = pin_reach});
}

// --- until when ------------------------------------------------------------------------------------------------------

static bool has_ended(struct attach_thread *thread, uint32_t gpu, uint32_t queue, uint64_t ticket)
{
    return script_request(thread, ATTACH_OP_GPU_POLL,
                          &(union attach_args){.gpu_poll = {.gpu = gpu, .queue = queue, .ticket = ticket}}) == 1;
}

static void memory_free_under_copies(struct attach_thread *thread)
{
    const uint64_t bytes[] = {DEVICE_PAGE, 16 * DEVICE_PAGE};
    uint64_t memory = script_pinned(thread, bytes[1]), tickets[2];
    uint32_t queues[2];
    for (uint32_t gpu = 0; gpu < 2; gpu++) {
        queues[gpu] = script_gpu_queue(thread, gpu);
        const struct backend_gpu_work copy = {.kind = BACKEND_GPU_TO_HOST,
                                              .device_address = script_device_memory(thread, gpu, bytes[gpu]),
                                              .other_address = memory,
                                              .bytes = bytes[gpu],
                                              .rows = 1};
        ASSERT_EQ(script_submit(thread, gpu, queues[gpu], &copy), 0);
        tickets[gpu] = thread->slot->reply.gpu_submit.ticket;
    }
    EXPECT_FALSE(has_ended(thread, 1, queues[1], tickets[1]));
    EXPECT_EQ(script_free(thread, memory), 0);
    EXPECT_TRUE(has_ended(thread, 0, queues[0], tickets[0]));
    EXPECT_TRUE(has_ended(thread, 1, queues[1], tickets[1]));
}

TEST(Rights, FreeingHostMemoryWaitsForTheCopiesOfAllGpus)
{
    script_run(&(struct script){.first = memory_free_under_copies});
}

static uint64_t left_memory;

static void leave_with_memory_and_board(struct attach_thread *thread)
{
    left_memory = script_pinned(thread, PAGE);
    EXPECT_EQ(script_request(thread, ATTACH_OP_BOARD_CLAIM, &(union attach_args){0}), 0);
    script_sleep_until_us(thread, 100);
}

// A process that has ended keeps its memory for ten microseconds (docs/ownership.md, rule 7).
static void memory_await(struct attach_thread *thread)
{
    script_sleep_until_us(thread, 105);
    EXPECT_NE(script_pinned(thread, PAGE), left_memory);
    script_sleep_until_us(thread, 115);
    EXPECT_EQ(script_pinned(thread, PAGE), left_memory);
}

TEST(Rights, MemoryOfAnEndedProcessGoesToNobodyBeforePacketsInFlightHaveLanded)
{
    script_run(&(struct script){.first = memory_await, .second = leave_with_memory_and_board});
}

static void board_await(struct attach_thread *thread)
{
    script_sleep_until_us(thread, 95);
    EXPECT_EQ(script_request(thread, ATTACH_OP_BOARD_CLAIM, &(union attach_args){0}), -EBUSY);
    script_sleep_until_us(thread, 105);
    EXPECT_EQ(script_request(thread, ATTACH_OP_BOARD_CLAIM, &(union attach_args){0}), 0);
    EXPECT_EQ(script_now_us(thread), 110); // the other process is over
}

TEST(Rights, AClaimOfTheBoardWaitsForTheEndOfAProcessThatHasEnded)
{
    script_run(&(struct script){.first = board_await, .second = leave_with_memory_and_board});
}

static void allocate_under_a_limit(struct attach_thread *thread)
{
    struct rlimit before;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit least = {1 << 20, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &least), 0);
    EXPECT_EQ(script_request(thread, ATTACH_OP_ALLOC, &(union attach_args){.alloc.bytes = 1 << 20}), 0);
    EXPECT_EQ(script_request(thread, ATTACH_OP_ALLOC, &(union attach_args){.alloc.bytes = 2 << 20}), -ENOMEM);
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
}

// A kernel ends a process whose file grows beyond the limit.
TEST(Rights, MoreMemoryThanTheUsersLimitOfFilesAllowsIsRefusedAndEndsNobody)
{
    script_run(&(struct script){.first = allocate_under_a_limit});
}
