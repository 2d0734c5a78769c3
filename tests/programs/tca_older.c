// A program of the older generation: tables of descriptors by index, lists of handles that are shorter than the world,
// a gigabyte of contiguous GPU memory, and messages by stores of the processor. Ranks 0 and 1 exchange messages; of the
// others, rank 2 also asks for the short lists, and rank 3 does not.
#include <cuda_runtime.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tca-api.h>

enum { CHANNEL = 1, SLOT = 0, TAG = 0x100, MEMBERS = 2, BYTES = 4096 };

static const size_t GIGABYTE = (size_t)1 << 30;
static int rank;

#define CHECK(expression)                                                                                              \
    do {                                                                                                               \
        if (!(expression)) {                                                                                           \
            fprintf(stderr, "rank %d, line %d: %s: %s\n", rank, __LINE__, #expression, tcaLastMessage());              \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

static tcaDMAFlag flags_of(bool last)
{
    return last ? tcaDMANotify | tcaDMANotifySelf : tcaDMAContinue;
}

// The end of a gigabyte goes to the beginning of the other rank's, in two pieces.
static void exchange(const tcaHandle *list, char *device, char *host)
{
    int peer = 1 - rank, slot = 0, first, table = -1;
    memset(host, rank + 1, BYTES);
    CHECK(cudaMemcpy(device + GIGABYTE - BYTES, host, BYTES, cudaMemcpyDefault) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(tcaDMADescInt_Init() == TCA_SUCCESS);
    CHECK(tcaSetDMADescInt_Memcpy(slot, &slot, &list[peer], 8192, &list[rank], GIGABYTE - BYTES, 64, flags_of(true), 9,
                                  9) == TCA_SUCCESS); // of another chain
    first = slot;
    CHECK(tcaSetDMADescInt_Memcpy(slot, &slot, &list[peer], 0, &list[rank], GIGABYTE - BYTES, BYTES / 2,
                                  flags_of(false), SLOT, TAG) == TCA_SUCCESS);
    CHECK(tcaSetDMADescInt_Memcpy2D(slot, &slot, &list[peer], BYTES / 2, 64, &list[rank], GIGABYTE - BYTES / 2, 64, 64,
                                    BYTES / 2 / 64, flags_of(true), SLOT, TAG) == TCA_SUCCESS);
    for (int turn = 0; turn < 3; turn++) {
        CHECK(tcaSetDMAChainInt(CHANNEL, first) == TCA_SUCCESS);
        CHECK(tcaStartDMADesc(CHANNEL) == TCA_SUCCESS);
        CHECK(tcaWaitDMARecvDesc(&list[rank], SLOT, TAG) == TCA_SUCCESS);
        CHECK(tcaWaitDMARecvDesc(&list[peer], SLOT, TAG) == TCA_SUCCESS);
    }
    CHECK(tcaCreateDMADesc(&table, 8) == TCA_SUCCESS);
    CHECK(tcaSetDMADesc_Memcpy(table, 0, &slot, &list[peer], 2 * BYTES, &list[rank], GIGABYTE - BYTES, BYTES,
                               flags_of(true), SLOT, TAG) == TCA_SUCCESS);
    CHECK(tcaSetDMAChain(CHANNEL, table) == TCA_SUCCESS);
    CHECK(tcaStartDMADesc(CHANNEL) == TCA_SUCCESS);
    CHECK(tcaWaitDMARecvDesc(&list[rank], SLOT, TAG) == TCA_SUCCESS);
    CHECK(tcaWaitDMARecvDesc(&list[peer], SLOT, TAG) == TCA_SUCCESS);
    CHECK(cudaMemcpy(host, device, 3 * BYTES, cudaMemcpyDefault) == cudaSuccess);
    for (int i = 0; i < 3 * BYTES; i++) {
        CHECK(host[i] == (i < BYTES || i >= 2 * BYTES ? peer + 1 : 0));
    }
}

// The mark after the data shows that the data are there.
static void message(const tcaHandle *list, char *memory)
{
    tcaPIOHandle pio;
    uint64_t mark = 255;
    volatile uint64_t *arrived = (volatile uint64_t *)(void *)(memory + BYTES);
    if (rank == 0) {
        char data[BYTES];
        memset(data, 0x5a, sizeof data);
        CHECK(tcaSetPIORegion(&pio, &list[1], 0, 64) == TCA_SUCCESS);
        CHECK(tcaSendPIO(&pio, 0, data, sizeof data) == TCA_SUCCESS);
        CHECK(tcaSendPIO(&pio, BYTES, &mark, sizeof mark) == TCA_SUCCESS);
        CHECK(tcaSendPIOCommit() == TCA_SUCCESS);
    } else {
        while (*arrived != mark) {
            _mm_pause();
        }
        for (int i = 0; i < BYTES; i++) {
            CHECK(memory[i] == 0x5a);
        }
    }
}

int main(int argc, char **argv)
{
    int ranks;
    tcaHandle *gpu_list, *cpu_list, *all;
    void *device, *memory, *host, *nothing = &nothing;
    tcaHandle empty;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(ranks == 4);
    CHECK(tcaInit() == TCA_SUCCESS);
    CHECK(tcaMalloc(&memory, 2 * BYTES, tcaMemoryCPU) == TCA_SUCCESS);
    if (rank < MEMBERS) {
        CHECK(tcaMalloc(&device, GIGABYTE, tcaMemoryGPU) == TCA_SUCCESS);
        CHECK(cudaMallocHost(&host, 3 * BYTES) == cudaSuccess);
        CHECK(tcaCreateHandleList(&gpu_list, MEMBERS, device, GIGABYTE) == TCA_SUCCESS);
        exchange(gpu_list, device, host);
    } else if (rank == MEMBERS) {
        CHECK(tcaCreateHandleList(&gpu_list, MEMBERS, NULL, 0) == TCA_SUCCESS);
    }
    CHECK(tcaMalloc(&nothing, 0, tcaMemoryGPU) == TCA_SUCCESS); // a side without a halo
    CHECK(tcaCreateHandle(&empty, nothing, 0, tcaMemoryGPU) == TCA_SUCCESS);
    CHECK(tcaDestroyHandle(&empty) == TCA_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(tcaCreateHandleList(&all, ranks, memory, 2 * BYTES) == TCA_SUCCESS);
    if (rank <= MEMBERS) {
        CHECK(tcaCreateHandleList(&cpu_list, MEMBERS, memory, 2 * BYTES) == TCA_SUCCESS);
        CHECK(memcmp(cpu_list, all, MEMBERS * sizeof *all) == 0);
    }
    if (rank < MEMBERS) {
        message(cpu_list, memory);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("library %s: 0 wrong\n", TCA_LIB_VERSION);
    }
    MPI_Finalize();
    return 0;
}
