// What fuzz targets share. A target is one function over an input of any bytes, as libFuzzer calls it: it returns 0, and
// aborts when something does not hold. With -DTCASIM_FUZZ=ON libFuzzer calls it with ever new inputs; otherwise
// replay.c calls it with those of its corpus.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_HOLDS(condition, ...)                                                                                     \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "%s:%d: does not hold: %s: ", __FILE__, __LINE__, #condition);                       \
            (void)fprintf(stderr, __VA_ARGS__);                                                                        \
            (void)fputc('\n', stderr);                                                                                 \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

// Numbers from the input; 0 behind its end.
struct fuzz_input {
    const uint8_t *data;
    size_t size;
};
uint64_t fuzz_take(struct fuzz_input *input, unsigned bytes);
uint32_t fuzz_below(struct fuzz_input *input, uint32_t limit);       // limit: 1 to 65536
void fuzz_fill(struct fuzz_input *input, void *to, size_t bytes); // what the input has of them

// A file in memory that stands under a name of its own.
struct fuzz_file {
    int fd;
    char path[32];
};
void fuzz_file_make(struct fuzz_file *file);
void fuzz_file_write(const struct fuzz_file *file, const void *data, size_t size); // replaces its contents
