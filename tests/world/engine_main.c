// A progress engine: a loop without any call that takes a lock, counts and keeps a ring of what it counted, until another
// thread tells it of something. It sees that at its time. And a loop that computes for as long in real time, in which no
// simulated time passes, beside a thread that waits.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { RING = 64, STEPS = 3, STEP_US = 50, ROUNDS = 300000000 };

static pthread_spinlock_t lock;
static volatile int told;
static uint64_t made, ring[RING];

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *tell(void *unused)
{
    for (int i = 0; i < STEPS; i++) {
        (void)usleep(STEP_US);
        (void)pthread_spin_lock(&lock);
        told++;
        (void)pthread_spin_unlock(&lock);
    }
    return unused;
}

static __attribute__((noinline)) int probe(void)
{
    (void)pthread_spin_lock(&lock);
    ring[made % RING] += made;
    made++;
    int seen = told;
    (void)pthread_spin_unlock(&lock);
    return seen;
}

// How far from its time is it seen? Returns the number of times that were wrong.
static int waits(void)
{
    pthread_t thread;
    int wrong = 0;
    uint64_t began_ns = now_ns();
    (void)pthread_create(&thread, NULL, tell, NULL);
    for (int i = 1; i <= STEPS; i++) {
        while (probe() < i) {
        }
        uint64_t us = (now_ns() - began_ns) / 1000, expected_us = (uint64_t)i * STEP_US;
        printf("%d after %llu us\n", i, (unsigned long long)us);
        wrong += us < expected_us || us > expected_us + i;
    }
    (void)pthread_join(thread, NULL);
    return wrong;
}

static int computes(void)
{
    pthread_t thread;
    uint64_t began_ns = now_ns(), sum = 0;
    (void)pthread_create(&thread, NULL, tell, NULL);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        sum += i * i ^ sum >> 3;
        ring[i % RING] = sum;
    }
    uint64_t ns = now_ns() - began_ns;
    printf("computed %llu in %llu ns\n", (unsigned long long)sum, (unsigned long long)ns);
    (void)pthread_join(thread, NULL);
    return ns > 10000;
}

// It ends by what it writes at addresses of its own making.
static int counts(void)
{
    static uint64_t bins[64];
    pthread_t thread;
    uint64_t began_ns = now_ns(), seed = 1;
    (void)pthread_create(&thread, NULL, tell, NULL);
    do {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        bins[seed >> 58]++;
    } while (bins[0] < ROUNDS / 64);
    uint64_t ns = now_ns() - began_ns;
    printf("counted %llu in %llu ns\n", (unsigned long long)bins[0], (unsigned long long)ns);
    (void)pthread_join(thread, NULL);
    return ns > 10000;
}

int main(void)
{
    (void)pthread_spin_init(&lock, 0);
    return waits() + computes() + counts();
}
