#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random_writer {
    unsigned char *at; // where the next instruction goes
    uint64_t seed;
};

unsigned random_any(struct random_writer *to, unsigned count); // below count
void random_put(struct random_writer *to, size_t count, const unsigned char *bytes);
#define PUT(to, ...) random_put((to), sizeof((unsigned char[]){__VA_ARGS__}), (unsigned char[]){__VA_ARGS__})
void random_put_number(struct random_writer *to, int32_t number);
void random_vectors_clear(struct random_writer *to); // those that the steps use
// An instruction, or a few, that compute with rax, rcx, rdx and memory from rdi + 16 on, of RANDOM_CODE_WORDS words.
void random_step(struct random_writer *to);

// Random instructions that read two counters, compute, write and read memory, divide and branch.
enum { RANDOM_CODE_BYTES = 768, RANDOM_CODE_WORDS = 6 };

// Reads a counter of 4 or 8 bytes in at[0] and one of 4 bytes in at[1], and writes at[2] and the words after it. Returns a
// bit for each of its branches that was not taken, and with `values` a sum of all registers in the end.
typedef uint64_t (*random_function_t)(const void *at);
// Writes the function there. The same seed gives the same instructions.
random_function_t random_code(unsigned char code[RANDOM_CODE_BYTES], uint64_t seed, unsigned counter_bytes,
                              bool values);
