// System calls that wait, by their numbers.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stages.h"

#ifndef SYS_futex_waitv // Linux 5.16
#define SYS_futex_waitv 449
#endif

enum { SIGNAL_SET_BYTES = 8 }; // the kernel's

static char byte;
static struct iovec piece = {&byte, 1};

// All six arguments, as the kernel takes them.
#define CALL(name, a, b, c, d, e, f)                                                                                   \
    scene->call(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

// --- descriptors ----------------------------------------------------------------------------------------------------

static long by_read(struct timely_scene *scene)
{
    return CALL(read, scene->fds[0], &byte, 1, 0, 0, 0);
}

// Nobody is there (RFC 5737).
static long by_connect(struct timely_scene *scene)
{
    const struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(80), .sin_addr.s_addr = htonl(0xc0000201)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    long result = CALL(connect, fd, &to, sizeof to, 0, 0, 0);
    (void)close(fd);
    return result;
}

enum { RANDOM_BYTES = 20 };

static long by_getrandom(struct timely_scene *scene)
{
    char bytes[RANDOM_BYTES];
    return CALL(getrandom, bytes, sizeof bytes, 0, 0, 0, 0);
}

static long by_getrandom_nowhere(struct timely_scene *scene)
{
    return CALL(getrandom, 16, RANDOM_BYTES, 0, 0, 0, 0);
}

static long by_readv(struct timely_scene *scene)
{
    return CALL(readv, scene->fds[0], &piece, 1, 0, 0, 0);
}

static long by_recvfrom(struct timely_scene *scene)
{
    return CALL(recvfrom, scene->fds[0], &byte, 1, 0, 0, 0);
}

static long by_recvmsg(struct timely_scene *scene)
{
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    return CALL(recvmsg, scene->fds[0], &message, 0, 0, 0, 0);
}

static long by_recvmmsg(struct timely_scene *scene)
{
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &piece, .msg_iovlen = 1}};
    return CALL(recvmmsg, scene->fds[0], &message, 1, 0, 0, 0);
}

static long by_write(struct timely_scene *scene)
{
    return CALL(write, scene->fds[0], &byte, 1, 0, 0, 0);
}

static long by_writev(struct timely_scene *scene)
{
    return CALL(writev, scene->fds[0], &piece, 1, 0, 0, 0);
}

static long by_sendto(struct timely_scene *scene)
{
    return CALL(sendto, scene->fds[0], &byte, 1, 0, 0, 0);
}

static long by_sendmsg(struct timely_scene *scene)
{
    const struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    return CALL(sendmsg, scene->fds[0], &message, 0, 0, 0, 0);
}

static long by_sendmmsg(struct timely_scene *scene)
{
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &piece, .msg_iovlen = 1}};
    return CALL(sendmmsg, scene->fds[0], &message, 1, 0, 0, 0);
}

// 0 instead of the number of the descriptor, which is closed again.
static long connection(struct timely_scene *scene, long fd)
{
    return fd < 0 ? fd : CALL(close, fd, 0, 0, 0, 0, 0);
}

static long by_accept(struct timely_scene *scene)
{
    return connection(scene, CALL(accept, scene->fds[0], 0, 0, 0, 0, 0));
}

static long by_accept4(struct timely_scene *scene)
{
    return connection(scene, CALL(accept4, scene->fds[0], 0, 0, SOCK_CLOEXEC, 0, 0));
}

static long by_poll(struct timely_scene *scene)
{
    struct pollfd one = {.fd = scene->fds[0], .events = POLLIN};
    return CALL(poll, &one, 1, timely_limit_ms(scene), 0, 0, 0);
}

static long by_ppoll(struct timely_scene *scene)
{
    struct timespec time;
    struct pollfd one = {.fd = scene->fds[0], .events = POLLIN};
    return CALL(ppoll, &one, 1, timely_limit(scene, &time), 0, SIGNAL_SET_BYTES, 0);
}

static long by_select(struct timely_scene *scene)
{
    struct timeval limit = {.tv_usec = scene->limit_us};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(scene->fds[0], &set);
    return CALL(select, scene->fds[0] + 1, &set, 0, 0, scene->limit_us != 0 ? &limit : NULL, 0);
}

static long by_pselect(struct timely_scene *scene)
{
    struct timespec time;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(scene->fds[0], &set);
    return CALL(pselect6, scene->fds[0] + 1, &set, 0, 0, timely_limit(scene, &time), 0);
}

static long by_epoll_wait(struct timely_scene *scene)
{
    struct epoll_event event;
    return CALL(epoll_wait, scene->fds[2], &event, 1, timely_limit_ms(scene), 0, 0);
}

static long by_epoll_pwait(struct timely_scene *scene)
{
    struct epoll_event event;
    const uint64_t none = 0;
    return CALL(epoll_pwait, scene->fds[2], &event, 1, timely_limit_ms(scene), &none, SIGNAL_SET_BYTES);
}

static long by_epoll_pwait2(struct timely_scene *scene)
{
    struct epoll_event event;
    struct timespec time;
    return CALL(epoll_pwait2, scene->fds[2], &event, 1, timely_limit(scene, &time), 0, SIGNAL_SET_BYTES);
}

// --- time, signals, children ----------------------------------------------------------------------------------------

static const struct timespec *sleep_time(const struct timely_scene *scene, struct timespec *time)
{
    *time = (struct timespec){.tv_sec = scene->limit_us != 0 ? 0 : 100, .tv_nsec = scene->limit_us * 1000};
    return time;
}

static long by_nanosleep(struct timely_scene *scene)
{
    struct timespec time;
    return CALL(nanosleep, sleep_time(scene, &time), 0, 0, 0, 0, 0);
}

static long by_clock_nanosleep(struct timely_scene *scene)
{
    struct timespec time;
    return CALL(clock_nanosleep, CLOCK_REALTIME, 0, sleep_time(scene, &time), 0, 0, 0);
}

static long by_pause(struct timely_scene *scene)
{
    return CALL(pause, 0, 0, 0, 0, 0, 0);
}

static long by_sigsuspend(struct timely_scene *scene)
{
    const uint64_t none = 0;
    return CALL(rt_sigsuspend, &none, SIGNAL_SET_BYTES, 0, 0, 0, 0);
}

static long by_sigtimedwait(struct timely_scene *scene)
{
    struct timespec time;
    const uint64_t set = UINT64_C(1) << (SIGUSR1 - 1);
    return CALL(rt_sigtimedwait, &set, 0, timely_limit(scene, &time), SIGNAL_SET_BYTES, 0, 0);
}

static long by_wait4(struct timely_scene *scene)
{
    int status = 0;
    long child = CALL(wait4, -1, &status, 0, 0, 0, 0);
    return child > 0 ? WEXITSTATUS(status) : child;
}

static long by_waitid(struct timely_scene *scene)
{
    siginfo_t info = {0};
    long result = CALL(waitid, P_ALL, 0, &info, WEXITED, 0, 0);
    return result == 0 ? info.si_status : result;
}

// --- objects --------------------------------------------------------------------------------------------------------

static long by_futex(struct timely_scene *scene)
{
    struct timespec time;
    long result = CALL(futex, &scene->shared->word, FUTEX_WAIT, 0, timely_limit(scene, &time), 0, 0);
    return result == -EAGAIN ? 0 : result; // it has another value already
}

static long by_futex_until(struct timely_scene *scene)
{
    struct timespec time;
    const struct timespec *until = timely_limit_until(scene, &time);
    long result = CALL(futex, &scene->shared->word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, until, 0,
                       FUTEX_BITSET_MATCH_ANY);
    return result == -EAGAIN ? 0 : result;
}

static long by_flock(struct timely_scene *scene)
{
    return CALL(flock, scene->fds[0], LOCK_EX, 0, 0, 0, 0);
}

static long by_file_lock(struct timely_scene *scene)
{
    const struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return CALL(fcntl, scene->fds[0], F_OFD_SETLKW, &lock, 0, 0, 0);
}

static long by_process_lock(struct timely_scene *scene)
{
    const struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return CALL(fcntl, scene->fds[0], F_SETLKW, &lock, 0, 0, 0);
}

static long by_semop(struct timely_scene *scene)
{
    const struct sembuf take = {.sem_op = -1};
    return CALL(semop, scene->id, &take, 1, 0, 0, 0);
}

static long by_semtimedop(struct timely_scene *scene)
{
    struct timespec time;
    const struct sembuf take = {.sem_op = -1};
    return CALL(semtimedop, scene->id, &take, 1, timely_limit(scene, &time), 0, 0);
}

static long by_msgsnd(struct timely_scene *scene)
{
    const struct timely_message message = {.type = 1};
    return CALL(msgsnd, scene->id, &message, 1, 0, 0, 0);
}

static long by_msgrcv(struct timely_scene *scene)
{
    struct timely_message message;
    return CALL(msgrcv, scene->id, &message, sizeof message.text, 0, 0, 0);
}

static long by_mq_send(struct timely_scene *scene)
{
    struct timespec time;
    return CALL(mq_timedsend, scene->queue, &byte, 1, 0, timely_limit_until(scene, &time), 0);
}

static long by_mq_receive(struct timely_scene *scene)
{
    struct timespec time;
    return CALL(mq_timedreceive, scene->queue, &byte, 1, 0, timely_limit_until(scene, &time), 0);
}

static long by_io_uring_setup(struct timely_scene *scene)
{
    uint32_t parameters[30] = {0};
    return CALL(io_uring_setup, 1, parameters, 0, 0, 0, 0);
}

static long by_futex_waitv(struct timely_scene *scene)
{
    return CALL(futex_waitv, 0, 0, 0, 0, 0, 0);
}

#define LIMIT(result) .has_limit = true, .limit_result = (result)

static const struct timely_row rows[] = {
    TIMELY_ROW(CALL, "read", by_read, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(CALL, "read", by_read, 1, .stage = &timely_pipe),
    TIMELY_ROW(CALL, "read", by_read, -EINTR, .stage = &timely_handled_signal),
    TIMELY_ROW(CALL, "connect", by_connect, -ENETUNREACH),
    TIMELY_ROW(CALL, "getrandom", by_getrandom, RANDOM_BYTES),
    TIMELY_ROW(CALL, "getrandom", by_getrandom_nowhere, -EFAULT),
    TIMELY_ROW(CALL, "readv", by_readv, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(CALL, "recvfrom", by_recvfrom, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(CALL, "recvmsg", by_recvmsg, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(CALL, "recvmmsg", by_recvmmsg, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(CALL, "write", by_write, 1, .stage = &timely_full_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(CALL, "write", by_write, 1, .stage = &timely_full_pipe),
    TIMELY_ROW(CALL, "writev", by_writev, 1, .stage = &timely_full_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(CALL, "sendto", by_sendto, 1, .stage = &timely_full_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(CALL, "sendmsg", by_sendmsg, 1, .stage = &timely_full_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(CALL, "sendmmsg", by_sendmmsg, 1, .stage = &timely_full_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(CALL, "accept", by_accept, 0, .stage = &timely_listener, LIMIT(-EAGAIN)),
    TIMELY_ROW(CALL, "accept4", by_accept4, 0, .stage = &timely_local_listener, LIMIT(-EAGAIN)),
    TIMELY_ROW(CALL, "poll", by_poll, 1, .stage = &timely_socket, LIMIT(0)),
    TIMELY_ROW(CALL, "ppoll", by_ppoll, 1, .stage = &timely_socket, LIMIT(0)),
    TIMELY_ROW(CALL, "select", by_select, 1, .stage = &timely_socket, LIMIT(0)),
    TIMELY_ROW(CALL, "pselect6", by_pselect, 1, .stage = &timely_socket, LIMIT(0)),
    TIMELY_ROW(CALL, "epoll_wait", by_epoll_wait, 1, .stage = &timely_epoll, LIMIT(0)),
    TIMELY_ROW(CALL, "epoll_pwait", by_epoll_pwait, 1, .stage = &timely_epoll, LIMIT(0)),
    TIMELY_ROW(CALL, "epoll_pwait2", by_epoll_pwait2, 1, .stage = &timely_epoll, LIMIT(0)),
    TIMELY_ROW(CALL, "nanosleep", by_nanosleep, -EINTR, .stage = &timely_handled_signal, LIMIT(0)),
    TIMELY_ROW(CALL, "clock_nanosleep", by_clock_nanosleep, -EINTR, .stage = &timely_handled_signal, LIMIT(0)),
    TIMELY_ROW(CALL, "pause", by_pause, -EINTR, .stage = &timely_handled_signal),
    TIMELY_ROW(CALL, "rt_sigsuspend", by_sigsuspend, -EINTR, .stage = &timely_blocked_signal),
    TIMELY_ROW(CALL, "rt_sigtimedwait", by_sigtimedwait, SIGUSR1, .stage = &timely_blocked_signal, LIMIT(-EAGAIN)),
    TIMELY_ROW(CALL, "wait4", by_wait4, TIMELY_CHILD_STATUS, .stage = &timely_child),
    TIMELY_ROW(CALL, "waitid", by_waitid, TIMELY_CHILD_STATUS, .stage = &timely_child),
    TIMELY_ROW(CALL, "futex", by_futex, 0, .stage = &timely_word_futex, LIMIT(-ETIMEDOUT)),
    TIMELY_ROW(CALL, "futex", by_futex_until, 0, .stage = &timely_word_futex, LIMIT(-ETIMEDOUT)),
    TIMELY_ROW(CALL, "futex", by_futex, -EINTR, .stage = &timely_handled_signal),
    TIMELY_ROW(CALL, "flock", by_flock, 0, .stage = &timely_flock),
    TIMELY_ROW(CALL, "fcntl", by_file_lock, 0, .stage = &timely_file_lock),
    TIMELY_ROW(CALL, "fcntl", by_process_lock, 0, .stage = &timely_process_lock),
    TIMELY_ROW(CALL, "semop", by_semop, 0, .stage = &timely_semaphore),
    TIMELY_ROW(CALL, "semtimedop", by_semtimedop, 0, .stage = &timely_semaphore, LIMIT(-EAGAIN)),
    TIMELY_ROW(CALL, "msgsnd", by_msgsnd, 0, .stage = &timely_full_messages),
    TIMELY_ROW(CALL, "msgrcv", by_msgrcv, 1, .stage = &timely_message),
    TIMELY_ROW(CALL, "mq_timedsend", by_mq_send, 0, .stage = &timely_full_queue, LIMIT(-ETIMEDOUT)),
    TIMELY_ROW(CALL, "mq_timedreceive", by_mq_receive, 1, .stage = &timely_queue, LIMIT(-ETIMEDOUT)),
    TIMELY_ROW(CALL, "io_uring_setup", by_io_uring_setup, -ENOSYS),
    TIMELY_ROW(CALL, "futex_waitv", by_futex_waitv, -ENOSYS),
};
TIMELY_THEME(calls, rows);
