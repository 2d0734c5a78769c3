// TLPs that leave the GPU while the other end of its link holds writes back.
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

enum { HEADERS = 8, QUEUE = 4, HELD_MAX = 512 };

// A GPU and a link whose other end keeps posted writes in its receive buffer until pair_release.
struct pair {
    sim_t *sim;
    pcie_pool_t *pool;
    pcie_link_t *link;
    gpu_t *gpu;
    bool holds;
    pcie_tlp_t *held[HELD_MAX];
    unsigned held_count, writes, reads, writes_before_completion;
    uint64_t device;
};

static void end_receive(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp)
{
    struct pair *pair = ctx;
    if (tlp->kind == PCIE_TLP_MWR) {
        pair->writes++;
        if (pair->holds) {
            pair->held[pair->held_count++] = tlp;
            return;
        }
    } else if (tlp->kind == PCIE_TLP_MRD) {
        pair->reads++;
        (void)pcie_end_offer(end, pcie_tlp_completion(tlp, 0, 0, pcie_tlp_byte_count(tlp), NULL));
    } else {
        pair->writes_before_completion = pair->writes;
    }
    pcie_end_release(end, tlp);
    pcie_tlp_unref(tlp);
}

static void end_ready(void *ctx, pcie_end_t *end)
{
    (void)ctx;
    (void)end;
}

static const struct pcie_end_ops END_OPS = {.receive = end_receive, .ready = end_ready};

static void pair_init(struct pair *pair)
{
    const struct pcie_end_config end = {.headers = {HEADERS, 8, 8}, .data = {1024, 8, 1024}, .tx_queue_tlps = QUEUE};
    const struct pcie_link_config link = {.generation = 2, .lanes = 16, .mps_bytes = 256, .ends = {end, end}};
    const struct sim_config sim_config = {.seed = 1};
    const struct fixture_config config = fixture_config();
    memset(pair, 0, sizeof *pair);
    EXPECT_EQ(sim_create(&sim_config, &pair->sim), SIM_OK);
    EXPECT_EQ(pcie_pool_create(&pair->pool), SIM_OK);
    EXPECT_EQ(pcie_link_create(pair->sim, pair->pool, "link", &link, &pair->link), SIM_OK);
    EXPECT_EQ(gpu_create(pair->sim, pair->pool, "gpu", &config.gpu, &pair->gpu), SIM_OK);
    pcie_end_attach(pcie_link_end(pair->link, 0), &END_OPS, pair);
    gpu_connect(pair->gpu, pcie_link_end(pair->link, 1), FIXTURE_BAR(0));
    uint64_t offset;
    EXPECT_EQ(gpu_memory_alloc(pair->gpu, 65536, &pair->device), SIM_OK);
    EXPECT_EQ(gpu_pin(pair->gpu, pair->device, 65536, &offset), SIM_OK);
    EXPECT_EQ(offset, 0);
    pair->holds = true;
}

static void pair_release(struct pair *pair)
{
    pair->holds = false;
    for (unsigned i = 0; i < pair->held_count; i++) {
        pcie_end_release(pcie_link_end(pair->link, 0), pair->held[i]);
        pcie_tlp_unref(pair->held[i]);
    }
    (void)sim_run(pair->sim);
}

static void pair_fini(struct pair *pair)
{
    gpu_destroy(pair->gpu);
    pcie_link_destroy(pair->link);
    EXPECT_EQ(pcie_pool_destroy(pair->pool), 0);
    sim_destroy(pair->sim);
}

static void copy_out(struct pair *pair, uint64_t bytes)
{
    gpu_queue_t *queue;
    const struct gpu_work work = {
        .kind = GPU_WORK_COPY_OUT, .bus_address = 2 * MIB, .source = pair->device, .bytes = bytes};
    ASSERT_EQ(gpu_queue_create(pair->gpu, &queue), SIM_OK);
    EXPECT_EQ(gpu_queue_submit(queue, &work, NULL), SIM_OK);
    (void)sim_run(pair->sim);
}

TEST(Egress, AnEngineMakesNoMoreWritesThanTheLinkTakesAndOne)
{
    struct pair pair;
    pair_init(&pair);
    copy_out(&pair, 65536);
    EXPECT_EQ(pair.writes, HEADERS);
    EXPECT_EQ(sim_counter_value(pair.sim, "gpu", "copy_writes", NULL), HEADERS + QUEUE + 1);
    pair_release(&pair);
    EXPECT_EQ(pair.writes, 256);
    EXPECT_EQ(pair.reads, 1); // the read after the writes
    pair_fini(&pair);
}

TEST(Egress, ACompletionStaysBehindTheWritesBeforeIt)
{
    struct pair pair;
    pair_init(&pair);
    copy_out(&pair, 65536);
    (void)pcie_end_offer(pcie_link_end(pair.link, 0), pcie_tlp_read(pair.pool, 0, 0, FIXTURE_BAR(0), 64));
    (void)sim_run(pair.sim);
    EXPECT_EQ(sim_counter_value(pair.sim, "gpu", "bar_read_bytes", NULL), 64);
    EXPECT_EQ(pair.writes_before_completion, 0);
    pair_release(&pair);
    EXPECT_BETWEEN(pair.writes_before_completion, HEADERS + QUEUE + 1, 255);
    pair_fini(&pair);
}

TEST(Egress, AReadOfAnEngineStaysBehindTheWritesBeforeIt)
{
    struct pair pair;
    pair_init(&pair);
    copy_out(&pair, (HEADERS + QUEUE + 1) * 256); // the last one is refused, and the read of no bytes is behind it
    EXPECT_EQ(pair.reads, 0);
    pair_release(&pair);
    EXPECT_EQ(pair.writes, HEADERS + QUEUE + 1);
    EXPECT_EQ(pair.reads, 1);
    pair_fini(&pair);
}

TEST(Egress, WritesIntoTheWindowAreTakenWhileItsOwnAreStuck)
{
    struct pair pair;
    pair_init(&pair);
    copy_out(&pair, 65536);
    for (unsigned i = 0; i < 3; i++) {
        (void)pcie_end_offer(pcie_link_end(pair.link, 0),
                             pcie_tlp_write(pair.pool, 0, FIXTURE_BAR(0) + i * 4, 4, "take"));
    }
    (void)sim_run(pair.sim);
    EXPECT_EQ(sim_counter_value(pair.sim, "gpu", "bar_write_bytes", NULL), 12);
    pair_release(&pair);
    pair_fini(&pair);
}
