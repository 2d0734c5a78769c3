// Two processes that talk only by stores to shared memory, and wait for these in every way that programs do. The
// waiting one has nothing to do for 100 us to 1 ms. For each way it prints the longest delay of all rounds, in ns, from
// the store until it was seen.
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 30, PAGES = 3, WIDE_PAGES = 40, PAGE_BYTES = 4096 }; // a poll holds 32 pages

struct cell {
    volatile long value, stored_ns;
    char rest[PAGE_BYTES - 2 * sizeof(long)];
};

static struct cell *there, *back, *wide;

static long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

static void wait_plainly(const struct cell *cell, long value)
{
    while (cell->value != value) {
    }
}

unsigned long polls;

static __attribute__((noinline)) bool poll_cell(const struct cell *cell, long value)
{
    polls++;
    return cell->value == value;
}

// Like a progress engine: calls, and counters in its own memory.
static void wait_and_count(const struct cell *cell, long value)
{
    while (!poll_cell(&there[0], -1) && !poll_cell(cell, value)) {
    }
}

static void wait_by_clock(const struct cell *cell, long value)
{
    for (long end_ns = now_ns() + 1000000000; cell->value != value && now_ns() < end_ns;) {
    }
}

static void wait_and_yield(const struct cell *cell, long value)
{
    while (!poll_cell(cell, value)) {
        sched_yield();
    }
}

// Reads more pages in each iteration than a poll can name, the one with the value last.
static void wait_widely(const struct cell *cell, long value)
{
    long sum = 0, end_ns = now_ns() + 1000000000;
    do {
        for (unsigned i = 0; i < WIDE_PAGES; i++) {
            sum += wide[i].value;
        }
    } while (sum >= 0 && cell->value != value && now_ns() < end_ns);
}

static void play(const char *name, void (*wait_for)(const struct cell *, long))
{
    long latest_ns = 0;
    memset(there, 0, 2 * PAGES * sizeof *there);
    pid_t child = fork();
    for (long i = 1; i <= ROUNDS; i++) {
        struct cell *cell = &there[i % PAGES], *answer = &back[i % PAGES];
        if (child != 0) {
            usleep((unsigned)(100 + i * i));
            cell->stored_ns = now_ns();
            cell->value = i;
            wait_for(answer, i);
            latest_ns = answer->stored_ns > latest_ns ? answer->stored_ns : latest_ns;
        } else {
            wait_for(cell, i);
            answer->stored_ns = now_ns() - cell->stored_ns;
            answer->value = i;
        }
    }
    if (child == 0) {
        _exit(0);
    }
    waitpid(child, NULL, 0);
    printf("%s %ld\n", name, latest_ns);
    fflush(stdout);
}

int main(void)
{
    there = mmap(NULL, (2 * PAGES + WIDE_PAGES) * sizeof *there, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (there == MAP_FAILED) {
        return 1;
    }
    back = there + PAGES;
    wide = back + PAGES;
    play("plainly", wait_plainly);
    play("counting", wait_and_count);
    play("clock", wait_by_clock);
    play("yielding", wait_and_yield);
    play("widely", wait_widely);
    return 0;
}
