// Loops that read memory until another process has stored there, without a call (spin.c and spin_shared.c of
// verbs-shim/world/) or with one (shared.c): each is left by the store that it waits for, and by no earlier one.
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "timely.h"

// --- how the loop is closed -----------------------------------------------------------------------------------------

enum { BOUND = 5, PAGE_BYTES = 4096, WALK_PAGES = 3 };

// Compares the word with BOUND and repeats that while the condition of the jump holds.
#define LOOP(condition)                                                                                                \
    static void while_##condition(const volatile int32_t *word)                                                        \
    {                                                                                                                  \
        __asm__ volatile("1: cmpl %1, (%0)\n"                                                                          \
                         "   j" #condition " 1b"                                                                       \
                         :                                                                                             \
                         : "r"(word), "i"(BOUND)                                                                       \
                         : "cc", "memory");                                                                            \
    }

static void *shared_pages(size_t count)
{
    return mmap(NULL, count * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

// The word is `first`, then `second`, which change nothing, and then `last`. The result is when the loop is left, in us;
// with another value: its negative.
static long left_by(const struct timely_scene *scene, void (*loop)(const volatile int32_t *), int32_t first,
                    int32_t second, int32_t last)
{
    volatile int32_t *word = shared_pages(WALK_PAGES);
    *word = first;
    pid_t child = fork();
    if (child == 0) {
        (void)usleep(TIMELY_WOKEN_US);
        *word = second;
        (void)usleep(TIMELY_AGAIN_US - TIMELY_WOKEN_US);
        *word = last;
        (void)usleep(TIMELY_WOKEN_US);
        _exit(0);
    }
    loop(word);
    int32_t seen = *word;
    long us = (timely_now_ns() - scene->began_ns) / 1000;
    (void)waitpid(child, NULL, 0);
    (void)munmap((void *)(uintptr_t)word, WALK_PAGES * PAGE_BYTES);
    return seen == last ? us : -(long)seen;
}

#define LOOP_ROW(condition, first, second, last)                                                                       \
    LOOP(condition)                                                                                                    \
    static long by_##condition(struct timely_scene *scene)                                                             \
    {                                                                                                                  \
        return left_by(scene, while_##condition, first, second, last);                                                 \
    }

LOOP_ROW(o, INT32_MIN, INT32_MIN + 1, 0) // the difference to BOUND overflows
LOOP_ROW(no, 0, INT32_MAX, INT32_MIN)
LOOP_ROW(b, 0, BOUND - 1, BOUND) // without sign
LOOP_ROW(ae, BOUND, -1, BOUND - 1)
LOOP_ROW(ne, 0, 1, BOUND)
LOOP_ROW(be, 0, BOUND, BOUND + 1)
LOOP_ROW(a, BOUND + 1, -1, BOUND)
LOOP_ROW(s, 0, BOUND - 1, BOUND) // the sign of the difference
LOOP_ROW(ns, BOUND, BOUND + 1, 0)
LOOP_ROW(p, BOUND, BOUND + 3, BOUND + 1) // the difference has an even number of bits
LOOP_ROW(np, BOUND + 1, BOUND + 2, BOUND + 3)
LOOP_ROW(l, INT32_MIN, INT32_MIN + 1, BOUND)
LOOP_ROW(ge, BOUND, INT32_MAX, INT32_MIN)
LOOP_ROW(le, INT32_MIN, BOUND, BOUND + 1)
LOOP_ROW(g, BOUND + 1, INT32_MAX, INT32_MIN)

// Reads a word of each of three pages; the address is in a register, which the loop changes.
static void walk(const volatile int32_t *word)
{
    __asm__ volatile("1: mov %0, %%rsi\n"
                     "   cmpl %1, (%%rsi)\n"
                     "   je 2f\n"
                     "   add %2, %%rsi\n"
                     "   cmpl %1, (%%rsi)\n"
                     "   je 2f\n"
                     "   add %2, %%rsi\n"
                     "   cmpl %1, (%%rsi)\n"
                     "   jne 1b\n"
                     "2:"
                     :
                     : "r"(word), "i"(BOUND), "i"(PAGE_BYTES)
                     : "cc", "memory", "rsi");
}

static long by_walk(struct timely_scene *scene)
{
    return left_by(scene, walk, 0, 1, BOUND);
}

// --- loops with a call ----------------------------------------------------------------------------------------------

// Each iteration reads a word of each page. The result is when the loop is left, in us.
static long polled(const struct timely_scene *scene, volatile char *pages, unsigned count, useconds_t store_us)
{
    unsigned found = 0;
    pid_t child = fork();
    if (child == 0) {
        (void)usleep(store_us);
        pages[(count - 1) * PAGE_BYTES] = 1;
        (void)usleep(TIMELY_WOKEN_US);
        _exit(0);
    }
    while (found == 0) {
        for (unsigned i = 0; i < count; i++) {
            found += pages[i * PAGE_BYTES] != 0;
        }
        (void)sched_yield();
    }
    long us = (timely_now_ns() - scene->began_ns) / 1000;
    (void)waitpid(child, NULL, 0);
    return us;
}

// Two pages beside each other, of which only the second one may be written to: it may still be after the loop.
static long by_rights(struct timely_scene *scene)
{
    char *pages = shared_pages(2);
    (void)mprotect(pages, PAGE_BYTES, PROT_READ);
    long us = polled(scene, pages, 2, TIMELY_WOKEN_US);
    *(volatile char *)(pages + PAGE_BYTES) = 2;
    (void)munmap(pages, 2 * PAGE_BYTES);
    return us;
}

// --- a loop that gives up -------------------------------------------------------------------------------------------

enum { TRIES = 10, ROUNDS = 20000, STEPS = 2000 };

// Reads the word a few times, and counts in memory of its own.
static void try_word(const volatile int32_t *word, uint64_t *other)
{
    static volatile int32_t tries;
    __asm__ volatile("   movl %3, %1\n"
                     "1: cmpl $0, (%2)\n"
                     "   jne 2f\n"
                     "   decl %1\n"
                     "   jnz 1b\n"
                     "2:"
                     : "+r"(*other), "+m"(tries)
                     : "r"(word), "i"(TRIES)
                     : "cc", "memory");
}

// A thread that computes for long, and reads a word of shared memory now and then, does not wait: nobody stores there.
static long by_tries(struct timely_scene *scene)
{
    int32_t *word = mmap(NULL, sizeof *word, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t computed = (uint64_t)scene->began_ns;
    pid_t child = fork();
    if (child == 0) {
        (void)usleep(TIMELY_WOKEN_US);
        _exit(*word);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned j = 0; j < STEPS; j++) {
            computed = computed * UINT64_C(6364136223846793005) + 1;
        }
        try_word(word, &computed);
    }
    long us = (timely_now_ns() - scene->began_ns) / 1000;
    (void)waitpid(child, NULL, 0);
    (void)munmap(word, sizeof *word);
    return us;
}

#define LEFT .at_us = TIMELY_AGAIN_US + TIMELY_WOKEN_US + TIMELY_END_US, .late_ns = READ_NS
enum { READ_NS = 100 }; // the rows read a clock themselves

static const struct timely_row rows[] = {
    TIMELY_ROW(LIBRARY, "jo", by_o, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "jno", by_no, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "jb", by_b, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "jae", by_ae, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "jne", by_ne, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "jbe", by_be, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "ja", by_a, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "js", by_s, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "jns", by_ns, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "jp", by_p, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "jnp", by_np, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "jl", by_l, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "jge", by_ge, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "jle", by_le, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "jg", by_g, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(LIBRARY, "walk", by_walk, TIMELY_AGAIN_US, LEFT),
    TIMELY_ROW(FUNCTION, "mprotect", by_rights, TIMELY_WOKEN_US, .at_us = 2 * TIMELY_WOKEN_US + TIMELY_END_US,
               .late_ns = READ_NS),
    TIMELY_ROW(LIBRARY, "tries", by_tries, 0, .at_us = TIMELY_WOKEN_US + TIMELY_END_US, .late_ns = READ_NS),
};
TIMELY_THEME(loops, rows);
