// Ping-pong between two MPI ranks on the TCA library, as programs for HA-PACS/TCA are written: MPI sets up, libtca
// moves data. A program from outside: it knows nothing of the simulator, and it is not one of the workloads of `tcasim
// run`.
//
//     mpicc tca_mpi_pingpong.c -o tca_mpi_pingpong $(pkg-config --cflags --libs tcasim)
//     tca_mpi_pingpong [-s BYTES] [-n ITERATIONS] [-w WARM-UP] [-g] [-b]
//
// Each rank has memory for a message that it sends and one that it receives, in the host or (-g) in GPU 0. The
// descriptor is set once, in host memory or (-b) in the board's; a turn is one start and one wait for the notification.
// In host memory the first and last word of a message change from turn to turn and are checked in each; every byte is
// checked after the last one. Without -s all sizes from 4 B to 1 MiB. Prints bytes and microseconds of half a round
// trip, the mean of a block of round trips.
#include <cuda_runtime.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tca.h>
#include <unistd.h>

enum { CHANNEL = 0, SLOT = 0, TAG = 1, SMALLEST = 4, LARGEST = 1 << 20 };

struct options {
    size_t bytes; // 0: all sizes
    unsigned iterations, warmup;
    bool gpu, board;
};

struct pingpong {
    struct options options;
    int rank;
    size_t capacity;
    void *send, *receive;               // memory for the boards
    uint32_t *send_host, *receive_host; // the same if in host memory; copies of GPU memory
    tcaHandle send_handle, *receivers;  // receivers: one for each rank
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "tca_mpi_pingpong: %s: %s\n", what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void tca(int code, const char *what)
{
    if (code != tcaSuccess) {
        die(what, tcaStrError(code));
    }
}

static void cuda(cudaError_t code, const char *what)
{
    if (code != cudaSuccess) {
        die(what, cudaGetErrorString(code));
    }
}

// --- messages -------------------------------------------------------------------------------------------------------

static uint32_t word_of(int rank, size_t bytes, size_t index)
{
    return (uint32_t)(index * 2654435761u) ^ (uint32_t)(bytes * 40503u) ^ (rank == 0 ? 0x5a5a5a5au : 0xc3c3c3c3u);
}

static void message_fill(uint32_t *message, int rank, size_t bytes, uint32_t flip)
{
    for (size_t i = 0; i < bytes / 4; i++) {
        message[i] = word_of(rank, bytes, i) ^ flip;
    }
}

static void message_check(const uint32_t *message, int rank, size_t bytes, size_t step, uint32_t turn)
{
    size_t last = bytes / 4 - 1;
    for (size_t i = 0; i <= last; i += step) {
        uint32_t stamp = i == 0 || i == last ? turn : 0;
        if (message[i] != (word_of(rank, bytes, i) ^ stamp)) {
            fprintf(stderr, "byte %zu of a message of %zu B from rank %d is wrong\n", 4 * i, bytes, rank);
            die("turn", "wrong data");
        }
    }
}

static void message_stamp(uint32_t *message, int rank, size_t bytes, uint32_t turn)
{
    size_t last = bytes / 4 - 1;
    message[0] = word_of(rank, bytes, 0) ^ turn;
    message[last] = word_of(rank, bytes, last) ^ turn;
}

// --- turns ----------------------------------------------------------------------------------------------------------

static void turn_send(struct pingpong *p, size_t bytes, uint32_t turn)
{
    if (!p->options.gpu) {
        message_stamp(p->send_host, p->rank, bytes, turn);
    }
    tca(tcaStartDMADesc(CHANNEL), "tcaStartDMADesc");
}

static void turn_receive(struct pingpong *p, size_t bytes, uint32_t turn)
{
    size_t last = bytes / 4 - 1;
    tca(tcaWaitDMARecvDesc(&p->receivers[1 - p->rank], SLOT, TAG), "tcaWaitDMARecvDesc");
    if (!p->options.gpu) {
        message_check(p->receive_host, 1 - p->rank, bytes, last > 0 ? last : 1, turn);
    }
}

static void turns_run(struct pingpong *p, size_t bytes, uint32_t first, uint32_t count)
{
    for (uint32_t turn = first; turn < first + count; turn++) {
        if (p->rank == 0) {
            turn_send(p, bytes, turn);
            turn_receive(p, bytes, turn);
        } else {
            turn_receive(p, bytes, turn);
            turn_send(p, bytes, turn);
        }
    }
}

// The source gets the pattern; the destination gets values that differ from it everywhere.
static void messages_prepare(struct pingpong *p, size_t bytes)
{
    message_fill(p->send_host, p->rank, bytes, 0);
    message_fill(p->receive_host, 1 - p->rank, bytes, 0xffffffffu);
    if (p->options.gpu) {
        cuda(cudaMemcpy(p->send, p->send_host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
        cuda(cudaMemcpy(p->receive, p->receive_host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
        cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
}

static void messages_judge(struct pingpong *p, size_t bytes, uint32_t turn)
{
    if (p->options.gpu) {
        cuda(cudaMemcpy(p->receive_host, p->receive, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
        turn = 0; // messages in GPU memory are not stamped
    }
    message_check(p->receive_host, 1 - p->rank, bytes, 1, turn);
}

static void size_run(struct pingpong *p, size_t bytes)
{
    const struct options *options = &p->options;
    int flags = tcaDMANotify | tcaDMAPipeline | (options->board ? tcaDMAUseInternal : 0);
    tcaDesc *desc = tcaDescNew();
    messages_prepare(p, bytes);
    tca(tcaDescSetMemcpy(desc, &p->receivers[1 - p->rank], 0, &p->send_handle, 0, bytes, flags, SLOT, TAG),
        "tcaDescSetMemcpy");
    tca(tcaDescSet(desc, CHANNEL), "tcaDescSet");
    MPI_Barrier(MPI_COMM_WORLD);
    turns_run(p, bytes, 0, options->warmup);
    double start = MPI_Wtime();
    turns_run(p, bytes, options->warmup, options->iterations);
    double end = MPI_Wtime();
    tca(tcaWaitDMAC(CHANNEL), "tcaWaitDMAC");
    MPI_Barrier(MPI_COMM_WORLD);
    messages_judge(p, bytes, options->warmup + options->iterations - 1);
    tca(tcaDescFree(desc), "tcaDescFree");
    if (p->rank == 0) {
        printf("%8zu  %12.3f\n", bytes, (end - start) * 1e6 / (2.0 * options->iterations));
        fflush(stdout);
    }
}

// --- life -----------------------------------------------------------------------------------------------------------

static void memory_get(struct pingpong *p)
{
    tcaMemoryType type = p->options.gpu ? tcaMemoryGPU : tcaMemoryCPU;
    if (p->options.gpu) {
        cuda(cudaSetDevice(0), "cudaSetDevice");
        cuda(cudaMallocHost((void **)&p->send_host, p->capacity), "cudaMallocHost");
        cuda(cudaMallocHost((void **)&p->receive_host, p->capacity), "cudaMallocHost");
    }
    tca(tcaMalloc(&p->send, p->capacity, type), "tcaMalloc");
    tca(tcaMalloc(&p->receive, p->capacity, type), "tcaMalloc");
    if (!p->options.gpu) {
        p->send_host = p->send;
        p->receive_host = p->receive;
    }
    tca(tcaCreateHandle(&p->send_handle, p->send, p->capacity, type), "tcaCreateHandle");
    tca(tcaCreateHandleList(&p->receivers, 2, p->receive, p->capacity), "tcaCreateHandleList");
}

static void memory_free(struct pingpong *p)
{
    tcaMemoryType type = p->options.gpu ? tcaMemoryGPU : tcaMemoryCPU;
    free(p->receivers);
    tca(tcaFree(p->send, type), "tcaFree");
    tca(tcaFree(p->receive, type), "tcaFree");
    if (p->options.gpu) {
        cuda(cudaFreeHost(p->send_host), "cudaFreeHost");
        cuda(cudaFreeHost(p->receive_host), "cudaFreeHost");
    }
}

static bool number_read(const char *text, unsigned long largest, unsigned long *number_out)
{
    char *end;
    *number_out = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && *number_out <= largest;
}

static bool options_read(int argc, char **argv, struct options *options)
{
    unsigned long number = 0;
    bool right = true;
    int letter;
    *options = (struct options){.iterations = 100, .warmup = 10};
    while (right && (letter = getopt(argc, argv, "s:n:w:gb")) != -1) {
        right = letter != '?' && (optarg == NULL || number_read(optarg, LARGEST, &number));
        switch (letter) {
        case 's':
            options->bytes = number;
            right = right && number != 0 && number % 4 == 0;
            break;
        case 'n':
            options->iterations = (unsigned)number;
            right = right && number != 0;
            break;
        case 'w':
            options->warmup = (unsigned)number;
            break;
        case 'g':
            options->gpu = true;
            break;
        default:
            options->board = letter == 'b' || options->board;
            break;
        }
    }
    return right && optind == argc;
}

int main(int argc, char **argv)
{
    struct pingpong p = {0};
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!options_read(argc, argv, &p.options)) {
        die("options",
            "[-s BYTES (a multiple of 4)] [-n ITERATIONS] [-w WARM-UP] [-g (GPU)] [-b (descriptor on the board)]");
    }
    if (ranks != 2) {
        die("MPI", "this takes two ranks");
    }
    tca(tcaInit(), "tcaInit");
    p.capacity = p.options.bytes != 0 ? p.options.bytes : LARGEST;
    memory_get(&p);
    if (p.rank == 0) {
        printf("#  bytes  latency[usec]\n");
    }
    for (size_t bytes = p.options.bytes != 0 ? p.options.bytes : SMALLEST; bytes <= p.capacity; bytes *= 2) {
        size_run(&p, bytes);
    }
    memory_free(&p);
    MPI_Finalize();
    return 0;
}
