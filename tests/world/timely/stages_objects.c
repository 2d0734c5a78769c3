// Memory, children, signals, locks and queues.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stages.h"

const struct timespec *timely_limit(const struct timely_scene *scene, struct timespec *time)
{
    *time = (struct timespec){.tv_nsec = scene->limit_us * 1000};
    return scene->limit_us != 0 ? time : NULL;
}

const struct timespec *timely_limit_until(const struct timely_scene *scene, struct timespec *time)
{
    long ns = scene->began_ns + scene->realtime_ns + scene->limit_us * 1000;
    *time = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    return scene->limit_us != 0 ? time : NULL;
}

int timely_limit_ms(const struct timely_scene *scene)
{
    return scene->limit_us != 0 ? (int)(scene->limit_us / 1000) : -1;
}

// --- memory ---------------------------------------------------------------------------------------------------------

static void word_arm(struct timely_scene *scene)
{
    scene->shared->word = 0;
}

static void word_wake(struct timely_scene *scene)
{
    scene->shared->word = 1;
}

static void futex_wake(struct timely_scene *scene)
{
    scene->shared->word = 1;
    (void)syscall(SYS_futex, &scene->shared->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void spin_lock_arm(struct timely_scene *scene)
{
    (void)pthread_spin_init(&scene->shared->spin_lock, PTHREAD_PROCESS_SHARED);
    (void)pthread_spin_lock(&scene->shared->spin_lock);
}

static void spin_lock_wake(struct timely_scene *scene)
{
    (void)pthread_spin_unlock(&scene->shared->spin_lock);
}

const struct timely_stage timely_word = {"a word", .arm = word_arm, .wake = word_wake, .never_ended = true};
const struct timely_stage timely_word_futex = {"a futex", .arm = word_arm, .wake = futex_wake};
const struct timely_stage timely_spin_lock = {"a spin lock", .arm = spin_lock_arm, .wake = spin_lock_wake,
                                              .never_ended = true};

// --- children and signals -------------------------------------------------------------------------------------------

static void child_open(struct timely_scene *scene)
{
    (void)!pipe(scene->fds);
}

static void child_arm(struct timely_scene *scene)
{
    char byte;
    if (fork() == 0) {
        _exit(read(scene->fds[0], &byte, 1) == 1 ? TIMELY_CHILD_STATUS : 1);
    }
}

static void child_wake(struct timely_scene *scene)
{
    (void)!write(scene->fds[1], "x", 1);
}

static void child_close(struct timely_scene *scene)
{
    (void)close(scene->fds[0]);
    (void)close(scene->fds[1]);
}

static void on_signal(int number)
{
    (void)number;
}

static void handled_arm(struct timely_scene *scene)
{
    (void)scene;
    const struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(SIGUSR1, &action, NULL);
}

static void blocked_arm(struct timely_scene *scene)
{
    sigset_t set;
    handled_arm(scene);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void blocked_close(struct timely_scene *scene)
{
    (void)scene;
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void signal_wake(struct timely_scene *scene)
{
    (void)tgkill(scene->process, scene->thread, SIGUSR1);
}

const struct timely_stage timely_child = {"a child",          .open = child_open,   .arm = child_arm,
                                          .wake = child_wake, .close = child_close, .after_us = TIMELY_END_US};
const struct timely_stage timely_handled_signal = {
    "a signal",          .open = timely_epoll_open,  .arm = handled_arm,
    .wake = signal_wake, .close = timely_ends_close, .never_early = true};
const struct timely_stage timely_blocked_signal = {"a blocked signal", .arm = blocked_arm, .wake = signal_wake,
                                                   .close = blocked_close};
const struct timely_stage timely_nothing = {"nothing", .never_woken = true};

// --- locks of a file: the waiter's descriptor and the waker's are of two opens --------------------------------------

static void file_open(struct timely_scene *scene)
{
    char name[] = "/dev/shm/timely-lock-XXXXXX";
    scene->fds[0] = mkstemp(name);
    scene->fds[1] = open(name, O_RDWR);
    (void)unlink(name);
}

static void flock_arm(struct timely_scene *scene)
{
    (void)flock(scene->fds[0], LOCK_UN);
    (void)flock(scene->fds[1], LOCK_EX);
}

static void flock_wake(struct timely_scene *scene)
{
    (void)flock(scene->fds[1], LOCK_UN);
}

static void file_lock_set(int fd, int command, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
    (void)fcntl(fd, command, &lock);
}

static void file_lock_arm(struct timely_scene *scene)
{
    file_lock_set(scene->fds[0], F_OFD_SETLK, F_UNLCK);
    file_lock_set(scene->fds[1], F_OFD_SETLK, F_WRLCK);
}

static void file_lock_wake(struct timely_scene *scene)
{
    file_lock_set(scene->fds[1], F_OFD_SETLK, F_UNLCK);
}

// The lock is a process's.
static void process_lock_arm(struct timely_scene *scene)
{
    file_lock_set(scene->fds[0], F_SETLK, F_UNLCK);
}

static void process_lock_hold(struct timely_scene *scene)
{
    file_lock_set(scene->fds[1], F_SETLK, F_WRLCK);
}

static void process_lock_wake(struct timely_scene *scene)
{
    file_lock_set(scene->fds[1], F_SETLK, F_UNLCK);
}

const struct timely_stage timely_flock = {"a file's lock", .open = file_open, .arm = flock_arm, .wake = flock_wake,
                                          .close = child_close};
const struct timely_stage timely_file_lock = {"an open file's lock", .open = file_open, .arm = file_lock_arm,
                                              .wake = file_lock_wake, .close = child_close};
const struct timely_stage timely_process_lock = {
    "a process's lock",        .open = file_open,    .arm = process_lock_arm, .hold = process_lock_hold,
    .wake = process_lock_wake, .close = child_close, .of_process = true};

// --- System V -------------------------------------------------------------------------------------------------------

static void semaphore_open(struct timely_scene *scene)
{
    scene->id = semget(IPC_PRIVATE, 1, 0600);
}

static void semaphore_wake(struct timely_scene *scene)
{
    struct sembuf give = {.sem_op = 1};
    (void)semop(scene->id, &give, 1);
}

static void semaphore_close(struct timely_scene *scene)
{
    (void)semctl(scene->id, 0, IPC_RMID);
}

static void messages_open(struct timely_scene *scene)
{
    scene->id = msgget(IPC_PRIVATE, 0600);
}

static void message_wake(struct timely_scene *scene)
{
    const struct timely_message message = {.type = 1};
    (void)msgsnd(scene->id, &message, 1, 0);
}

static void full_messages_arm(struct timely_scene *scene)
{
    static const struct timely_message message = {.type = 1};
    struct timely_message old;
    while (msgrcv(scene->id, &old, sizeof old.text, 0, IPC_NOWAIT) >= 0) {
    }
    while (msgsnd(scene->id, &message, sizeof message.text, IPC_NOWAIT) == 0) {
    }
}

static void full_messages_wake(struct timely_scene *scene)
{
    struct timely_message message;
    (void)msgrcv(scene->id, &message, sizeof message.text, 0, 0);
}

static void messages_close(struct timely_scene *scene)
{
    (void)msgctl(scene->id, IPC_RMID, NULL);
}

const struct timely_stage timely_semaphore = {"a semaphore", .open = semaphore_open, .wake = semaphore_wake,
                                              .close = semaphore_close};
const struct timely_stage timely_message = {"a message", .open = messages_open, .wake = message_wake,
                                            .close = messages_close};
const struct timely_stage timely_full_messages = {"room for a message", .open = messages_open, .arm = full_messages_arm,
                                                  .wake = full_messages_wake, .close = messages_close};

// --- POSIX ----------------------------------------------------------------------------------------------------------

static void queue_open(struct timely_scene *scene)
{
    char name[256];
    const struct mq_attr one = {.mq_maxmsg = 1, .mq_msgsize = 1};
    (void)snprintf(name, sizeof name, "/timely%s", getenv("TMPDIR")); // no other run's
    for (char *at = name + 1; *at != '\0'; at++) {
        *at = *at == '/' ? '-' : *at;
    }
    scene->queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &one);
    (void)mq_unlink(name);
}

static void queue_wake(struct timely_scene *scene)
{
    (void)mq_send(scene->queue, "x", 1, 0);
}

static void full_queue_arm(struct timely_scene *scene)
{
    const struct timespec past = {0};
    (void)mq_timedsend(scene->queue, "x", 1, 0, &past);
}

static void full_queue_wake(struct timely_scene *scene)
{
    char byte;
    (void)mq_receive(scene->queue, &byte, 1, NULL);
}

static void queue_close(struct timely_scene *scene)
{
    (void)mq_close(scene->queue);
}

const struct timely_stage timely_queue = {"a message", .open = queue_open, .wake = queue_wake, .close = queue_close};
const struct timely_stage timely_full_queue = {"room for a message", .open = queue_open, .arm = full_queue_arm,
                                               .wake = full_queue_wake, .close = queue_close};
