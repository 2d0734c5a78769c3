// The memory of one rank of ACP that is connected with all others, among 2 to 1,000,000 ranks. It is computed from the
// sizes of the structures that the library allocates, and from the measured memory of a queue pair on this device.
//
//     acp_memory_model parts          each part, and the sum
//     acp_memory_model transports     the sum, with other transports
//
// A transport changes the memory for each peer. Reliable connections: a queue pair each. With a shared receive queue:
// the same without receive queues of their own; ACP posts no receives, so this only saves an empty receive queue. A
// queue pair with receives has 64 of 64 B in buffers of 4 KiB. Dynamically connected: as many queue pairs as
// outstanding copies (64), and an address handle for each peer.
#include <acp_memory.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "acp_queue_pair.h"

enum {
    RANKS_MAX = 1000000,
    DYNAMIC_QUEUE_PAIRS = 64,
    ADDRESS_HANDLE_BYTES = 48, // InfiniBand: an address vector, padded, as in mlx5
    RECEIVES = 64,
    RECEIVE_BYTES = 64,
    RECEIVE_BUFFER_BYTES = 4096
};

static size_t without_queue_pairs(uint64_t ranks)
{
    size_t bytes = 0;
    for (unsigned kind = 0; kind < ACP_MEMORY_KINDS; kind++) {
        bytes += acp_memory_expected((enum acp_memory_kind)kind, ranks, ranks - 1);
    }
    return bytes;
}

static void row(const char *series, uint64_t ranks, uint64_t bytes)
{
    printf("%s,%llu,%llu\n", series, (unsigned long long)ranks, (unsigned long long)bytes);
}

static void parts_print(uint64_t ranks, size_t qp_bytes)
{
    for (unsigned kind = 0; kind < ACP_MEMORY_KINDS; kind++) {
        row(acp_memory_names[kind], ranks, acp_memory_expected((enum acp_memory_kind)kind, ranks, ranks - 1));
    }
    row("queue pairs", ranks, (ranks - 1) * qp_bytes);
    row("all", ranks, without_queue_pairs(ranks) + (ranks - 1) * qp_bytes);
}

static void transports_print(uint64_t ranks, size_t qp_bytes)
{
    size_t rest = without_queue_pairs(ranks), peers = ranks - 1;
    size_t active = peers < DYNAMIC_QUEUE_PAIRS ? peers : DYNAMIC_QUEUE_PAIRS;
    size_t receives = (size_t)RECEIVES * (RECEIVE_BYTES + RECEIVE_BUFFER_BYTES);
    row("reliable connections", ranks, rest + peers * qp_bytes);
    row("dynamically connected", ranks, rest + active * qp_bytes + peers * ADDRESS_HANDLE_BYTES);
    row("connections with receives", ranks, rest + peers * (qp_bytes + receives));
    row("the same with a shared receive queue", ranks, rest + peers * qp_bytes + receives);
}

int main(int argc, char **argv)
{
    static const uint64_t counts[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536, 262144, RANKS_MAX};
    bool parts = argc > 1 && strcmp(argv[1], "parts") == 0;
    size_t qp_bytes = acp_queue_pair_bytes(NULL);
    printf("# a queue pair takes %zu B on this device\n", qp_bytes);
    printf("series,ranks,memory_bytes\n");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (parts) {
            parts_print(counts[i], qp_bytes);
        } else {
            transports_print(counts[i], qp_bytes);
        }
    }
    return 0;
}
