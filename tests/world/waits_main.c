// Threads and processes that wait for each other in every way of the C library that uses a futex. Prints the simulated
// time at which each part is over, in us.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 50 };

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    sem_t semaphore;
    pthread_barrier_t barrier;
    int value;
};

static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin_lock;
static long whose;
static bool stop;

static void over(const char *what)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    static long began;
    long us = now.tv_sec * 1000000 + now.tv_nsec / 1000;
    began = began == 0 ? us : began;
    printf("%s %ld\n", what, us - began);
}

static void *take_turns(void *arg)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        usleep(10 * (unsigned)(1 + (long)arg));
        pthread_barrier_wait(&barrier);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        while (whose % THREADS != (long)arg) {
            pthread_cond_wait(&condition, &mutex);
        }
        whose++;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

static void threads_wait(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, take_turns, (void *)i);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

// Has a lock whenever it gives the run token back: a thread that waits for the lock gets it when this one releases it.
static void *lock_greedily(void *arg)
{
    while (!stop) {
        pthread_spin_lock(&spin_lock);
        pthread_mutex_lock(&mutex);
        sched_yield();
        pthread_mutex_unlock(&mutex);
        pthread_spin_unlock(&spin_lock);
    }
    return arg;
}

static void locks_wait(void)
{
    pthread_t thread;
    pthread_spin_init(&spin_lock, PTHREAD_PROCESS_PRIVATE);
    pthread_create(&thread, NULL, lock_greedily, NULL);
    for (unsigned i = 0; i < ROUNDS; i++) {
        usleep(1);
        pthread_spin_lock(&spin_lock);
        stop = i + 1 == ROUNDS / 2;
        pthread_spin_unlock(&spin_lock);
        if (stop) {
            pthread_join(thread, NULL);
            stop = false;
            pthread_create(&thread, NULL, lock_greedily, NULL);
        }
        pthread_mutex_lock(&mutex);
        stop = i + 1 == ROUNDS;
        pthread_mutex_unlock(&mutex);
    }
    pthread_join(thread, NULL);
}

static int answer(void *arg)
{
    usleep(5);
    return *(int *)arg + 1;
}

static struct shared *shared_make(void)
{
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t mutex_attributes;
    pthread_condattr_t condition_attributes;
    pthread_barrierattr_t barrier_attributes;
    pthread_mutexattr_init(&mutex_attributes);
    pthread_condattr_init(&condition_attributes);
    pthread_barrierattr_init(&barrier_attributes);
    pthread_mutexattr_setpshared(&mutex_attributes, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setpshared(&condition_attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrierattr_setpshared(&barrier_attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &mutex_attributes);
    pthread_cond_init(&shared->condition, &condition_attributes);
    pthread_barrier_init(&shared->barrier, &barrier_attributes, 2);
    sem_init(&shared->semaphore, 1, 0);
    return shared;
}

static void child_run(struct shared *shared)
{
    usleep(1000);
    pthread_mutex_lock(&shared->mutex);
    shared->value = 42;
    pthread_cond_signal(&shared->condition);
    pthread_mutex_unlock(&shared->mutex);
    sem_wait(&shared->semaphore);
    for (unsigned i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&shared->barrier);
    }
    _exit(3);
}

static int processes_wait(void)
{
    struct shared *shared = shared_make();
    int status;
    pid_t child = fork();
    if (child == 0) {
        child_run(shared);
    }
    pthread_mutex_lock(&shared->mutex);
    while (shared->value != 42) {
        pthread_cond_wait(&shared->condition, &shared->mutex);
    }
    pthread_mutex_unlock(&shared->mutex);
    usleep(50);
    sem_post(&shared->semaphore);
    for (unsigned i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&shared->barrier);
    }
    return waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3 ? 0 : 1;
}

// A System V call may have hundreds of operations, and waits for all of them.
static int semaphores_wait(void)
{
    enum { SEMAPHORES = 100 };
    struct sembuf take[SEMAPHORES], give[SEMAPHORES];
    int status = 0, set = semget(IPC_PRIVATE, SEMAPHORES, 0600);
    for (unsigned short i = 0; i < SEMAPHORES; i++) {
        take[i] = (struct sembuf){.sem_num = i, .sem_op = -1};
        give[i] = (struct sembuf){.sem_num = i, .sem_op = 1};
    }
    pid_t child = fork();
    if (child == 0) {
        _exit(semop(set, take, SEMAPHORES) == 0 ? 4 : 5);
    }
    usleep(50);
    bool given = semop(set, give, SEMAPHORES) == 0;
    bool taken = waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4;
    return given && taken && semctl(set, 0, IPC_RMID) == 0 ? 0 : 3;
}

int main(void)
{
    thrd_t thread;
    int seven = 7, eight = 0;
    char line[32] = "";
    over("begin");
    threads_wait();
    over("threads");
    locks_wait();
    over("locks");
    if (thrd_create(&thread, answer, &seven) != thrd_success || thrd_join(thread, &eight) != thrd_success ||
        eight != 8 || processes_wait() != 0) {
        return 1;
    }
    over("processes");
    pthread_mutex_lock(&mutex);
    struct timespec when;
    clock_gettime(CLOCK_REALTIME, &when);
    when.tv_sec += 5;
    int error = pthread_cond_timedwait(&condition, &mutex, &when);
    over("timeout");
    FILE *command = popen("echo hello", "r");
    bool read = command != NULL && fgets(line, sizeof line, command) != NULL && pclose(command) == 0;
    printf("%s", line);
    return error != 0 && read ? semaphores_wait() : 2;
}
