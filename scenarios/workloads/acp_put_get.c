// A program on ACP for `acprun -n 2`: puts and gets between ranks 0 and 1 as IMB measures them, each complete before
// the next begins, of 8 B to 4 MiB.
//
//     acp_put_get put|get [LARGEST]
//
// Rank 0 prints comma-separated values, the microseconds of one operation. After each size, every byte is checked;
// before, it has another value. Exit status 1: wrong data.
#include <acp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "put_get.h"

static int wrong;
static unsigned char *data;
static acp_ga_t addresses[2]; // of the memory of both ranks

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

// Starter memory carries the other rank's global address.
static void addresses_exchange(acp_ga_t mine)
{
    int rank = acp_rank(), other = 1 - rank;
    acp_ga_t starter = acp_query_starter_ga(rank);
    acp_ga_t *words = acp_query_address(starter);
    words[0] = mine;
    acp_sync();
    acp_complete(acp_copy(starter + sizeof(acp_ga_t), acp_query_starter_ga(other), sizeof(acp_ga_t), ACP_HANDLE_NULL));
    addresses[rank] = mine;
    addresses[other] = words[1];
}

static double size_measure(size_t bytes, bool get)
{
    int rounds = put_get_rounds(bytes);
    double began_us = 0;
    acp_ga_t to = addresses[get ? 0 : 1] + PUT_GET_LARGEST, from = addresses[get ? 1 : 0];
    for (int i = -PUT_GET_WARM_UP; i < rounds; i++) {
        began_us = i == 0 ? now_us() : began_us;
        acp_complete(acp_copy(to, from, bytes, ACP_HANDLE_NULL));
    }
    return (now_us() - began_us) / rounds;
}

int main(int argc, char **argv)
{
    if (acp_init(&argc, &argv) != 0) {
        return 1;
    }
    bool get = argc > 1 && strcmp(argv[1], "get") == 0;
    size_t largest = argc > 2 ? strtoul(argv[2], NULL, 10) : PUT_GET_LARGEST;
    if (acp_procs() != 2 || largest > PUT_GET_LARGEST) {
        fprintf(stderr, "acp_put_get: two ranks, and at most %d bytes\n", PUT_GET_LARGEST);
        return 1;
    }
    data = malloc(2 * (size_t)PUT_GET_LARGEST);
    acp_atkey_t key = acp_register_memory(data, 2 * (size_t)PUT_GET_LARGEST, 0);
    addresses_exchange(acp_query_ga(key, data));
    for (size_t bytes = PUT_GET_SMALLEST; bytes <= largest; bytes *= 2) {
        put_get_fill(data, bytes);
        acp_sync();
        if (acp_rank() == 0) {
            double us = size_measure(bytes, get);
            put_get_print(bytes, us);
        }
        acp_sync();
        if (acp_rank() == (get ? 0 : 1)) {
            wrong += !put_get_holds(data + PUT_GET_LARGEST, bytes);
        }
    }
    acp_sync();
    acp_unregister_memory(key);
    free(data);
    acp_finalize();
    if (wrong != 0) {
        fprintf(stderr, "acp_put_get: wrong data\n");
    }
    return wrong != 0;
}
