// Regions of any memory of a program: heap, static data, stacks.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fixture.h"

enum {
    BYTES = 20001,
    ODD = 77,
    PAGE = 4096,
    RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
};

// The registered memory of side 1.
static struct {
    uint8_t *memory;
    struct ibv_mr *mr;
} target;

static uint8_t static_memory[BYTES + ODD];

static void pattern_fill(uint8_t *memory, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        memory[i] = (uint8_t)(i * 13 + (i >> 8) + 3);
    }
}

static bool is_pattern(const uint8_t *memory, unsigned bytes)
{
    bool good = true;
    for (unsigned i = 0; i < bytes && good; i++) {
        good = memory[i] == (uint8_t)(i * 13 + (i >> 8) + 3);
    }
    return good;
}

static void write_to_target(struct fixture_side *side, struct ibv_sge sge, unsigned at, enum ibv_wc_status status)
{
    struct ibv_send_wr wr = fixture_wr(side, IBV_WR_RDMA_WRITE, &sge, 0);
    wr.wr.rdma.remote_addr = (uintptr_t)target.memory + at;
    wr.wr.rdma.rkey = target.mr->rkey;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_completion(side, 1, status);
    sim_thread_sleep(side->fixture->base.sim, 20 * US); // an acknowledged write is not visible yet (IBA 9.7.5.1)
}

static struct ibv_sge sge_of(const struct ibv_mr *mr, const uint8_t *memory, unsigned bytes)
{
    return (struct ibv_sge){(uintptr_t)memory, bytes, mr->lkey};
}

static void target_open(struct fixture_side *side, uint8_t *memory, unsigned bytes)
{
    target.memory = memory;
    target.mr = ibv_reg_mr(side->pd, memory, bytes, RIGHTS);
    ASSERT_NOT_NULL(target.mr);
    fixture_barrier(side);
}

// --- every kind of memory --------------------------------------------------------------------------------------------

static void write_from_stack(struct fixture_side *side)
{
    uint8_t local[BYTES];
    pattern_fill(local, BYTES);
    struct ibv_mr *mr = ibv_reg_mr(side->pd, local, BYTES, 0);
    ASSERT_NOT_NULL(mr);
    fixture_barrier(side);
    write_to_target(side, sge_of(mr, local, BYTES), 0, IBV_WC_SUCCESS);
    fixture_barrier(side);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

static void find_in_heap(struct fixture_side *side)
{
    uint8_t *block = calloc(1, BYTES + 2 * ODD);
    target_open(side, block + ODD, BYTES);
    fixture_barrier(side);
    EXPECT_TRUE(is_pattern(block + ODD, BYTES));
    EXPECT_EQ(block[ODD - 1] | block[ODD + BYTES], 0);
    EXPECT_EQ(ibv_dereg_mr(target.mr), 0);
    free(block);
}

TEST(IbsimMemory, AWriteGoesFromAStackToTheHeapAtOddAddresses)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, write_from_stack, find_in_heap);
    fixture_end(fixture);
}

static void read_into_heap(struct fixture_side *side)
{
    uint8_t *block = calloc(1, BYTES);
    struct ibv_mr *mr = ibv_reg_mr(side->pd, block, BYTES, IBV_ACCESS_LOCAL_WRITE);
    fixture_barrier(side);
    struct ibv_sge sge = sge_of(mr, block, BYTES);
    struct ibv_send_wr wr = fixture_wr(side, IBV_WR_RDMA_READ, &sge, 0);
    wr.wr.rdma.remote_addr = (uintptr_t)target.memory;
    wr.wr.rdma.rkey = target.mr->rkey;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_completion(side, 1, IBV_WC_SUCCESS);
    EXPECT_TRUE(is_pattern(block, BYTES));
    fixture_barrier(side);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    free(block);
}

static void offer_static(struct fixture_side *side)
{
    pattern_fill(static_memory + ODD, BYTES);
    target_open(side, static_memory + ODD, BYTES);
    fixture_barrier(side);
    EXPECT_EQ(ibv_dereg_mr(target.mr), 0);
}

TEST(IbsimMemory, AReadGoesFromStaticDataToTheHeap)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, read_into_heap, offer_static);
    fixture_end(fixture);
}

// --- regions of one memory -------------------------------------------------------------------------------------------

static void write_and_meet(struct fixture_side *side)
{
    fixture_barrier(side);
    write_to_target(side, fixture_sge(side, 0, 3 * PAGE), 0, IBV_WC_SUCCESS);
    fixture_barrier(side);
    fixture_barrier(side);
    write_to_target(side, fixture_sge(side, PAGE, PAGE), 0, IBV_WC_SUCCESS);
    fixture_barrier(side);
}

static void regions_overlap(struct fixture_side *side)
{
    static uint8_t memory[4 * PAGE];
    struct ibv_mr *whole = ibv_reg_mr(side->pd, memory, sizeof memory, RIGHTS);
    target_open(side, memory + ODD, 3 * PAGE);
    EXPECT_NE(whole->lkey, target.mr->lkey);
    fixture_barrier(side);
    EXPECT_MEMEQ(memory + ODD, side->peer->memory, 3 * PAGE);
    EXPECT_EQ(ibv_dereg_mr(target.mr), 0);
    target.mr = whole;
    fixture_barrier(side);
    fixture_barrier(side);
    EXPECT_MEMEQ(memory + ODD, side->peer->memory + PAGE, PAGE);
    EXPECT_EQ(ibv_dereg_mr(whole), 0);
}

TEST(IbsimMemory, OfTwoOverlappingRegionsOneMayGo)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, write_and_meet, regions_overlap);
    fixture_end(fixture);
}

static void write_refused(struct fixture_side *side)
{
    fixture_barrier(side);
    write_to_target(side, fixture_sge(side, 0, 8), 0, IBV_WC_REM_ACCESS_ERR);
    fixture_barrier(side);
}

static void region_goes(struct fixture_side *side)
{
    static uint8_t memory[PAGE];
    struct ibv_mr gone;
    target.memory = memory;
    target.mr = ibv_reg_mr(side->pd, memory, sizeof memory, RIGHTS);
    gone = *target.mr;
    EXPECT_EQ(ibv_dereg_mr(target.mr), 0);
    target.mr = &gone;
    fixture_barrier(side);
    fixture_barrier(side);
    EXPECT_EQ(memory[0], 0);
}

TEST(IbsimMemory, ADeregisteredRegionIsReachedNoMore)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, write_refused, region_goes);
    fixture_end(fixture);
}

// --- refusals --------------------------------------------------------------------------------------------------------

static void expect_fault(struct fixture_side *side, void *address, size_t bytes, int access)
{
    errno = 0;
    EXPECT_NULL(ibv_reg_mr(side->pd, address, bytes, access));
    EXPECT_EQ(errno, EFAULT);
}

static void holes(struct fixture_side *side)
{
    uint8_t *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    EXPECT_EQ(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    expect_fault(side, NULL, 1, 0);
    expect_fault(side, NULL, PAGE, RIGHTS);
    expect_fault(side, pages + PAGE, 1, 0);
    expect_fault(side, pages + PAGE - 1, 2, 0);
    expect_fault(side, pages, 3 * PAGE, 0);
    EXPECT_EQ(munmap(pages + PAGE, PAGE), 0);
    expect_fault(side, pages, PAGE + 1, 0);
    expect_fault(side, pages + 2 * PAGE - 1, 2, 0);
    struct ibv_mr *mr = ibv_reg_mr(side->pd, pages, PAGE, RIGHTS);
    EXPECT_NOT_NULL(mr);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(munmap(pages, PAGE) | munmap(pages + 2 * PAGE, PAGE), 0);
}

TEST(IbsimMemory, MemoryThatIsNotMappedIsNoRegion)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, holes, NULL);
    fixture_end(fixture);
}

static void constants(struct fixture_side *side)
{
    static const uint8_t constant[PAGE] = {1};
    expect_fault(side, (void *)(uintptr_t)constant, sizeof constant, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mr *mr = ibv_reg_mr(side->pd, (void *)(uintptr_t)constant, sizeof constant, IBV_ACCESS_REMOTE_READ);
    EXPECT_NOT_NULL(mr);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST(IbsimMemory, MemoryThatTheProgramMayNotWriteIsNoRegionForWriting)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, constants, NULL);
    fixture_end(fixture);
}

// Requests name it by its own addresses, which lie as its memory in their page.
static void own_address(struct fixture_side *side)
{
    static _Alignas(PAGE) uint8_t memory[2 * PAGE];
    const uint64_t iova = 3 * PAGE;
    errno = 0;
    EXPECT_NULL(ibv_reg_mr_iova(side->pd, memory, sizeof memory, iova + 1, IBV_ACCESS_LOCAL_WRITE));
    EXPECT_EQ(errno, EINVAL);
    struct ibv_mr *mr = ibv_reg_mr_iova(side->pd, memory, sizeof memory, iova, RIGHTS);
    ASSERT_NOT_NULL(mr);
    fixture_barrier(side);
    memory[PAGE + 5] = 77;
    write_to_target(side, (struct ibv_sge){iova + PAGE + 5, 1, mr->lkey}, 0, IBV_WC_SUCCESS);
    EXPECT_EQ(*target.memory, 77);
    write_to_target(side, sge_of(mr, memory, 1), 0, IBV_WC_LOC_PROT_ERR);
    fixture_barrier(side);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

static void offer_byte(struct fixture_side *side)
{
    static uint8_t byte;
    target_open(side, &byte, sizeof byte);
    fixture_barrier(side);
    EXPECT_EQ(ibv_dereg_mr(target.mr), 0);
}

TEST(IbsimMemory, ARegionMayHaveAddressesOfItsOwn)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, own_address, offer_byte);
    fixture_end(fixture);
}

// --- waiting ---------------------------------------------------------------------------------------------------------

static void write_late(struct fixture_side *side)
{
    fixture_barrier(side);
    sim_thread_sleep(side->fixture->base.sim, 50 * US);
    *(uint64_t *)(void *)side->memory = 42;
    write_to_target(side, fixture_sge(side, 0, 8), 8, IBV_WC_SUCCESS);
}

static void wait_for_word(struct fixture_side *side)
{
    static _Alignas(8) uint64_t words[2];
    const struct backend *backend = &side->process->backend;
    EXPECT_EQ(backend->ops->wait_word(backend->ctx, &words[1], UINT64_MAX, 42, 1), -EINVAL);
    target_open(side, (uint8_t *)words, sizeof words);
    EXPECT_EQ(backend->ops->wait_word(backend->ctx, &words[1], UINT64_MAX, 42, 1000), -ETIMEDOUT);
    EXPECT_EQ(backend->ops->wait_word(backend->ctx, &words[1], UINT64_MAX, 42, 0), 0);
    EXPECT_GT(sim_now_ps(side->fixture->base.sim), 50 * US);
    EXPECT_EQ(ibv_dereg_mr(target.mr), 0);
    EXPECT_EQ(backend->ops->wait_word(backend->ctx, &words[1], UINT64_MAX, 42, 1), -EINVAL);
}

TEST(IbsimMemory, AThreadMayWaitForAWordOfItWhileItIsRegistered)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, write_late, wait_for_word);
    fixture_end(fixture);
}

// --- a process that has ended ----------------------------------------------------------------------------------------

static void write_to_the_dead(struct fixture_side *side)
{
    fixture_barrier(side);
    write_to_target(side, fixture_sge(side, 0, 8), 0, IBV_WC_SUCCESS);
    struct ibv_sge sge = fixture_sge(side, 0, 8);
    struct ibv_send_wr wr = fixture_wr(side, IBV_WR_RDMA_READ, &sge, 0);
    wr.wr.rdma.remote_addr = (uintptr_t)target.memory;
    wr.wr.rdma.rkey = target.mr->rkey;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_completion(side, 1, IBV_WC_REM_OP_ERR);
    fixture_barrier(side);
}

static void die(struct fixture_side *side)
{
    static uint8_t memory[64];
    static const uint8_t zeros[64];
    target.memory = memory;
    target.mr = ibv_reg_mr(side->pd, memory, sizeof memory, RIGHTS);
    plat_backend_end(&side->process->inproc);
    fixture_barrier(side);
    fixture_barrier(side);
    EXPECT_MEMEQ(memory, zeros, sizeof memory);
    EXPECT_EQ(ibv_dereg_mr(target.mr), 0);
}

TEST(IbsimMemory, MemoryOfAProcessThatHasEndedIsNeitherWrittenNorRead)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, write_to_the_dead, die);
    fixture_end(fixture);
}
