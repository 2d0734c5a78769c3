// Initialisation, memory and handles, and their refusals.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cluster.h"

static void run_alone(plat_program_fn program)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    cluster_run(&cluster, program, NULL);
    cluster_fini(&cluster);
}

static void before_init(void *arg, peach2_handle_t *board)
{
    (void)arg;
    (void)board;
    void *memory;
    tcaHandle handle;
    EXPECT_EQ(tcaMalloc(&memory, 64, tcaMemoryCPU), tcaErrorNotInitialized);
    EXPECT_EQ(tcaFree(&memory, tcaMemoryCPU), tcaErrorNotInitialized);
    EXPECT_EQ(tcaCreateHandle(&handle, &memory, 8, tcaMemoryCPU), tcaErrorNotInitialized);
    EXPECT_NULL(tcaDescNew());
    EXPECT_EQ(tcaStartDMADesc(0), tcaErrorNotInitialized);
    EXPECT_EQ(tcaWaitDMAC(0), tcaErrorNotInitialized);
    EXPECT_CONTAINS(tcaLastMessage(), "tcaInit");
    EXPECT_EQ(tcaInit(), tcaSuccess);
    EXPECT_EQ(tcaInit(), tcaSuccess);
}

TEST(TcaInit, ComesBeforeEverythingElse)
{
    run_alone(before_init);
}

TEST(TcaInit, IsRefusedWhereThereIsNoBoard)
{
    EXPECT_EQ(tcaInit(), tcaErrorNoBoard);
}

static void no_memory_left(void *arg, peach2_handle_t *board)
{
    (void)arg;
    const struct backend *backend = peach2_backend(board);
    struct backend_buffer buffer;
    void *memory;
    for (size_t bytes = 1024 * MIB; bytes >= 4096; bytes /= 2) {
        while (backend->ops->alloc_pinned(backend->ctx, bytes, &buffer) == 0) {
        }
    }
    EXPECT_EQ(tcaInit(), tcaErrorNoMemory);
    EXPECT_EQ(tcaMalloc(&memory, 64, tcaMemoryCPU), tcaErrorNotInitialized);
}

// The process then ends normally.
TEST(TcaInit, IsRefusedWithoutPinnedMemory)
{
    run_alone(no_memory_left);
}

TEST(TcaErrors, EachSaysWhatToDo)
{
    for (int error = 0; error >= tcaErrorInUse; error--) {
        EXPECT_GT(strlen(tcaStrError(error)), 5);
    }
    EXPECT_STREQ(tcaStrError(1), "unknown error");
    EXPECT_STREQ(tcaStrError(tcaErrorInUse - 1), "unknown error");
    EXPECT_STREQ(tcaStrError(-2147483647 - 1), "unknown error");
}

static void memory_refusals(void *arg, peach2_handle_t *board)
{
    (void)arg;
    (void)board;
    void *memory = NULL;
    EXPECT_EQ(tcaInit(), tcaSuccess);
    EXPECT_EQ(tcaMalloc(&memory, 4096, tcaMemoryGPU), tcaErrorNotSupported);
    EXPECT_EQ(tcaMalloc(&memory, 0, tcaMemoryCPU), tcaErrorArgument);
    EXPECT_EQ(tcaMalloc(NULL, 4096, tcaMemoryCPU), tcaErrorArgument);
    EXPECT_EQ(tcaMalloc(&memory, SIZE_MAX, tcaMemoryCPU), tcaErrorNoMemory);
    EXPECT_EQ(tcaMalloc(&memory, 1024 * MIB, tcaMemoryCPU), tcaErrorNoMemory);
    EXPECT_NULL(memory);
    EXPECT_EQ(tcaMalloc(&memory, 4096, tcaMemoryCPU), tcaSuccess);
    EXPECT_TRUE(site_is_value(memory, 4096, 0));
    EXPECT_EQ(tcaFree(memory, tcaMemoryGPU), tcaErrorNotTcaMemory);
    EXPECT_EQ(tcaFree((uint8_t *)memory + 4, tcaMemoryCPU), tcaErrorNotTcaMemory);
    EXPECT_EQ(tcaFree(NULL, tcaMemoryCPU), tcaErrorNotTcaMemory);
    EXPECT_EQ(tcaFree(memory, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaFree(memory, tcaMemoryCPU), tcaErrorNotTcaMemory);
}

TEST(TcaMemory, RefusesWhatItDidNotGive)
{
    run_alone(memory_refusals);
}

static void handle_refusals(void *arg, peach2_handle_t *board)
{
    (void)arg;
    (void)board;
    tcaHandle handle;
    void *memory = NULL, *ordinary = malloc(4096);
    EXPECT_EQ(tcaInit(), tcaSuccess);
    EXPECT_EQ(tcaMalloc(&memory, 4096, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&handle, memory, 4096, tcaMemoryGPU), tcaErrorNotSupported);
    EXPECT_EQ(tcaCreateHandle(NULL, memory, 4096, tcaMemoryCPU), tcaErrorArgument);
    EXPECT_EQ(tcaCreateHandle(&handle, NULL, 4096, tcaMemoryCPU), tcaErrorArgument);
    EXPECT_EQ(tcaCreateHandle(&handle, ordinary, 4096, tcaMemoryCPU), tcaErrorNotTcaMemory);
    EXPECT_CONTAINS(tcaLastMessage(), "tcaMalloc");
    EXPECT_EQ(tcaCreateHandle(&handle, memory, 4097, tcaMemoryCPU), tcaErrorRange);
    EXPECT_EQ(tcaCreateHandle(&handle, memory, 0, tcaMemoryCPU), tcaErrorRange);
    EXPECT_EQ(tcaCreateHandle(&handle, (uint8_t *)memory + 4092, 8, tcaMemoryCPU), tcaErrorRange);
    EXPECT_EQ(tcaCreateHandle(&handle, (uint8_t *)memory + 2, 8, tcaMemoryCPU), tcaErrorAlignment);
    EXPECT_EQ(tcaCreateHandle(&handle, (uint8_t *)memory + 4, 8, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaFree(memory, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&handle, memory, 8, tcaMemoryCPU), tcaErrorNotTcaMemory);
    free(ordinary);
}

TEST(TcaHandle, IsRefusedForMemoryThatIsNotPinnedOrNotWhole)
{
    run_alone(handle_refusals);
}

// A collective of one rank and a second rank that is simulated here.
struct fake_comm {
    int error;
    int64_t other_error;
};

static int fake_allgather(void *ctx, const void *mine, void *all, size_t bytes)
{
    const struct fake_comm *fake = ctx;
    memcpy(all, mine, bytes);
    memcpy((char *)all + bytes, mine, bytes);
    memcpy((char *)all + 2 * bytes - sizeof fake->other_error, &fake->other_error, sizeof fake->other_error);
    return fake->error;
}

static void handle_list(void *arg, peach2_handle_t *board)
{
    (void)arg;
    (void)board;
    void *memory = NULL;
    tcaHandle *list = NULL;
    struct fake_comm fake = {0};
    struct tcaComm comm = {&fake, 0, 2, fake_allgather};
    EXPECT_EQ(tcaInit(), tcaSuccess);
    EXPECT_EQ(tcaMalloc(&memory, 4096, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandleList(&list, 2, memory, 4096), tcaErrorComm); // no tcaComm yet
    comm.ranks = 17;
    EXPECT_EQ(tcaSetComm(&comm), tcaErrorNodes);
    comm.ranks = 0;
    EXPECT_EQ(tcaSetComm(&comm), tcaErrorArgument);
    comm.ranks = 2;
    EXPECT_EQ(tcaSetComm(&comm), tcaSuccess);
    EXPECT_EQ(tcaCreateHandleList(&list, 17, memory, 4096), tcaErrorNodes);
    EXPECT_CONTAINS(tcaLastMessage(), "at most 16 nodes");
    EXPECT_EQ(tcaCreateHandleList(&list, 3, memory, 4096), tcaErrorNodes);
    EXPECT_EQ(tcaCreateHandleList(NULL, 2, memory, 4096), tcaErrorArgument);
    EXPECT_EQ(tcaCreateHandleList(&list, 2, memory, 5000), tcaErrorRange);
    fake.other_error = tcaErrorNotTcaMemory;
    EXPECT_EQ(tcaCreateHandleList(&list, 2, memory, 4096), tcaErrorNotTcaMemory);
    EXPECT_CONTAINS(tcaLastMessage(), "rank 1");
    fake = (struct fake_comm){.error = -EIO};
    EXPECT_EQ(tcaCreateHandleList(&list, 2, memory, 4096), tcaErrorComm);
    EXPECT_NULL(list);
    fake.error = 0;
    EXPECT_EQ(tcaCreateHandleList(&list, 2, memory, 4096), tcaSuccess);
    ASSERT_NOT_NULL(list);
    EXPECT_MEMEQ(&list[0], &list[1], sizeof *list);
    free(list);
    EXPECT_EQ(tcaCreateHandleList(&list, 0, memory, 4096), tcaErrorNodes);
    EXPECT_EQ(tcaCreateHandleList(&list, 1, memory, 4096), tcaSuccess); // fewer than there are ranks
    EXPECT_EQ(list[0].size, 4096);
    free(list);
    EXPECT_EQ(tcaCreateHandleList(&list, 2, NULL, 0), tcaSuccess); // a side without a halo
    EXPECT_EQ(list[0].size, 0);
    free(list);
}

TEST(TcaHandleList, HasEveryRanksHandleOrNone)
{
    run_alone(handle_list);
}
