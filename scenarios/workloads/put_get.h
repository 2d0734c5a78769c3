// Shared by acp_put_get and mpi_put_get: sizes, repetitions, the pattern, the table.
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    PUT_GET_SMALLEST = 8,
    PUT_GET_LARGEST = 4 << 20,
    PUT_GET_WARM_UP = 3,
    PUT_GET_ROUNDS = 50,
    PUT_GET_VOLUME = 16 << 20 // bytes of all repetitions of a size, but at least 4 repetitions
};

static inline int put_get_rounds(size_t bytes)
{
    size_t fitting = PUT_GET_VOLUME / bytes;
    return fitting > PUT_GET_ROUNDS ? PUT_GET_ROUNDS : fitting < 4 ? 4 : (int)fitting;
}

static inline unsigned char put_get_byte(size_t bytes, size_t at)
{
    return (unsigned char)(at * 31 + bytes % 251 + 1);
}

// Writes the pattern to the source, at the front, and other values to the destination.
static inline void put_get_fill(unsigned char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        data[i] = put_get_byte(bytes, i);
        data[PUT_GET_LARGEST + i] = (unsigned char)~put_get_byte(bytes, i);
    }
}

static inline bool put_get_holds(const unsigned char *arrived, size_t bytes)
{
    size_t i = 0;
    while (i < bytes && arrived[i] == put_get_byte(bytes, i)) {
        i++;
    }
    return i == bytes;
}

static inline void put_get_print(size_t bytes, double us)
{
    if (bytes == PUT_GET_SMALLEST) {
        printf("bytes,operations,latency_us\n");
    }
    printf("%zu,%d,%.4f\n", bytes, put_get_rounds(bytes), us);
}
