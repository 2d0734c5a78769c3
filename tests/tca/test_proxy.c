// Remote reads by proxy and their interrupts, on hardware.
#include <errno.h>

#include "tests/support/cluster.h"
#include "verbs-shim/peach2/peach2_proxy.h"

static void raise_own(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    uint32_t pending = 0;
    EXPECT_EQ(peach2_interrupt_wait(board, 0, &pending), -EINVAL); // no interrupt is enabled
    EXPECT_EQ(peach2_interrupt_enable(board, 0x300), 0);
    EXPECT_EQ(peach2_interrupt_wait(board, 1000, &pending), -ETIMEDOUT);
    EXPECT_EQ(peach2_interrupt_raise(board, 0, 0x100), 0);
    EXPECT_EQ(peach2_interrupt_wait(board, 0, &pending), 0);
    EXPECT_EQ(pending, 0x100);
    EXPECT_EQ(peach2_interrupt_raise(board, 0, 0x400), 0); // pending, but not enabled
    EXPECT_EQ(peach2_interrupt_wait(board, 20000, &pending), -ETIMEDOUT);
    EXPECT_EQ(peach2_interrupt_raise(board, 0, 0x200), 0);
    EXPECT_EQ(peach2_interrupt_wait(board, 0, &pending), 0);
    EXPECT_EQ(pending, 0x600);
    EXPECT_EQ(peach2_interrupt_raise(board, 0, 0x1), -EINVAL); // belongs to a channel
    EXPECT_EQ(peach2_interrupt_raise(board, 1, 0x100), -EINVAL);
    (void)site;
}

TEST(Interrupts, ReachTheOwnHostOnce)
{
    struct site site;
    site_init(&site, 1);
    site_build(&site);
    site_run(&site, raise_own);
    site_fini(&site);
}

static void dma_with_interrupt(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    struct backend_buffer buffer = site_pinned(board, 8192);
    const struct peach2_transfer transfer = {.source = buffer.bus_address,
                                             .destination = buffer.bus_address + 4096,
                                             .bytes = 64,
                                             .flags = PEACH2_TRANSFER_INTERRUPT};
    uint32_t pending = 0;
    unsigned error = 99;
    peach2_chain_t *chain = NULL;
    EXPECT_EQ(peach2_interrupt_enable(board, 0xf), 0);
    EXPECT_EQ(peach2_dma_prepare(board, 2, &transfer, NULL), 0);
    EXPECT_EQ(peach2_dma_start(board, 2), 0);
    EXPECT_EQ(peach2_interrupt_wait(board, 0, &pending), 0);
    EXPECT_EQ(pending, 4);
    EXPECT_EQ(peach2_chain_create(board, PEACH2_CHAIN_HOST, 0, &transfer, 1, &chain), 0);
    EXPECT_EQ(peach2_chain_prepare(board, 1, chain, NULL), 0);
    EXPECT_EQ(peach2_dma_start(board, 1), 0);
    EXPECT_EQ(peach2_interrupt_wait(board, 0, &pending), 0);
    EXPECT_EQ(pending, 2);
    EXPECT_EQ(peach2_dma_wait(board, 1, &error), 0);
    (void)site;
}

TEST(Interrupts, TellOfADmaAndOfADescriptor)
{
    struct site site;
    site_init(&site, 1);
    site_build(&site);
    site_run(&site, dma_with_interrupt);
    site_fini(&site);
}

// Node 1 serves in its own thread; node 0 reads and ends the service.
struct reading {
    struct cluster cluster;
    struct peach2_proxy_address address;
    uint64_t source;
    bool published, given_up;
};

static void server(void *arg, peach2_handle_t *board)
{
    struct reading *r = arg;
    peach2_proxy_t *proxy = NULL;
    struct backend_buffer buffer = site_pinned(board, 16384);
    site_fill(buffer.address, 16384, 6);
    r->source = buffer.bus_address;
    EXPECT_EQ(peach2_proxy_create(board, 0, &proxy), 0);
    r->address = peach2_proxy_address(proxy);
    r->published = true;
    EXPECT_EQ(peach2_proxy_serve(proxy), 0);
    peach2_proxy_destroy(proxy);
}

static void reader(void *arg, peach2_handle_t *board)
{
    struct reading *r = arg;
    struct backend_buffer buffer = site_pinned(board, 16384);
    peach2_reader_t *remote = NULL;
    unsigned error = 99;
    cluster_await(board, &r->published);
    EXPECT_EQ(peach2_reader_create(board, &r->address, &remote), 0);
    EXPECT_EQ(peach2_reader_wait(remote, 0, &error), -EINVAL);
    for (unsigned i = 0; i < PEACH2_PROXY_REQUESTS; i++) {
        EXPECT_EQ(peach2_reader_start(remote, r->source + 1024 * i, buffer.bus_address + 1024 * i, 1024), 0);
    }
    EXPECT_EQ(peach2_reader_start(remote, r->source, buffer.bus_address, 1024), -EAGAIN);
    for (unsigned i = 0; i < PEACH2_PROXY_REQUESTS; i++) {
        EXPECT_EQ(peach2_reader_wait(remote, 0, &error), 0);
    }
    EXPECT_TRUE(site_is_filled(buffer.address, 1024 * PEACH2_PROXY_REQUESTS, 6));
    EXPECT_EQ(peach2_reader_start(remote, r->source + 2, buffer.bus_address, 1024), 0); // misaligned
    EXPECT_EQ(peach2_reader_wait(remote, 0, &error), -EREMOTEIO);
    EXPECT_EQ(error, PEACH2_DMA_MISALIGNED);
    EXPECT_EQ(peach2_reader_start(remote, r->source, buffer.bus_address + 8192, 4), 0);
    EXPECT_EQ(peach2_reader_wait(remote, 0, &error), 0);
    peach2_reader_destroy(remote);
    EXPECT_EQ(peach2_proxy_stop(board, 1), 0);
}

TEST(Proxy, AnswersReadsInOrderAndTellsWhatFailed)
{
    struct reading r = {0};
    cluster_init(&r.cluster, 2);
    cluster_run(&r.cluster, reader, server);
    cluster_fini(&r.cluster);
}

// Node 0 serves, and the last of the readers ends the service.
struct asking {
    struct reading reading;
    unsigned left; // readers
};

static void first_server(void *arg, peach2_handle_t *board)
{
    struct asking *a = arg;
    server(&a->reading, board);
}

static void asks_at_once(void *arg, peach2_handle_t *board)
{
    struct asking *a = arg;
    struct backend_buffer buffer = site_pinned(board, 4096);
    peach2_reader_t *remote = NULL;
    unsigned error = 99;
    cluster_await(board, &a->reading.published);
    EXPECT_EQ(peach2_reader_create(board, &a->reading.address, &remote), 0);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(peach2_reader_start(remote, a->reading.source + 1024 * i, buffer.bus_address + 1024 * i, 1024), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        TEST_TRACE("node %u, request %u", peach2_node(board), i);
        EXPECT_EQ(peach2_reader_wait(remote, 0, &error), 0);
    }
    EXPECT_TRUE(site_is_filled(buffer.address, 3 * 1024, 6));
    peach2_reader_destroy(remote);
    if (--a->left == 0) {
        EXPECT_EQ(peach2_proxy_stop(board, 0), 0);
    }
}

TEST(Proxy, AnswersEachNodeThatAsks)
{
    struct asking a = {.left = 3};
    cluster_init(&a.reading.cluster, 4);
    cluster_run(&a.reading.cluster, first_server, asks_at_once);
    cluster_fini(&a.reading.cluster);
}

// The interrupt takes 5 us to wake the service up. The word that stops it arrives before.
static void asks_and_stops(void *arg, peach2_handle_t *board)
{
    struct reading *r = arg;
    struct backend_buffer buffer = site_pinned(board, 4096);
    peach2_reader_t *remote = NULL;
    unsigned error = 99;
    cluster_await(board, &r->published);
    const struct backend *backend = peach2_backend(board);
    backend->ops->cost(backend->ctx, BACKEND_COST_TIME, 100000); // the service waits for an interrupt
    EXPECT_EQ(peach2_reader_create(board, &r->address, &remote), 0);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(peach2_reader_start(remote, r->source + 1024 * i, buffer.bus_address + 1024 * i, 1024), 0);
    }
    EXPECT_EQ(peach2_proxy_stop(board, 1), 0);
    for (unsigned i = 0; i < 2; i++) {
        TEST_TRACE("request %u", i);
        EXPECT_EQ(peach2_reader_wait(remote, 0, &error), 0);
    }
    EXPECT_TRUE(site_is_filled(buffer.address, 2 * 1024, 6));
    peach2_reader_destroy(remote);
}

TEST(Proxy, AnswersTheRequestsThatWaitWhenItIsStopped)
{
    struct reading r = {0};
    site_init(&r.cluster.site, 2);
    r.cluster.site.scenario->nodes[1].host.interrupt_ps = 5 * SIM_PS_PER_US;
    site_build(&r.cluster.site);
    cluster_run(&r.cluster, asks_and_stops, server);
    cluster_fini(&r.cluster);
}

static void idle_server(void *arg, peach2_handle_t *board)
{
    struct reading *r = arg;
    peach2_proxy_t *proxy = NULL;
    EXPECT_EQ(peach2_proxy_create(board, 0, &proxy), 0);
    r->address = peach2_proxy_address(proxy);
    r->published = true;
    cluster_await(board, &r->given_up);
    peach2_proxy_destroy(proxy);
}

static void unanswered_reader(void *arg, peach2_handle_t *board)
{
    struct reading *r = arg;
    struct backend_buffer buffer = site_pinned(board, 4096);
    peach2_reader_t *remote = NULL;
    unsigned error = 99;
    cluster_await(board, &r->published);
    EXPECT_EQ(peach2_reader_create(board, &r->address, &remote), 0);
    EXPECT_EQ(peach2_reader_start(remote, buffer.bus_address, buffer.bus_address, 1024), 0);
    EXPECT_EQ(peach2_reader_wait(remote, 1000, &error), -ETIMEDOUT);
    EXPECT_EQ(peach2_reader_wait(remote, 0, &error), -ETIMEDOUT);
    peach2_reader_destroy(remote);
    r->given_up = true;
}

TEST(Proxy, IsNotWaitedForForever)
{
    struct reading r = {0};
    cluster_init(&r.cluster, 2);
    cluster_run(&r.cluster, unanswered_reader, idle_server);
    cluster_fini(&r.cluster);
}
