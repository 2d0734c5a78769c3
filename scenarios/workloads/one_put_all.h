// Shared by acp_one_put_all and mpi_one_put_all (morie2016 5.1): sizes, repetitions, and the memory of a process: the
// anonymous pages and the shared ones that it has touched, as Linux counts them.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ONE_PUT_LARGEST = 4 << 20, ONE_PUT_MANY = 1000, ONE_PUT_LONG = 64 << 10, ONE_PUT_OF_LONG = 640 };

// 0 B to 32 KiB 1000 times, 64 KiB 640 times, half as often with each doubling, 4 MiB 10 times; divided by `divisor`.
static inline int one_put_rounds(size_t bytes, int divisor)
{
    int rounds = bytes < ONE_PUT_LONG ? ONE_PUT_MANY : (int)(ONE_PUT_OF_LONG / (bytes / ONE_PUT_LONG));
    return rounds / divisor > 1 ? rounds / divisor : 1;
}

static inline size_t one_put_next(size_t bytes)
{
    return bytes == 0 ? 1 : bytes * 2;
}

// The memory of the calling process in bytes. Shared memory counts as far as it is in use; pages of files do not count.
static inline size_t one_put_memory(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    size_t kilobytes = 0, part;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "RssAnon: %zu", &part) == 1 || sscanf(line, "RssShmem: %zu", &part) == 1) {
            kilobytes += part;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kilobytes << 10;
}

// Prints a row for a part of the process's memory, or for all of it.
static inline void one_put_print(const char *part, int ranks, size_t bytes)
{
    static int rows;
    if (rows++ == 0) {
        printf("series,ranks,memory_bytes\n");
    }
    printf("%s,%d,%zu\n", part, ranks, bytes);
}
