#include "sim/attach/reach.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/attach/internal.h"
#include "sim/platform/process_memory.h"

// Linux 6.5, include/uapi/asm-generic/socket.h; Debian 12's headers are older.
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

// --- who it is ------------------------------------------------------------------------------------------------------

static bool is_own_user(pid_t pid)
{
    char path[32];
    struct stat about;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return stat(path, &about) == 0 && about.st_uid == getuid();
}

bool attach_reach_take(int socket, struct attach_reach *reach_out)
{
    struct ucred peer = {0};
    socklen_t bytes = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.uid != getuid()) {
        return false;
    }
    int pidfd = -1;
    bytes = sizeof pidfd;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &bytes) != 0) {
        pidfd = errno == ENOPROTOOPT ? (int)syscall(SYS_pidfd_open, peer.pid, 0) : -1;
    }
    *reach_out = (struct attach_reach){.pid = peer.pid, .pidfd = pidfd};
    if (pidfd >= 0) {
        attach_reach_note(reach_out);
    }
    if (pidfd < 0 || !is_own_user(peer.pid) || attach_over(pidfd)) { // it was the peer's number until now
        if (pidfd >= 0) {
            close(pidfd);
        }
        return false;
    }
    return true;
}

void attach_reach_note(struct attach_reach *reach)
{
    unsigned long long started = 0;
    (void)attach_stat_read(reach->pid, 22, 1, &started);
    reach->started = started;
}

bool attach_reach_lives(struct attach_reach *reach)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    if (!reach->gone && now_ms != reach->looked_ms) {
        reach->looked_ms = now_ms;
        reach->gone = attach_over(reach->pidfd);
    }
    return !reach->gone;
}

bool attach_reach_same(const struct attach_reach *a, const struct attach_reach *b)
{
    return a->pid == b->pid && a->started == b->started;
}

// --- its memory -----------------------------------------------------------------------------------------------------

ssize_t attach_reach_read(struct attach_process *process, const struct iovec *own, const struct iovec *pieces,
                          unsigned count)
{
    if (!attach_reach_lives(&process->reach)) {
        return -1;
    }
    attach_reach_begin(process);
    ssize_t done = process_vm_readv(process->reach.pid, own, 1, pieces, count, 0);
    attach_reach_end(process);
    return done;
}

ssize_t attach_reach_write(struct attach_process *process, const struct iovec *own, unsigned own_count,
                           const struct iovec *pieces, unsigned count)
{
    if (!attach_reach_lives(&process->reach)) {
        return -1;
    }
    attach_reach_begin(process);
    ssize_t done = process_vm_writev(process->reach.pid, own, own_count, pieces, count, 0);
    attach_reach_end(process);
    return done;
}

bool attach_reach_has(struct attach_process *process, uint64_t address, uint64_t bytes, bool writable)
{
    attach_reach_begin(process);
    bool has = plat_process_memory_exists(process->reach.pid, address, bytes, writable);
    attach_reach_end(process);
    return has && attach_reach_lives(&process->reach);
}

// --- the watch ------------------------------------------------------------------------------------------------------

enum { GRACE_MS = 3000 }; // for the kernel to end a process that was killed

// pidfd: of the process whose call the simulator is in; -1: none. calls: how many there were. Written by the simulator's
// thread, read by the one that watches. While that one strikes, the simulator's thread does not go on.
struct attach_watchdog {
    _Atomic int pidfd;
    _Atomic bool strikes;
    _Atomic bool struck; // a process was killed: another run may differ
    _Atomic uint64_t calls;
    const char *_Atomic name;
    uint64_t limit_ms;
    uint32_t percent; // of the constants of real_time.h
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    bool stop;
};

// Waits; true: the run is over.
static bool rest(struct attach_watchdog *dog)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(attach_real_time(dog->percent, ATTACH_REAL_WATCHDOG_LOOK_MS) * 1000000);
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    (void)pthread_mutex_lock(&dog->lock);
    if (!dog->stop) {
        (void)pthread_cond_timedwait(&dog->stopped, &dog->lock, &until);
    }
    bool over = dog->stop;
    (void)pthread_mutex_unlock(&dog->lock);
    return over;
}

// Kills the process if the simulator is still in that call. false: it is not.
static bool strike(struct attach_watchdog *dog, int pidfd, uint64_t call, char *name, size_t bytes)
{
    (void)pthread_mutex_lock(&dog->lock);
    atomic_store(&dog->strikes, true);
    bool same = atomic_load(&dog->calls) == call && atomic_load(&dog->pidfd) == pidfd;
    if (same) {
        snprintf(name, bytes, "%s", atomic_load(&dog->name));
        (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        atomic_store(&dog->struck, true);
    }
    atomic_store(&dog->strikes, false);
    (void)pthread_mutex_unlock(&dog->lock);
    return same;
}

static void *watchdog_main(void *arg)
{
    struct attach_watchdog *dog = arg;
    struct attach_silence clock = {0};
    uint64_t since_ms = 0, killed_ms = 0, killed = 0; // the call of the process that was killed last
    char name[48];
    while (!rest(dog)) {
        int pidfd = atomic_load(&dog->pidfd);
        uint64_t call = atomic_load(&dog->calls),
                 now_ms = attach_silence_of(&clock, 2 * attach_real_time(dog->percent, ATTACH_REAL_WATCHDOG_LOOK_MS));
        if (pidfd == -1) {
            since_ms = now_ms;
        } else if (killed_ms != 0 && killed == call) {
            if (now_ms - killed_ms > GRACE_MS) {
                fprintf(stderr, "tcasim: the kernel still waits for that memory; the run ends without results\n");
                _exit(EXIT_FAILURE); // the process of scratch.c removes what is left
            }
        } else if (now_ms - since_ms > dog->limit_ms && strike(dog, pidfd, call, name, sizeof name)) {
            fprintf(stderr,
                    "tcasim: %s: its memory has not come for %llu s (userfaultfd, a file of FUSE?); it is killed\n",
                    name, (unsigned long long)(dog->limit_ms / 1000));
            killed = call;
            since_ms = killed_ms = now_ms;
        }
    }
    return NULL;
}

bool attach_watchdog_start(struct attach_server *server)
{
    struct attach_watchdog *dog = calloc(1, sizeof *dog);
    if (dog == NULL) {
        return false;
    }
    atomic_store(&dog->pidfd, -1);
    dog->limit_ms = server->options->wall_limit_ms;
    dog->percent = server->real_percent;
    (void)pthread_mutex_init(&dog->lock, NULL);
    (void)pthread_cond_init(&dog->stopped, NULL);
    if (!attach_aside_thread(&dog->thread, watchdog_main, dog)) {
        free(dog);
        return false;
    }
    server->watchdog = dog;
    return true;
}

void attach_watchdog_stop(struct attach_server *server)
{
    struct attach_watchdog *dog = server->watchdog;
    if (dog == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&dog->lock);
    dog->stop = true;
    (void)pthread_cond_signal(&dog->stopped);
    (void)pthread_mutex_unlock(&dog->lock);
    (void)pthread_join(dog->thread, NULL);
    free(dog);
    server->watchdog = NULL;
}

void attach_watchdog_enter(const struct attach_server *server, int pidfd, const char *name)
{
    struct attach_watchdog *dog = server->watchdog;
    if (dog != NULL) {
        atomic_store_explicit(&dog->name, name, memory_order_relaxed);
        atomic_store_explicit(&dog->pidfd, pidfd, memory_order_release);
    }
}

void attach_watchdog_leave(const struct attach_server *server)
{
    struct attach_watchdog *dog = server->watchdog;
    if (dog != NULL) {
        atomic_store_explicit(&dog->pidfd, -1, memory_order_release);
        (void)atomic_fetch_add(&dog->calls, 1);
        if (atomic_load(&dog->strikes)) { // until it has seen that the call is over, or has killed the process
            (void)pthread_mutex_lock(&dog->lock);
            (void)pthread_mutex_unlock(&dog->lock);
        }
    }
}

void attach_reach_begin(const struct attach_process *process)
{
    attach_watchdog_enter(process->server, process->reach.pidfd, process->name);
}

void attach_reach_end(const struct attach_process *process)
{
    attach_watchdog_leave(process->server);
    if (process->server->watchdog != NULL &&
        atomic_load_explicit(&process->server->watchdog->struck, memory_order_relaxed)) {
        attach_outside_note(process->server, ATTACH_RUN_OUTSIDE_CLOCK);
    }
}
