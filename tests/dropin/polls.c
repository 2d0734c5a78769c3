// A program that writes to itself and polls for the last byte in loops of several shapes, without any call: each sees
// it at the same time after the request was posted, whatever the loop reads and however it addresses the byte. It ends
// with status 0, or prints which loop was too late.
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "loop.h"

enum { BYTES = 65536, ROUNDS = 3, SLACK_NS = 300, WORDS = 12 };

typedef void shape(volatile char *byte, char value);

static volatile int stop;
static volatile char *volatile where; // address of the byte
static volatile char others[WORDS * 64];

__attribute__((noinline)) static void plain(volatile char *byte, char value)
{
    while (*byte != value) {
    }
}

__attribute__((noinline)) static void with_a_pause_and_a_flag(volatile char *byte, char value)
{
    while (*byte != value && !stop) {
        __builtin_ia32_pause();
    }
}

// The register with the address is loaded again in each iteration.
__attribute__((noinline)) static void by_a_pointer_in_memory(volatile char *byte, char value)
{
    where = byte;
    while (*where != value) {
    }
}

// More words than a poll can name.
__attribute__((noinline)) static void over_many_words(volatile char *byte, char value)
{
    bool seen = false;
    while (!seen) {
        int sum = 0;
        for (int i = 0; i < WORDS; i++) {
            sum |= others[64 * i];
        }
        seen = *byte == value || sum != 0;
    }
}

// Reads the eight bytes of which it is the last.
__attribute__((noinline)) static void by_the_whole_word(volatile char *last, char value)
{
    const volatile unsigned long *word = (const volatile unsigned long *)(const volatile void *)(last - 7);
    while (*word >> 56 != (unsigned char)value) {
    }
}

static long now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

static long seen_after_ns(struct loop *loop, shape *body, char value)
{
    memset(loop->buffer, value, loop->bytes);
    long start_ns = now_ns();
    loop_post(loop, IBV_WR_RDMA_WRITE);
    body(loop->buffer + 2 * (size_t)loop->bytes - 1, value);
    long end_ns = now_ns();
    loop_completion_take(loop);
    return end_ns - start_ns;
}

static char value; // of the last write

static bool seen_alike(struct loop *loop)
{
    static const struct {
        const char *name;
        shape *body;
    } shapes[] = {{"plain", plain},
                  {"with a pause and a flag", with_a_pause_and_a_flag},
                  {"by a pointer in memory", by_a_pointer_in_memory},
                  {"over many words", over_many_words},
                  {"by the whole word", by_the_whole_word}};
    long first_ns = 0;
    bool alike = true;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (int round = 0; round < ROUNDS; round++) {
            long ns = seen_after_ns(loop, shapes[i].body, ++value);
            first_ns = first_ns == 0 ? ns : first_ns;
            bool good = ns > first_ns - SLACK_NS && ns < first_ns + SLACK_NS;
            (void)printf("%s, %u bytes: %ld ns%s\n", shapes[i].name, loop->bytes, ns, good ? "" : ", not as the first");
            alike = alike && good;
        }
    }
    return alike;
}

int main(void)
{
    struct loop loop = {0};
    loop_open(&loop, BYTES);
    loop_connect(&loop);
    (void)seen_after_ns(&loop, plain, ++value); // the first one sets up the connection
    bool alike = seen_alike(&loop);
    loop.bytes = 4; // changes only the upper half of the word
    alike = seen_alike(&loop) && alike;
    loop_close(&loop);
    return alike ? 0 : 1;
}
