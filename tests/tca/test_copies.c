// Random copies of runs and rows against the same copies made in memory.
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/random.h"
#include "tests/support/cluster.h"

#define COPIES 40u
#define FILL   9u

struct copies {
    struct cluster cluster;
    uint8_t expected[CLUSTER_BYTES];
    int flags;
    uint64_t seed;
};

static uint64_t below(struct sim_random *random, uint64_t limit)
{
    return sim_random_below(random, limit);
}

// Sizes from a word to some thousand bytes, any word offsets that agree in their low 4 bits.
static void run_add(struct copies *c, tcaDesc *desc, struct sim_random *random)
{
    size_t size = 4 * (1 + below(random, 1000)), low = 4 * below(random, 4);
    size_t to = 16 * below(random, 3800) + low, from = 16 * below(random, 3800) + low;
    size = to + size > CLUSTER_BYTES ? CLUSTER_BYTES - to : size;
    size = from + size > CLUSTER_BYTES ? CLUSTER_BYTES - from : size;
    EXPECT_EQ(tcaDescSetMemcpy(desc, &c->cluster.handles[1], to, &c->cluster.handles[0], from, size, c->flags, 3, 5),
              tcaSuccess);
    memcpy(c->expected + to, c->cluster.memory[0] + from, size);
}

static void rows_add(struct copies *c, tcaDesc *desc, struct sim_random *random)
{
    size_t width = 4 * (1 + below(random, 100)), count = 1 + below(random, 20), low = 4 * below(random, 4);
    size_t gap = 4 * below(random, 30), to_pitch = width + gap, from_pitch = to_pitch + 16 * below(random, 10);
    size_t to = 16 * below(random, 1000) + low, from = 16 * below(random, 1000) + low;
    EXPECT_EQ(tcaDescSetMemcpy2D(desc, &c->cluster.handles[1], to, to_pitch, &c->cluster.handles[0], from, from_pitch,
                                 width, count, c->flags, 3, 5),
              tcaSuccess);
    for (size_t row = 0; row < count; row++) {
        memcpy(c->expected + to + row * to_pitch, c->cluster.memory[0] + from + row * from_pitch, width);
    }
}

static void copier(void *arg, peach2_handle_t *board)
{
    struct copies *c = arg;
    struct sim_random random;
    sim_random_init(&random, c->seed, "copies");
    cluster_memory(&c->cluster, board, 2);
    site_fill(c->cluster.memory[0], CLUSTER_BYTES, FILL);
    for (unsigned round = 0; round < 4; round++) {
        tcaDesc *desc = tcaDescNew();
        for (unsigned i = 0; i < COPIES / 4; i++) {
            if (below(&random, 2) == 0) {
                run_add(c, desc, &random);
            } else {
                rows_add(c, desc, &random);
            }
        }
        EXPECT_EQ(tcaDescSet(desc, (int)round), tcaSuccess);
        EXPECT_EQ(tcaStartDMADesc((int)round), tcaSuccess);
        EXPECT_EQ(tcaWaitDMAC((int)round), tcaSuccess);
        EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
    }
    c->cluster.flag = true;
}

static void expect_copies(int flags, uint64_t seed)
{
    struct copies *c = calloc(1, sizeof *c);
    ASSERT_NOT_NULL(c);
    c->flags = flags;
    c->seed = seed;
    cluster_init(&c->cluster, 2);
    cluster_run(&c->cluster, copier, cluster_target);
    EXPECT_MEMEQ(c->cluster.memory[1], c->expected, CLUSTER_BYTES);
    cluster_fini(&c->cluster);
    free(c);
}

TEST(TcaCopies, ArriveAsThoughCopiedInMemoryByHostChains)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        expect_copies(0, seed);
        expect_copies(tcaDMAPipeline, seed);
    }
}

TEST(TcaCopies, ArriveAsThoughCopiedInMemoryByBoardChains)
{
    for (uint64_t seed = 5; seed <= 8; seed++) {
        expect_copies(tcaDMAUseInternal, seed);
        expect_copies(tcaDMAUseInternal | tcaDMAPipeline | tcaDMAContinue | tcaDMANotify, seed);
    }
}

// One descriptor moves less than 16 MiB.
static void long_copy(void *arg, peach2_handle_t *board)
{
    const size_t bytes = 17 * MIB + 4;
    void *from, *to;
    tcaHandle source, destination;
    (void)arg, (void)board;
    EXPECT_EQ(tcaInit(), tcaSuccess);
    ASSERT_EQ(tcaMalloc(&from, bytes, tcaMemoryCPU), tcaSuccess);
    ASSERT_EQ(tcaMalloc(&to, bytes, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&source, from, bytes, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&destination, to, bytes, tcaMemoryCPU), tcaSuccess);
    site_fill(from, bytes, FILL);
    EXPECT_EQ(cluster_copy(&destination, 0, &source, 0, bytes, tcaDMANotify), tcaSuccess);
    EXPECT_EQ(tcaWaitDMARecvDesc(&source, 0, 1), tcaSuccess);
    EXPECT_MEMEQ(to, from, bytes);
}

TEST(TcaCopies, LongerThanADescriptorArriveWhole)
{
    struct cluster cluster = {0};
    site_init(&cluster.site, 1);
    cluster.site.scenario->nodes[0].board.fidelity = SCN_FIDELITY_TWIN;
    site_build(&cluster.site);
    cluster_run(&cluster, long_copy, NULL);
    cluster_fini(&cluster);
}

// The second copy reads what the first one writes.
static void copies_the_copy(void *arg, peach2_handle_t *board)
{
    enum { BYTES = 4096 };
    struct cluster *c = arg;
    const tcaHandle *own = &c->handles[0];
    cluster_memory(c, board, 1);
    site_fill(c->memory[0], BYTES, FILL);
    tcaDesc *desc = tcaDescNew();
    EXPECT_EQ(tcaDescSetMemcpy(desc, own, BYTES, own, 0, BYTES, tcaDMAPipeline, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaDescSetMemcpy(desc, own, 2 * BYTES, own, BYTES, BYTES, tcaDMANotify, 0, 1), tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 0), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(0), tcaSuccess);
    EXPECT_EQ(tcaWaitDMARecvDesc(own, 0, 1), tcaSuccess);
    EXPECT_MEMEQ(c->memory[0] + 2 * BYTES, c->memory[0], BYTES);
    EXPECT_EQ(tcaWaitDMAC(0), tcaSuccess);
}

TEST(TcaCopies, WaitForEarlierOnesUnlessTheyThemselvesArePipelined)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    cluster_run(&cluster, copies_the_copy, NULL);
    cluster_fini(&cluster);
}
