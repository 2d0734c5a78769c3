// Regions of any memory that a program has: heap, static data, stacks.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "scene.h"

enum {
    BYTES = 20001,
    ODD = 77,
    PAGE = 4096,
    RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
};

// What the other side has registered.
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

static void write_to_target(struct scene_side *side, struct ibv_sge sge, unsigned at, enum ibv_wc_status status)
{
    struct ibv_send_wr wr = scene_wr(side, IBV_WR_RDMA_WRITE, &sge, 0);
    wr.wr.rdma.remote_addr = (uintptr_t)target.memory + at;
    wr.wr.rdma.rkey = target.mr->rkey;
    EXPECT_EQ(scene_post(side, &wr), 0);
    (void)scene_completion(side, 1, status);
    sim_thread_sleep(side->scene->rig.sim, 20 * US); // acknowledged is not yet visible (IBA 9.7.5.1)
}

static struct ibv_sge sge_of(const struct ibv_mr *mr, const uint8_t *memory, unsigned bytes)
{
    return (struct ibv_sge){(uintptr_t)memory, bytes, mr->lkey};
}

static void target_open(struct scene_side *side, uint8_t *memory, unsigned bytes)
{
    target.memory = memory;
    target.mr = ibv_reg_mr(side->pd, memory, bytes, RIGHTS);
    ASSERT_TRUE(target.mr != NULL);
    scene_meet(side);
}

// --- every kind of memory --------------------------------------------------------------------------------------------

static void write_from_stack(struct scene_side *side)
{
    uint8_t local[BYTES];
    pattern_fill(local, BYTES);
    struct ibv_mr *mr = ibv_reg_mr(side->pd, local, BYTES, 0);
    ASSERT_TRUE(mr != NULL);
    scene_meet(side);
    write_to_target(side, sge_of(mr, local, BYTES), 0, IBV_WC_SUCCESS);
    scene_meet(side);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

static void find_in_heap(struct scene_side *side)
{
    uint8_t *block = calloc(1, BYTES + 2 * ODD);
    target_open(side, block + ODD, BYTES);
    scene_meet(side);
    EXPECT_TRUE(is_pattern(block + ODD, BYTES));
    EXPECT_EQ(block[ODD - 1] | block[ODD + BYTES], 0);
    EXPECT_EQ(ibv_dereg_mr(target.mr), 0);
    free(block);
}

TEST(IbsimMemory, AWriteGoesFromAStackToTheHeapAtOddAddresses)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, write_from_stack, find_in_heap);
    scene_end(scene);
}

static void read_into_heap(struct scene_side *side)
{
    uint8_t *block = calloc(1, BYTES);
    struct ibv_mr *mr = ibv_reg_mr(side->pd, block, BYTES, IBV_ACCESS_LOCAL_WRITE);
    scene_meet(side);
    struct ibv_sge sge = sge_of(mr, block, BYTES);
    struct ibv_send_wr wr = scene_wr(side, IBV_WR_RDMA_READ, &sge, 0);
    wr.wr.rdma.remote_addr = (uintptr_t)target.memory;
    wr.wr.rdma.rkey = target.mr->rkey;
    EXPECT_EQ(scene_post(side, &wr), 0);
    (void)scene_completion(side, 1, IBV_WC_SUCCESS);
    EXPECT_TRUE(is_pattern(block, BYTES));
    scene_meet(side);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    free(block);
}

static void offer_static(struct scene_side *side)
{
    pattern_fill(static_memory + ODD, BYTES);
    target_open(side, static_memory + ODD, BYTES);
    scene_meet(side);
    EXPECT_EQ(ibv_dereg_mr(target.mr), 0);
}

TEST(IbsimMemory, AReadGoesFromStaticDataToTheHeap)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, read_into_heap, offer_static);
    scene_end(scene);
}

// --- regions of one memory -------------------------------------------------------------------------------------------

static void write_and_meet(struct scene_side *side)
{
    scene_meet(side);
    write_to_target(side, scene_sge(side, 0, 3 * PAGE), 0, IBV_WC_SUCCESS);
    scene_meet(side);
    scene_meet(side);
    write_to_target(side, scene_sge(side, PAGE, PAGE), 0, IBV_WC_SUCCESS);
    scene_meet(side);
}

static void regions_overlap(struct scene_side *side)
{
    static uint8_t memory[4 * PAGE];
    struct ibv_mr *whole = ibv_reg_mr(side->pd, memory, sizeof memory, RIGHTS);
    target_open(side, memory + ODD, 3 * PAGE);
    EXPECT_TRUE(whole->lkey != target.mr->lkey);
    scene_meet(side);
    EXPECT_MEMEQ(memory + ODD, side->peer->memory, 3 * PAGE);
    EXPECT_EQ(ibv_dereg_mr(target.mr), 0);
    target.mr = whole;
    scene_meet(side);
    scene_meet(side);
    EXPECT_MEMEQ(memory + ODD, side->peer->memory + PAGE, PAGE);
    EXPECT_EQ(ibv_dereg_mr(whole), 0);
}

TEST(IbsimMemory, OfTwoOverlappingRegionsOneMayGo)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, write_and_meet, regions_overlap);
    scene_end(scene);
}

static void write_refused(struct scene_side *side)
{
    scene_meet(side);
    write_to_target(side, scene_sge(side, 0, 8), 0, IBV_WC_REM_ACCESS_ERR);
    scene_meet(side);
}

static void region_goes(struct scene_side *side)
{
    static uint8_t memory[PAGE];
    struct ibv_mr gone;
    target.memory = memory;
    target.mr = ibv_reg_mr(side->pd, memory, sizeof memory, RIGHTS);
    gone = *target.mr;
    EXPECT_EQ(ibv_dereg_mr(target.mr), 0);
    target.mr = &gone;
    scene_meet(side);
    scene_meet(side);
    EXPECT_EQ(memory[0], 0);
}

TEST(IbsimMemory, ADeregisteredRegionIsReachedNoMore)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, write_refused, region_goes);
    scene_end(scene);
}

// --- refusals --------------------------------------------------------------------------------------------------------

static void expect_fault(struct scene_side *side, void *address, size_t bytes, int access)
{
    errno = 0;
    EXPECT_TRUE(ibv_reg_mr(side->pd, address, bytes, access) == NULL);
    EXPECT_EQ(errno, EFAULT);
}

static void holes(struct scene_side *side)
{
    uint8_t *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_TRUE(pages != MAP_FAILED);
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
    EXPECT_TRUE(mr != NULL);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(munmap(pages, PAGE) | munmap(pages + 2 * PAGE, PAGE), 0);
}

TEST(IbsimMemory, MemoryThatIsNotMappedIsNoRegion)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, holes, NULL);
    scene_end(scene);
}

static void constants(struct scene_side *side)
{
    static const uint8_t constant[PAGE] = {1};
    expect_fault(side, (void *)(uintptr_t)constant, sizeof constant, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mr *mr = ibv_reg_mr(side->pd, (void *)(uintptr_t)constant, sizeof constant, IBV_ACCESS_REMOTE_READ);
    EXPECT_TRUE(mr != NULL);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST(IbsimMemory, MemoryThatTheProgramMayNotWriteIsNoRegionForWriting)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, constants, NULL);
    scene_end(scene);
}

// --- waiting ---------------------------------------------------------------------------------------------------------

static void write_late(struct scene_side *side)
{
    scene_meet(side);
    sim_thread_sleep(side->scene->rig.sim, 50 * US);
    *(uint64_t *)(void *)side->memory = 42;
    write_to_target(side, scene_sge(side, 0, 8), 8, IBV_WC_SUCCESS);
}

static void wait_for_word(struct scene_side *side)
{
    static _Alignas(8) uint64_t words[2];
    const struct backend *backend = &side->process->backend;
    EXPECT_EQ(backend->ops->wait_word(backend->ctx, &words[1], UINT64_MAX, 42, 1), -EINVAL);
    target_open(side, (uint8_t *)words, sizeof words);
    EXPECT_EQ(backend->ops->wait_word(backend->ctx, &words[1], UINT64_MAX, 42, 1000), -ETIMEDOUT);
    EXPECT_EQ(backend->ops->wait_word(backend->ctx, &words[1], UINT64_MAX, 42, 0), 0);
    EXPECT_TRUE(sim_now_ps(side->scene->rig.sim) > 50 * US);
    EXPECT_EQ(ibv_dereg_mr(target.mr), 0);
    EXPECT_EQ(backend->ops->wait_word(backend->ctx, &words[1], UINT64_MAX, 42, 1), -EINVAL);
}

TEST(IbsimMemory, AThreadMayWaitForAWordOfItWhileItIsRegistered)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, write_late, wait_for_word);
    scene_end(scene);
}

// --- a process that has ended ----------------------------------------------------------------------------------------

static void write_to_the_dead(struct scene_side *side)
{
    scene_meet(side);
    write_to_target(side, scene_sge(side, 0, 8), 0, IBV_WC_SUCCESS);
    struct ibv_sge sge = scene_sge(side, 0, 8);
    struct ibv_send_wr wr = scene_wr(side, IBV_WR_RDMA_READ, &sge, 0);
    wr.wr.rdma.remote_addr = (uintptr_t)target.memory;
    wr.wr.rdma.rkey = target.mr->rkey;
    EXPECT_EQ(scene_post(side, &wr), 0);
    (void)scene_completion(side, 1, IBV_WC_REM_OP_ERR);
    scene_meet(side);
}

static void die(struct scene_side *side)
{
    static uint8_t memory[64];
    static const uint8_t zeros[64];
    target.memory = memory;
    target.mr = ibv_reg_mr(side->pd, memory, sizeof memory, RIGHTS);
    plat_backend_end(&side->process->inproc);
    scene_meet(side);
    scene_meet(side);
    EXPECT_MEMEQ(memory, zeros, sizeof memory);
    EXPECT_EQ(ibv_dereg_mr(target.mr), 0);
}

TEST(IbsimMemory, MemoryOfAProcessThatHasEndedIsNeitherWrittenNorRead)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, write_to_the_dead, die);
    scene_end(scene);
}
