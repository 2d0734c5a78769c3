// Functions of the C library that are no rows of calls.def: they wait by a CALL, which the filter finds (trap.c).
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "stages.h"

static char byte;
static struct iovec piece = {&byte, 1};

static long by_recvmmsg(struct timely_scene *scene)
{
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &piece, .msg_iovlen = 1}};
    return timely_result(recvmmsg(scene->fds[0], &message, 1, 0, NULL));
}

static long by_sendmmsg(struct timely_scene *scene)
{
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &piece, .msg_iovlen = 1}};
    return timely_result(sendmmsg(scene->fds[0], &message, 1, 0));
}

static char many[TIMELY_MANY_BYTES / 4];

static long by_sendmmsg_of_many(struct timely_scene *scene)
{
    struct iovec all = {many, sizeof many};
    struct mmsghdr messages[4] = {0};
    long bytes = 0;
    for (unsigned i = 0; i < 4; i++) {
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &all, .msg_iovlen = 1};
    }
    int sent = sendmmsg(scene->fds[0], messages, 4, 0);
    for (int i = 0; i < sent; i++) {
        bytes += messages[i].msg_len;
    }
    return sent > 0 ? bytes : timely_result(sent);
}

static long by_recvmmsg_of_two(struct timely_scene *scene)
{
    struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = &piece, .msg_iovlen = 1}},
                                  {.msg_hdr = {.msg_iov = &piece, .msg_iovlen = 1}}};
    return timely_result(recvmmsg(scene->fds[0], messages, 2, 0, NULL));
}

static long by_pselect(struct timely_scene *scene)
{
    struct timespec time;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(scene->fds[0], &set);
    return timely_result(pselect(scene->fds[0] + 1, &set, NULL, NULL, timely_limit(scene, &time), NULL));
}

static long by_epoll_pwait2(struct timely_scene *scene)
{
    struct epoll_event event;
    struct timespec time;
    return timely_result(epoll_pwait2(scene->fds[2], &event, 1, timely_limit(scene, &time), NULL));
}

// --- time and signals -----------------------------------------------------------------------------------------------

static long by_usleep(struct timely_scene *scene)
{
    return timely_result(usleep(scene->limit_us != 0 ? (useconds_t)scene->limit_us : 999999));
}

static long by_nanosleep(struct timely_scene *scene)
{
    const struct timespec time = {.tv_sec = scene->limit_us != 0 ? 0 : 100, .tv_nsec = scene->limit_us * 1000};
    return timely_result(nanosleep(&time, NULL));
}

// nanosleep(2): "The value in the tv_nsec field was not in the range [0, 999999999]".
static long by_nanosleep_of_second(struct timely_scene *scene)
{
    const struct timespec time = {.tv_nsec = 1000000000}, negative = {.tv_nsec = -1};
    (void)scene;
    long result = timely_result(nanosleep(&negative, NULL));
    return result == -EINVAL ? timely_result(nanosleep(&time, NULL)) : result;
}

static long by_clock_nanosleep_of_second(struct timely_scene *scene)
{
    const struct timespec time = {.tv_nsec = 1000000000};
    (void)scene;
    return -clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void on_signal(int number)
{
    (void)number;
}

static void signal_it(void *scene)
{
    (void)tgkill(((struct timely_scene *)scene)->process, ((struct timely_scene *)scene)->thread, SIGUSR1);
}

// A sleep that a signal ends tells how much of it is left, here in us.
static long by_nanosleep_left(struct timely_scene *scene)
{
    const struct sigaction action = {.sa_handler = on_signal};
    const struct timespec time = {.tv_sec = 3, .tv_nsec = TIMELY_AGAIN_US * 1000};
    struct timespec left = {0};
    (void)sigaction(SIGUSR1, &action, NULL);
    timely_later(scene, TIMELY_WOKEN_US, signal_it, scene);
    long result = timely_result(nanosleep(&time, &left));
    timely_later_end();
    return result == -EINTR ? left.tv_sec * 1000000 + left.tv_nsec / 1000 : result;
}

static long by_clock_nanosleep_left(struct timely_scene *scene)
{
    const struct sigaction action = {.sa_handler = on_signal};
    const struct timespec time = {.tv_nsec = TIMELY_AGAIN_US * 1000};
    struct timespec left = {0};
    (void)sigaction(SIGUSR1, &action, NULL);
    timely_later(scene, TIMELY_WOKEN_US, signal_it, scene);
    int error = clock_nanosleep(CLOCK_REALTIME, 0, &time, &left);
    timely_later_end();
    return error == EINTR ? left.tv_sec * 1000000 + left.tv_nsec / 1000 : -error;
}

static long by_clock_nanosleep(struct timely_scene *scene)
{
    const struct timespec time = {.tv_sec = scene->limit_us != 0 ? 0 : 100, .tv_nsec = scene->limit_us * 1000};
    return -clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static long by_pause(struct timely_scene *scene)
{
    (void)scene;
    return timely_result(pause());
}

static long by_sigsuspend(struct timely_scene *scene)
{
    (void)scene;
    sigset_t none;
    (void)sigemptyset(&none);
    return timely_result(sigsuspend(&none));
}

static sigset_t *user_signal(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGUSR1);
    return set;
}

static long by_sigwait(struct timely_scene *scene)
{
    (void)scene;
    sigset_t set;
    int number = 0;
    (void)sigwait(user_signal(&set), &number);
    return number;
}

static long by_sigwaitinfo(struct timely_scene *scene)
{
    (void)scene;
    sigset_t set;
    return timely_result(sigwaitinfo(user_signal(&set), NULL));
}

static long by_sigtimedwait(struct timely_scene *scene)
{
    sigset_t set;
    struct timespec time;
    return timely_result(sigtimedwait(user_signal(&set), NULL, timely_limit(scene, &time)));
}

// --- objects --------------------------------------------------------------------------------------------------------

static long by_flock(struct timely_scene *scene)
{
    return timely_result(flock(scene->fds[0], LOCK_EX));
}

static long by_lockf(struct timely_scene *scene)
{
    return timely_result(lockf(scene->fds[0], F_LOCK, 0));
}

static long by_fcntl(struct timely_scene *scene)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return timely_result(fcntl(scene->fds[0], F_OFD_SETLKW, &lock));
}

static long by_semop(struct timely_scene *scene)
{
    struct sembuf take = {.sem_op = -1};
    return timely_result(semop(scene->id, &take, 1));
}

static long by_semtimedop(struct timely_scene *scene)
{
    struct timespec time;
    struct sembuf take = {.sem_op = -1};
    return timely_result(semtimedop(scene->id, &take, 1, timely_limit(scene, &time)));
}

static long by_msgsnd(struct timely_scene *scene)
{
    const struct timely_message message = {.type = 1};
    return timely_result(msgsnd(scene->id, &message, 1, 0));
}

static long by_msgrcv(struct timely_scene *scene)
{
    struct timely_message message;
    return timely_result(msgrcv(scene->id, &message, sizeof message.text, 0, 0));
}

static long by_mq_send(struct timely_scene *scene)
{
    return timely_result(mq_send(scene->queue, &byte, 1, 0));
}

static long by_mq_receive(struct timely_scene *scene)
{
    return timely_result(mq_receive(scene->queue, &byte, 1, NULL));
}

static long by_mq_timedsend(struct timely_scene *scene)
{
    struct timespec time;
    (void)timely_limit_until(scene, &time);
    time.tv_sec += scene->limit_us != 0 ? 0 : 100;
    return timely_result(mq_timedsend(scene->queue, &byte, 1, 0, &time));
}

static long by_mq_timedreceive(struct timely_scene *scene)
{
    struct timespec time;
    (void)timely_limit_until(scene, &time);
    time.tv_sec += scene->limit_us != 0 ? 0 : 100;
    return timely_result(mq_timedreceive(scene->queue, &byte, 1, NULL, &time));
}

// The first of two operations does not wait (IPC_NOWAIT), and it cannot be done: so neither waits.
static long by_semop_at_once(struct timely_scene *scene)
{
    struct sembuf take[] = {{.sem_num = 0, .sem_op = -1, .sem_flg = IPC_NOWAIT}, {.sem_num = 1, .sem_op = -1}};
    (void)scene;
    int id = semget(IPC_PRIVATE, 2, 0600);
    long result = timely_result(semop(id, take, 2));
    (void)semctl(id, 0, IPC_RMID);
    return result;
}

// A lock that another thread releases while it goes on is taken at that time, in us.
static void unlock_and_go_on(void *arg)
{
    const int *fds = arg;
    (void)flock(fds[1], LOCK_UN);
    const long until_ns = timely_now_ns() + TIMELY_WOKEN_US * 1000;
    while (timely_now_ns() < until_ns) {
    }
}

static long by_flock_seen(struct timely_scene *scene)
{
    char name[] = "/dev/shm/timely-library-XXXXXX";
    int fds[2] = {mkstemp(name)};
    fds[1] = open(name, O_RDWR);
    (void)unlink(name);
    (void)flock(fds[1], LOCK_EX);
    timely_later(scene, TIMELY_WOKEN_US, unlock_and_go_on, fds);
    long result = timely_result(flock(fds[0], LOCK_EX));
    long us = (timely_now_ns() - scene->began_ns) / 1000;
    timely_later_end();
    (void)close(fds[0]);
    (void)close(fds[1]);
    return result == 0 ? us : result;
}

// --- threads: by futexes --------------------------------------------------------------------------------------------

static void *nap(void *unused)
{
    (void)usleep(TIMELY_WOKEN_US);
    return unused;
}

static long by_pthread_join(struct timely_scene *scene)
{
    (void)scene;
    pthread_t thread;
    (void)pthread_create(&thread, NULL, nap, NULL);
    return pthread_join(thread, NULL);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void *hold_mutex(void *unused)
{
    (void)pthread_mutex_lock(&mutex);
    (void)usleep(TIMELY_WOKEN_US);
    (void)pthread_mutex_unlock(&mutex);
    return unused;
}

static long by_pthread_mutex_lock(struct timely_scene *scene)
{
    (void)scene;
    pthread_t thread;
    (void)pthread_create(&thread, NULL, hold_mutex, NULL);
    (void)usleep(TIMELY_BEGIN_US);
    int error = pthread_mutex_lock(&mutex);
    (void)pthread_mutex_unlock(&mutex);
    (void)pthread_join(thread, NULL);
    return error;
}

static void condition_signal(void *unused)
{
    (void)unused;
    (void)pthread_cond_signal(&condition);
}

static long by_pthread_cond_wait(struct timely_scene *scene)
{
    timely_later(scene, TIMELY_WOKEN_US, condition_signal, NULL);
    (void)pthread_mutex_lock(&mutex);
    int error = pthread_cond_wait(&condition, &mutex);
    (void)pthread_mutex_unlock(&mutex);
    timely_later_end();
    return error;
}

static long by_pthread_cond_timedwait(struct timely_scene *scene)
{
    struct timespec time;
    scene->limit_us = TIMELY_WOKEN_US;
    (void)pthread_mutex_lock(&mutex);
    int error = pthread_cond_timedwait(&condition, &mutex, timely_limit_until(scene, &time));
    (void)pthread_mutex_unlock(&mutex);
    return -error;
}

#define LIMIT(result) .has_limit = true, .limit_result = (result)
#define WOKEN         .at_us = TIMELY_WOKEN_US
enum { LOOP_NS = 2000 }; // a loop of clock reads may be late by a hundredth

static const struct timely_row rows[] = {
    TIMELY_ROW(LIBRARY, "recvmmsg", by_recvmmsg, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(LIBRARY, "sendmmsg", by_sendmmsg, 1, .stage = &timely_full_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(LIBRARY, "recvmmsg", by_recvmmsg_of_two, 2, .stage = &timely_datagrams),
    TIMELY_ROW(LIBRARY, "sendmmsg", by_sendmmsg_of_many, TIMELY_MANY_BYTES, .stage = &timely_reader),
    TIMELY_ROW(LIBRARY, "pselect", by_pselect, 1, .stage = &timely_socket, LIMIT(0)),
    TIMELY_ROW(LIBRARY, "epoll_pwait2", by_epoll_pwait2, 1, .stage = &timely_epoll, LIMIT(0)),
    TIMELY_ROW(LIBRARY, "usleep", by_usleep, -EINTR, .stage = &timely_handled_signal, LIMIT(0)),
    TIMELY_ROW(LIBRARY, "nanosleep", by_nanosleep, -EINTR, .stage = &timely_handled_signal, LIMIT(0)),
    TIMELY_ROW(LIBRARY, "clock_nanosleep", by_clock_nanosleep, -EINTR, .stage = &timely_handled_signal, LIMIT(0)),
    TIMELY_ROW(LIBRARY, "nanosleep", by_nanosleep_of_second, -EINVAL),
    TIMELY_ROW(LIBRARY, "clock_nanosleep", by_clock_nanosleep_of_second, -EINVAL),
    TIMELY_ROW(LIBRARY, "nanosleep", by_nanosleep_left, 3000000 + TIMELY_AGAIN_US - TIMELY_WOKEN_US, WOKEN),
    TIMELY_ROW(LIBRARY, "clock_nanosleep", by_clock_nanosleep_left, TIMELY_AGAIN_US - TIMELY_WOKEN_US, WOKEN),
    TIMELY_ROW(LIBRARY, "pause", by_pause, -EINTR, .stage = &timely_handled_signal),
    TIMELY_ROW(LIBRARY, "sigsuspend", by_sigsuspend, -EINTR, .stage = &timely_blocked_signal),
    TIMELY_ROW(LIBRARY, "sigwait", by_sigwait, SIGUSR1, .stage = &timely_blocked_signal),
    TIMELY_ROW(LIBRARY, "sigwaitinfo", by_sigwaitinfo, SIGUSR1, .stage = &timely_blocked_signal),
    TIMELY_ROW(LIBRARY, "sigtimedwait", by_sigtimedwait, SIGUSR1, .stage = &timely_blocked_signal, LIMIT(-EAGAIN)),
    TIMELY_ROW(LIBRARY, "flock", by_flock, 0, .stage = &timely_flock),
    TIMELY_ROW(LIBRARY, "lockf", by_lockf, 0, .stage = &timely_process_lock),
    TIMELY_ROW(LIBRARY, "fcntl", by_fcntl, 0, .stage = &timely_file_lock),
    TIMELY_ROW(LIBRARY, "semop", by_semop, 0, .stage = &timely_semaphore),
    TIMELY_ROW(LIBRARY, "semtimedop", by_semtimedop, 0, .stage = &timely_semaphore, LIMIT(-EAGAIN)),
    TIMELY_ROW(LIBRARY, "semop", by_semop_at_once, -EAGAIN),
    TIMELY_ROW(LIBRARY, "flock", by_flock_seen, TIMELY_WOKEN_US, .at_us = 2 * TIMELY_WOKEN_US, .late_ns = LOOP_NS),
    TIMELY_ROW(LIBRARY, "msgsnd", by_msgsnd, 0, .stage = &timely_full_messages),
    TIMELY_ROW(LIBRARY, "msgrcv", by_msgrcv, 1, .stage = &timely_message),
    TIMELY_ROW(LIBRARY, "mq_send", by_mq_send, 0, .stage = &timely_full_queue),
    TIMELY_ROW(LIBRARY, "mq_receive", by_mq_receive, 1, .stage = &timely_queue),
    TIMELY_ROW(LIBRARY, "mq_timedsend", by_mq_timedsend, 0, .stage = &timely_full_queue, LIMIT(-ETIMEDOUT)),
    TIMELY_ROW(LIBRARY, "mq_timedreceive", by_mq_timedreceive, 1, .stage = &timely_queue, LIMIT(-ETIMEDOUT)),
    TIMELY_ROW(LIBRARY, "pthread_join", by_pthread_join, 0, .at_us = TIMELY_WOKEN_US),
    TIMELY_ROW(LIBRARY, "pthread_mutex_lock", by_pthread_mutex_lock, 0, .at_us = TIMELY_WOKEN_US),
    TIMELY_ROW(LIBRARY, "pthread_cond_wait", by_pthread_cond_wait, 0, .at_us = TIMELY_WOKEN_US),
    TIMELY_ROW(LIBRARY, "pthread_cond_timedwait", by_pthread_cond_timedwait, -ETIMEDOUT, .at_us = TIMELY_WOKEN_US),
};
TIMELY_THEME(library, rows);
