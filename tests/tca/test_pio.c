// Stores of the processor into memory of another node, by the library's calls.
#include "tests/support/cluster.h"
#include "verbs-shim/libtca/tca-api.h"

#define DATA_BYTES 512u

static void stores(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    uint64_t mark = 255;
    tcaPIOHandle pio;
    cluster_memory(c, board, 2);
    site_fill(c->memory[0], DATA_BYTES, 3);
    EXPECT_EQ(tcaSetPIORegion(&pio, &c->handles[1], 0, 64), tcaSuccess); // the size does not limit what is sent
    EXPECT_EQ(tcaSendPIO(&pio, 0, c->memory[0], DATA_BYTES), tcaSuccess);
    EXPECT_EQ(tcaSendPIO(&pio, DATA_BYTES, &mark, sizeof mark), tcaSuccess);
    EXPECT_EQ(tcaSendPIOCommit(), tcaSuccess);
    cluster_await(board, &c->flag);
}

static void polls(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    const struct backend *backend = peach2_backend(board);
    cluster_memory(c, board, 2);
    const volatile uint64_t *mark = (volatile uint64_t *)(void *)(c->memory[1] + DATA_BYTES);
    while (*mark != 255) {
        backend->ops->cost(backend->ctx, BACKEND_COST_LOAD_STORE, 1);
    }
    EXPECT_TRUE(site_is_filled(c->memory[1], DATA_BYTES, 3)); // it was sent first, so it arrives first
    c->flag = true;
}

TEST(TcaPio, ArrivesInTheOrderInWhichItWasSent)
{
    struct cluster c;
    cluster_init(&c, 2);
    cluster_run(&c, stores, polls);
    cluster_fini(&c);
}

static void refusals(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    tcaPIOHandle pio, forged = {.windowAddress = 64, .size = 64};
    EXPECT_EQ(tcaSetPIORegion(&pio, NULL, 0, 64), tcaErrorNotInitialized);
    EXPECT_EQ(tcaSendPIOCommit(), tcaErrorNotInitialized);
    cluster_memory(c, board, 2);
    tcaHandle changed = c->handles[1];
    changed.size *= 2;
    EXPECT_EQ(tcaSetPIORegion(&pio, NULL, 0, 64), tcaErrorArgument);
    EXPECT_EQ(tcaSetPIORegion(NULL, &c->handles[1], 0, 64), tcaErrorArgument);
    EXPECT_EQ(tcaSetPIORegion(&pio, &changed, 0, 64), tcaErrorHandle);
    EXPECT_EQ(tcaSetPIORegion(&pio, &c->handles[1], CLUSTER_BYTES + 1, 0), tcaErrorRange);
    EXPECT_EQ(tcaSetPIORegion(&pio, &c->handles[1], CLUSTER_BYTES - 8, 8), tcaSuccess);
    EXPECT_EQ(tcaSendPIO(&pio, 4, c->memory[0], 8), tcaErrorRange);
    EXPECT_EQ(tcaSendPIO(&pio, SIZE_MAX, c->memory[0], 8), tcaErrorRange);
    EXPECT_EQ(tcaSendPIO(&pio, 0, NULL, 8), tcaErrorArgument);
    EXPECT_EQ(tcaSendPIO(NULL, 0, c->memory[0], 8), tcaErrorArgument);
    EXPECT_EQ(tcaSendPIO(&forged, 0, c->memory[0], 8), tcaErrorHandle);
    EXPECT_EQ(tcaDestroyHandle(&changed), tcaSuccess);
    EXPECT_STREQ(tcaGetErrorString(tcaErrorSlot), tcaStrError(tcaErrorSlot));
    c->flag = true;
}

TEST(TcaPio, RefusesWhatLiesOutsideOfTheMemory)
{
    struct cluster c;
    cluster_init(&c, 2);
    cluster_run(&c, refusals, cluster_target);
    cluster_fini(&c);
}
