// The functions that wait for something to read, for a connection, a child or memory.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stages.h"

// Programs built with _FORTIFY_SOURCE call these; the C library's headers do not declare them otherwise.
ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room);
ssize_t __recv_chk(int fd, void *buffer, size_t bytes, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buffer, size_t bytes, size_t room, int flags, struct sockaddr *from,
                       socklen_t *from_bytes);
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t room);

static char byte;

static long by_read(struct timely_scene *scene)
{
    return timely_result(read(scene->fds[0], &byte, 1));
}

static long by_read_chk(struct timely_scene *scene)
{
    return timely_result(__read_chk(scene->fds[0], &byte, 1, 1));
}

static long by_readv(struct timely_scene *scene)
{
    const struct iovec piece = {&byte, 1};
    return timely_result(readv(scene->fds[0], &piece, 1));
}

static long by_recv(struct timely_scene *scene)
{
    return timely_result(recv(scene->fds[0], &byte, 1, 0));
}

static long by_recv_chk(struct timely_scene *scene)
{
    return timely_result(__recv_chk(scene->fds[0], &byte, 1, 1, 0));
}

static long by_recvfrom(struct timely_scene *scene)
{
    return timely_result(recvfrom(scene->fds[0], &byte, 1, 0, NULL, NULL));
}

static long by_recvfrom_chk(struct timely_scene *scene)
{
    return timely_result(__recvfrom_chk(scene->fds[0], &byte, 1, 1, 0, NULL, NULL));
}

static long by_recvmsg(struct timely_scene *scene)
{
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    return timely_result(recvmsg(scene->fds[0], &message, 0));
}

// All of the bytes, although they come in two pieces.
static long by_recv_of_all(struct timely_scene *scene)
{
    char both[2];
    return timely_result(recv(scene->fds[0], both, sizeof both, MSG_WAITALL));
}

static long by_recvmsg_of_all(struct timely_scene *scene)
{
    char first, second;
    struct iovec pieces[] = {{&first, 1}, {&second, 1}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    return timely_result(recvmsg(scene->fds[0], &message, MSG_WAITALL));
}

static long by_poll(struct timely_scene *scene)
{
    struct pollfd one = {.fd = scene->fds[0], .events = POLLIN};
    return timely_result(poll(&one, 1, timely_limit_ms(scene)));
}

static long by_poll_chk(struct timely_scene *scene)
{
    struct pollfd one = {.fd = scene->fds[0], .events = POLLIN};
    return timely_result(__poll_chk(&one, 1, timely_limit_ms(scene), sizeof one));
}

static long by_ppoll(struct timely_scene *scene)
{
    struct timespec time;
    struct pollfd one = {.fd = scene->fds[0], .events = POLLIN};
    return timely_result(ppoll(&one, 1, timely_limit(scene, &time), NULL));
}

static long by_ppoll_chk(struct timely_scene *scene)
{
    struct timespec time;
    struct pollfd one = {.fd = scene->fds[0], .events = POLLIN};
    return timely_result(__ppoll_chk(&one, 1, timely_limit(scene, &time), NULL, sizeof one));
}

static long by_select(struct timely_scene *scene)
{
    struct timeval limit = {.tv_usec = scene->limit_us};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(scene->fds[0], &set);
    return timely_result(select(scene->fds[0] + 1, &set, NULL, NULL, scene->limit_us != 0 ? &limit : NULL));
}

static long by_epoll_wait(struct timely_scene *scene)
{
    struct epoll_event event;
    return timely_result(epoll_wait(scene->fds[2], &event, 1, timely_limit_ms(scene)));
}

static long by_epoll_pwait(struct timely_scene *scene)
{
    struct epoll_event event;
    sigset_t none;
    (void)sigemptyset(&none);
    return timely_result(epoll_pwait(scene->fds[2], &event, 1, timely_limit_ms(scene), &none));
}

static long by_syscall(struct timely_scene *scene)
{
    return timely_result(syscall(SYS_read, scene->fds[0], &byte, 1));
}

// 0 instead of the number of the descriptor, which is closed again.
static long connection(long fd)
{
    return fd < 0 ? timely_result(fd) : close((int)fd);
}

static long by_accept(struct timely_scene *scene)
{
    return connection(accept(scene->fds[0], NULL, NULL));
}

static long by_accept4(struct timely_scene *scene)
{
    return connection(accept4(scene->fds[0], NULL, NULL, SOCK_CLOEXEC));
}

// --- memory ---------------------------------------------------------------------------------------------------------

static long by_sched_yield(struct timely_scene *scene)
{
    while (scene->shared->word == 0) {
        (void)sched_yield();
    }
    return (long)scene->shared->word;
}

static long by_spin_lock(struct timely_scene *scene)
{
    return pthread_spin_lock(&scene->shared->spin_lock);
}

// The waker calls it. Here it releases the lock that the waiter has got.
static long by_spin_unlock(struct timely_scene *scene)
{
    (void)pthread_spin_lock(&scene->shared->spin_lock);
    return pthread_spin_unlock(&scene->shared->spin_lock);
}

// --- children -------------------------------------------------------------------------------------------------------

static long exit_status(pid_t child, int status)
{
    return child > 0 ? WEXITSTATUS(status) : timely_result(child);
}

static long by_wait(struct timely_scene *scene)
{
    (void)scene;
    int status = 0;
    pid_t child = wait(&status);
    return exit_status(child, status);
}

static long by_wait3(struct timely_scene *scene)
{
    (void)scene;
    int status = 0;
    struct rusage usage;
    pid_t child = wait3(&status, 0, &usage);
    return exit_status(child, status);
}

static long by_wait4(struct timely_scene *scene)
{
    (void)scene;
    int status = 0;
    pid_t child = wait4(-1, &status, 0, NULL);
    return exit_status(child, status);
}

static long by_waitpid(struct timely_scene *scene)
{
    (void)scene;
    int status = 0;
    pid_t child = waitpid(-1, &status, 0);
    return exit_status(child, status);
}

static long by_waitid(struct timely_scene *scene)
{
    (void)scene;
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED) == 0 ? info.si_status : timely_result(-1);
}

#define LIMIT(result) .has_limit = true, .limit_result = (result)
enum { YIELD_NS = 200 /* an iteration of the loop */ };

static const struct timely_row rows[] = {
    TIMELY_ROW(FUNCTION, "read", by_read, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "read", by_read, 1, .stage = &timely_pipe),
    TIMELY_ROW(FUNCTION, "read", by_read, 1, .stage = &timely_tcp, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "__read_chk", by_read_chk, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "readv", by_readv, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "recv", by_recv, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "__recv_chk", by_recv_chk, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "recvfrom", by_recvfrom, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "__recvfrom_chk", by_recvfrom_chk, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "recvmsg", by_recvmsg, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "recv", by_recv_of_all, 2, .stage = &timely_pieces),
    TIMELY_ROW(FUNCTION, "recvmsg", by_recvmsg_of_all, 2, .stage = &timely_pieces),
    TIMELY_ROW(FUNCTION, "poll", by_poll, 1, .stage = &timely_socket, LIMIT(0)),
    TIMELY_ROW(FUNCTION, "poll", by_poll, 1, .stage = &timely_tcp, LIMIT(0)),
    TIMELY_ROW(FUNCTION, "__poll_chk", by_poll_chk, 1, .stage = &timely_socket, LIMIT(0)),
    TIMELY_ROW(FUNCTION, "ppoll", by_ppoll, 1, .stage = &timely_socket, LIMIT(0)),
    TIMELY_ROW(FUNCTION, "__ppoll_chk", by_ppoll_chk, 1, .stage = &timely_socket, LIMIT(0)),
    TIMELY_ROW(FUNCTION, "select", by_select, 1, .stage = &timely_socket, LIMIT(0)),
    TIMELY_ROW(FUNCTION, "epoll_wait", by_epoll_wait, 1, .stage = &timely_epoll, LIMIT(0)),
    TIMELY_ROW(FUNCTION, "epoll_pwait", by_epoll_pwait, 1, .stage = &timely_epoll, LIMIT(0)),
    TIMELY_ROW(FUNCTION, "syscall", by_syscall, 1, .stage = &timely_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "accept", by_accept, 0, .stage = &timely_listener, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "accept", by_accept, 0, .stage = &timely_local_listener, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "accept4", by_accept4, 0, .stage = &timely_listener, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "read", by_read, -EINTR, .stage = &timely_handled_signal),
    TIMELY_ROW(FUNCTION, "recvmsg", by_recvmsg, -EINTR, .stage = &timely_handled_signal),
    TIMELY_ROW(FUNCTION, "poll", by_poll, -EINTR, .stage = &timely_handled_signal),
    TIMELY_ROW(FUNCTION, "select", by_select, -EINTR, .stage = &timely_handled_signal),
    TIMELY_ROW(FUNCTION, "epoll_wait", by_epoll_wait, -EINTR, .stage = &timely_handled_signal),
    TIMELY_ROW(FUNCTION, "sched_yield", by_sched_yield, 1, .stage = &timely_word, .late_ns = YIELD_NS),
    TIMELY_ROW(FUNCTION, "pthread_spin_lock", by_spin_lock, 0, .stage = &timely_spin_lock),
    TIMELY_ROW(FUNCTION, "pthread_spin_unlock", by_spin_unlock, 0, .stage = &timely_spin_lock),
    TIMELY_ROW(FUNCTION, "wait", by_wait, TIMELY_CHILD_STATUS, .stage = &timely_child),
    TIMELY_ROW(FUNCTION, "wait3", by_wait3, TIMELY_CHILD_STATUS, .stage = &timely_child),
    TIMELY_ROW(FUNCTION, "wait4", by_wait4, TIMELY_CHILD_STATUS, .stage = &timely_child),
    TIMELY_ROW(FUNCTION, "waitid", by_waitid, TIMELY_CHILD_STATUS, .stage = &timely_child),
    TIMELY_ROW(FUNCTION, "waitpid", by_waitpid, TIMELY_CHILD_STATUS, .stage = &timely_child),
};
TIMELY_THEME(reads, rows);
