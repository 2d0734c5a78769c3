// Futexes by their operations (futex(2)), and locks of the C library that need several of these: who is woken, in which
// order, and when a time is over.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "timely.h"

enum { SLEEPERS = 3, LIMIT_US = 200, FIRST_US = 50, STAY_US = 20 };

static uint32_t words[2]; // the first one remains 0

#define FUTEX(scene, word, operation, value, time, second, third)                                                      \
    (scene)->call(SYS_futex, (long)(word), (long)(operation), (long)(value), (long)(time), (long)(second),             \
                  (long)(third))

// --- sleepers -------------------------------------------------------------------------------------------------------

struct sleeper {
    struct timely_scene *scene;
    void (*wait)(struct sleeper *);
    unsigned number;
    pthread_t thread;
};

static struct sleeper sleepers[SLEEPERS];
static long order;                   // their numbers, as digits, in the order in which they have gone on
static useconds_t stay_us = STAY_US; // from then to their ends

static void *sleep_there(void *arg)
{
    struct sleeper *sleeper = arg;
    sleeper->wait(sleeper);
    order = 10 * order + sleeper->number;
    (void)usleep(stay_us);
    return NULL;
}

static void wait_for_word(struct sleeper *sleeper)
{
    (void)FUTEX(sleeper->scene, &words[0], FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

// Sleeper n waits after the n-th microsecond.
static void sleepers_start(struct timely_scene *scene, unsigned count, void (*wait_there)(struct sleeper *))
{
    order = 0;
    for (unsigned i = 0; i < count; i++) {
        sleepers[i] = (struct sleeper){.scene = scene, .wait = wait_there, .number = i + 1};
        (void)pthread_create(&sleepers[i].thread, NULL, sleep_there, &sleepers[i]);
        (void)usleep(1);
    }
}

static void sleepers_end(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        (void)pthread_join(sleepers[i].thread, NULL);
    }
}

// --- operations -----------------------------------------------------------------------------------------------------

// The word has the value that the caller compares: one sleeper is woken and one is moved, which makes two. Then nobody
// sleeps on the first word, and one on the second.
static long by_cmp_requeue(struct timely_scene *scene)
{
    sleepers_start(scene, 2, wait_for_word);
    long refused = FUTEX(scene, &words[0], FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, &words[1], 7);
    long both = FUTEX(scene, &words[0], FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, &words[1], 0);
    long of_first = FUTEX(scene, &words[0], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    long of_second = FUTEX(scene, &words[1], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    sleepers_end(2);
    return refused == -EAGAIN ? 100 * both + 10 * of_first + of_second : refused;
}

// The sleeper that was woken ends. The one that was moved goes on when its second word is woken, if not before: futex(2)
// allows spurious wake-ups.
static long by_requeue_beside_end(struct timely_scene *scene)
{
    stay_us = 0;
    sleepers_start(scene, 2, wait_for_word);
    long woken = FUTEX(scene, &words[0], FUTEX_REQUEUE_PRIVATE, 1, 1, &words[1], 0);
    (void)usleep(1);
    (void)FUTEX(scene, &words[1], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    sleepers_end(2);
    stay_us = STAY_US;
    return woken == 1 ? order : woken;
}

// Without a comparison only those that were woken count.
static long by_requeue(struct timely_scene *scene)
{
    sleepers_start(scene, 2, wait_for_word);
    long woken = FUTEX(scene, &words[0], FUTEX_REQUEUE_PRIVATE, 1, 1, &words[1], 0);
    long of_second = FUTEX(scene, &words[1], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    sleepers_end(2);
    return 10 * woken + of_second;
}

struct operation {
    unsigned code;
    uint32_t after; // of a word that is BEFORE
    bool wakes_second;
};

enum { BEFORE = 3, OPERATIONS = 6, OR_OF_BIT = FUTEX_OP_OR | FUTEX_OP_OPARG_SHIFT };

static void wait_for_second_word(struct sleeper *sleeper)
{
    bool first = sleeper->number == 1;
    (void)FUTEX(sleeper->scene, &words[first ? 0 : 1], FUTEX_WAIT_PRIVATE, first ? 0 : BEFORE, NULL, NULL, 0);
}

// The operation changes the second word, whose earlier value is compared. A sleeper on the first word is woken, and one
// on the second word if the comparison holds. 1: so it is.
static long operate(struct timely_scene *scene, const struct operation *operation)
{
    words[1] = BEFORE;
    sleepers_start(scene, 2, wait_for_second_word);
    long woken = FUTEX(scene, &words[0], FUTEX_WAKE_OP_PRIVATE, 1, 1, &words[1], operation->code);
    long left = FUTEX(scene, &words[1], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    sleepers_end(2);
    return woken == 1 + operation->wakes_second && left == !operation->wakes_second && words[1] == operation->after;
}

// A digit for each operation.
static long by_wake_op(struct timely_scene *scene)
{
    const struct operation operations[] = {
        {(unsigned)FUTEX_OP(FUTEX_OP_SET, 9, FUTEX_OP_CMP_EQ, 3), 9, true},
        {(unsigned)FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_NE, 3), 8, false},
        {(unsigned)FUTEX_OP(FUTEX_OP_OR, 5, FUTEX_OP_CMP_LT, 3), 7, false},
        {(unsigned)FUTEX_OP(FUTEX_OP_ANDN, 1, FUTEX_OP_CMP_LE, 3), 2, true},
        {(unsigned)FUTEX_OP(FUTEX_OP_XOR, 6, FUTEX_OP_CMP_GT, 3), 5, false},
        {(unsigned)FUTEX_OP(OR_OF_BIT, 4, FUTEX_OP_CMP_GE, 3), 19, true},
    };
    long right = 0;
    for (unsigned i = 0; i < OPERATIONS; i++) {
        right = 10 * right + operate(scene, &operations[i]);
    }
    return right;
}

// One after another; who came first goes on first (sim/attach/futex.c).
static long by_wake_in_order(struct timely_scene *scene)
{
    sleepers_start(scene, SLEEPERS, wait_for_word);
    for (unsigned i = 0; i < SLEEPERS; i++) {
        (void)FUTEX(scene, &words[0], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        (void)usleep(1);
    }
    sleepers_end(SLEEPERS);
    return order;
}

static sem_t semaphore;

static void wait_for_semaphore(struct sleeper *sleeper)
{
    (void)sleeper;
    (void)sem_wait(&semaphore);
}

static long by_sem_wait(struct timely_scene *scene)
{
    (void)sem_init(&semaphore, 0, 0);
    sleepers_start(scene, SLEEPERS, wait_for_semaphore);
    for (unsigned i = 0; i < SLEEPERS; i++) {
        (void)sem_post(&semaphore);
        (void)usleep(1);
    }
    sleepers_end(SLEEPERS);
    return order;
}

// --- words of two processes -----------------------------------------------------------------------------------------

// A child waits for a word at the same address as this process's, of memory that they do or do not share.
static long wake_of_child(struct timely_scene *scene, int sharing)
{
    const struct timespec limit = {.tv_nsec = LIMIT_US * 1000};
    uint32_t *word = mmap(NULL, sizeof *word, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    *word = 0; // the page is there before the fork
    pid_t child = fork();
    if (child == 0) {
        _exit(FUTEX(scene, word, FUTEX_WAIT, 0, &limit, NULL, 0) == -ETIMEDOUT ? 2 : 1);
    }
    (void)usleep(FIRST_US);
    long woken = FUTEX(scene, word, FUTEX_WAKE, 1, NULL, NULL, 0);
    (void)waitpid(child, &status, 0);
    (void)munmap(word, sizeof *word);
    return 10 * woken + WEXITSTATUS(status);
}

static long by_wake_of_private(struct timely_scene *scene)
{
    return wake_of_child(scene, MAP_PRIVATE);
}

static long by_wake_of_shared(struct timely_scene *scene)
{
    return wake_of_child(scene, MAP_SHARED);
}

// --- times that are over --------------------------------------------------------------------------------------------

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void on_signal(int number)
{
    (void)number;
}

// pthread_mutex_timedlock(3p) never returns EINTR: it goes on waiting after a handler. The thread has the mutex itself.
static long by_timedlock(struct timely_scene *scene)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    const struct itimerval soon = {.it_value.tv_usec = FIRST_US};
    long ns = scene->began_ns + scene->realtime_ns + LIMIT_US * 1000;
    const struct timespec until = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    (void)sigaction(SIGALRM, &action, NULL);
    (void)setitimer(ITIMER_REAL, &soon, NULL);
    (void)pthread_mutex_lock(&mutex);
    int error = pthread_mutex_timedlock(&mutex, &until);
    (void)pthread_mutex_unlock(&mutex);
    return -error;
}

// The deadline is one of the clock that the condition variable was given.
static long by_cond_timedwait(struct timely_scene *scene)
{
    pthread_condattr_t attributes;
    pthread_cond_t condition;
    long ns = scene->began_ns + LIMIT_US * 1000;
    const struct timespec until = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&condition, &attributes);
    (void)pthread_mutex_lock(&mutex);
    int error = pthread_cond_timedwait(&condition, &mutex, &until);
    (void)pthread_mutex_unlock(&mutex);
    (void)pthread_cond_destroy(&condition);
    return -error;
}

// A robust mutex whose owner was killed goes to who waits for it, with a word about it (pthread_mutexattr_setrobust(3)).
static long by_robust_mutex(struct timely_scene *scene)
{
    (void)scene;
    pthread_mutex_t *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    (void)pthread_mutexattr_init(&attributes);
    (void)pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    (void)pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    (void)pthread_mutex_init(shared, &attributes);
    pid_t child = fork();
    if (child == 0) {
        (void)pthread_mutex_lock(shared);
        (void)usleep(LIMIT_US);
        (void)raise(SIGKILL);
    }
    (void)usleep(FIRST_US);
    int error = pthread_mutex_lock(shared);
    (void)pthread_mutex_consistent(shared);
    (void)pthread_mutex_unlock(shared);
    (void)waitpid(child, NULL, 0);
    (void)munmap(shared, sizeof *shared);
    return -error;
}

// Who has woken a child may see its end before it is told of it.
static const struct timely_row rows[] = {
    TIMELY_ROW(CALL, "futex", by_cmp_requeue, 201, .at_us = 2 + STAY_US),
    TIMELY_ROW(CALL, "futex", by_requeue, 11, .at_us = 2 + STAY_US),
    TIMELY_ROW(CALL, "futex", by_requeue_beside_end, 12, .at_us = 2 + 1),
    TIMELY_ROW(CALL, "futex", by_wake_op, 111111, .at_us = OPERATIONS * (2 + STAY_US)),
    TIMELY_ROW(CALL, "futex", by_wake_in_order, 123, .at_us = 2 * SLEEPERS - 1 + STAY_US),
    TIMELY_ROW(LIBRARY, "sem_wait", by_sem_wait, 123, .at_us = 2 * SLEEPERS - 1 + STAY_US),
    TIMELY_ROW(CALL, "futex", by_wake_of_private, 2, .at_us = LIMIT_US + TIMELY_END_US),
    TIMELY_ROW(CALL, "futex", by_wake_of_shared, 11, .at_us = FIRST_US, .late_ns = TIMELY_END_US * 1000),
    TIMELY_ROW(LIBRARY, "pthread_mutex_timedlock", by_timedlock, -ETIMEDOUT, .at_us = LIMIT_US),
    TIMELY_ROW(LIBRARY, "pthread_cond_timedwait", by_cond_timedwait, -ETIMEDOUT, .at_us = LIMIT_US),
    TIMELY_ROW(LIBRARY, "pthread_mutex_lock", by_robust_mutex, -EOWNERDEAD, .at_us = LIMIT_US + TIMELY_END_US),
};
TIMELY_THEME(futexes, rows);
