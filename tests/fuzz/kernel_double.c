#include "kernel_double.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "kernel_double_internal.h"

enum { CLOCK_STEP_NS = 1000 }; // each look at the clock takes so long

static struct file files[FILES];
static uint64_t now_ns;

// --- descriptors ----------------------------------------------------------------------------------------------------

struct file *kernel_double_file(int fd)
{
    bool mine = fd >= FD_FIRST && fd < FD_FIRST + FILES && files[fd - FD_FIRST].kind != FREE;
    return mine ? &files[fd - FD_FIRST] : NULL;
}

int kernel_double_fd(const struct file *file)
{
    return FD_FIRST + (int)(file - files);
}

struct file *kernel_double_new(enum kind kind, int flags)
{
    for (unsigned i = 0; i < FILES; i++) {
        struct file *file = &files[i];
        if (file->kind == FREE) {
            memset(file, 0, offsetof(struct file, watched));
            file->kind = kind;
            file->flags = flags & O_NONBLOCK;
            file->end = &file->first;
            file->watched_count = file->turn = 0;
            return file;
        }
    }
    FUZZ_HOLDS(false, "more than %d descriptors", FILES);
    return NULL;
}

void kernel_double_begin(void)
{
    for (unsigned i = 0; i < FILES; i++) {
        FUZZ_HOLDS(files[i].kind == FREE, "descriptor %d of the case before, of kind %d, is open", FD_FIRST + (int)i,
                   (int)files[i].kind);
    }
    kernel_double_names_forget();
    now_ns = 1000000000;
}

struct file *kernel_double_next(const struct file *behind, enum kind kind)
{
    for (size_t i = behind != NULL ? (size_t)(behind - files) + 1 : 0; i < FILES; i++) {
        if (files[i].kind == kind) {
            return &files[i];
        }
    }
    return NULL;
}

// --- readiness ------------------------------------------------------------------------------------------------------

static short events_of(const struct file *file)
{
    switch (file->kind) {
    case SOCKET:
        return kernel_double_socket_events(file);
    case EPOLL:
        for (unsigned i = 0; i < file->watched_count; i++) {
            if ((events_of(file->watched[i].file) & (POLLIN | POLLHUP)) != 0) {
                return POLLIN;
            }
        }
        return 0;
    case COUNTER:
        return (short)(POLLOUT | (file->value != 0 ? POLLIN : 0));
    case TIMER:
        return file->value != 0 && file->value <= now_ns ? POLLIN : 0;
    case FREE:
    case LOCK:
        break;
    }
    return 0;
}

// The next timer, at most until that time. false: a wait without end.
static bool time_passes(uint64_t until_ns)
{
    uint64_t next_ns = until_ns;
    for (unsigned i = 0; i < FILES; i++) {
        bool armed = files[i].kind == TIMER && files[i].value > now_ns;
        next_ns = armed && files[i].value < next_ns ? files[i].value : next_ns;
    }
    now_ns = next_ns != UINT64_MAX ? next_ns : now_ns;
    return next_ns != UINT64_MAX;
}

static uint64_t until(int timeout_ms)
{
    return timeout_ms < 0 ? UINT64_MAX : now_ns + (uint64_t)timeout_ms * 1000000u;
}

static int poll_once(struct pollfd *fds, nfds_t count)
{
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        const struct file *file = kernel_double_file(fds[i].fd);
        short all = file != NULL ? events_of(file) : fds[i].fd >= 0 ? POLLNVAL : 0;
        fds[i].revents = (short)(all & (fds[i].events | POLLHUP | POLLERR | POLLNVAL));
        ready += fds[i].revents != 0;
    }
    return ready;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    uint64_t until_ns = until(timeout_ms);
    int ready = poll_once(fds, count);
    while (ready == 0 && now_ns < until_ns) {
        FUZZ_HOLDS(time_passes(until_ns), "poll waits for ever");
        ready = poll_once(fds, count);
    }
    return ready;
}

// Only that of poll, in no time.
long __wrap_syscall(long number, struct pollfd *fds, nfds_t count, int timeout_ms);
long __wrap_syscall(long number, struct pollfd *fds, nfds_t count, int timeout_ms)
{
    FUZZ_HOLDS(number == SYS_poll && timeout_ms == 0, "system call %ld", number);
    return poll_once(fds, count);
}

// --- epoll ----------------------------------------------------------------------------------------------------------

int __wrap_epoll_create1(int flags);
int __wrap_epoll_create1(int flags)
{
    (void)flags;
    return kernel_double_fd(kernel_double_new(EPOLL, 0));
}

static void watched_remove(struct file *epoll, const struct file *file)
{
    for (unsigned i = 0; i < epoll->watched_count; i++) {
        if (epoll->watched[i].file == file) {
            epoll->watched[i] = epoll->watched[--epoll->watched_count];
            return;
        }
    }
}

int __wrap_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *interest);
int __wrap_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *interest)
{
    struct file *epoll = kernel_double_file(epoll_fd), *file = kernel_double_file(fd);
    if (epoll == NULL || file == NULL) {
        return kernel_double_fail(EBADF);
    }
    if (operation == EPOLL_CTL_DEL) {
        watched_remove(epoll, file);
        return 0;
    }
    FUZZ_HOLDS(operation == EPOLL_CTL_ADD && epoll->watched_count < WATCHED, "operation %d", operation);
    epoll->watched[epoll->watched_count++] = (struct watched){file, *interest};
    return 0;
}

// One event at a time, in turn.
static int epoll_once(struct file *epoll, struct epoll_event *event)
{
    for (unsigned i = 0; i < epoll->watched_count; i++) {
        const struct watched *watched = &epoll->watched[(epoll->turn + i) % epoll->watched_count];
        if ((events_of(watched->file) & (POLLIN | POLLHUP)) != 0) {
            *event = watched->interest;
            epoll->turn = (epoll->turn + i + 1) % epoll->watched_count;
            return 1;
        }
    }
    return 0;
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
    struct file *epoll = kernel_double_file(fd);
    uint64_t until_ns = until(timeout_ms);
    if (epoll == NULL || most < 1) {
        return kernel_double_fail(EBADF);
    }
    int ready = epoll_once(epoll, events);
    while (ready == 0 && now_ns < until_ns) {
        FUZZ_HOLDS(time_passes(until_ns), "epoll_wait waits for ever");
        ready = epoll_once(epoll, events);
    }
    return ready;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    struct file *file = kernel_double_file(fd);
    if (file == NULL) {
        return fd >= FD_FIRST && fd < FD_FIRST + FILES ? kernel_double_fail(EBADF) : __real_close(fd);
    }
    for (struct file *epoll = NULL; (epoll = kernel_double_next(epoll, EPOLL)) != NULL;) {
        watched_remove(epoll, file);
    }
    if (file->kind == SOCKET) {
        kernel_double_socket_close(file);
    }
    file->kind = FREE;
    return 0;
}

// --- counters, timers and locks -------------------------------------------------------------------------------------

int __wrap_eventfd(unsigned value, int flags);
int __wrap_eventfd(unsigned value, int flags)
{
    struct file *file = kernel_double_new(COUNTER, flags);
    file->value = value;
    file->one_by_one = (flags & EFD_SEMAPHORE) != 0;
    return kernel_double_fd(file);
}

int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags)
{
    (void)clock;
    return kernel_double_fd(kernel_double_new(TIMER, flags));
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *before);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *before)
{
    struct file *file = kernel_double_file(fd);
    FUZZ_HOLDS(file != NULL && flags == TFD_TIMER_ABSTIME && before == NULL, "timer %d", fd);
    file->value = (uint64_t)when->it_value.tv_sec * 1000000000u + (uint64_t)when->it_value.tv_nsec;
    return 0;
}

ssize_t __real_read(int fd, void *data, size_t bytes);
ssize_t __wrap_read(int fd, void *data, size_t bytes);
ssize_t __wrap_read(int fd, void *data, size_t bytes)
{
    struct file *file = kernel_double_file(fd);
    if (file == NULL) {
        return __real_read(fd, data, bytes);
    }
    if ((events_of(file) & POLLIN) == 0) {
        return kernel_double_fail(EAGAIN);
    }
    uint64_t value = file->kind == TIMER || file->one_by_one ? 1 : file->value;
    file->value = file->kind == TIMER ? 0 : file->value - value;
    memcpy(data, &value, sizeof value);
    return sizeof value;
}

ssize_t __real_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes)
{
    struct file *file = kernel_double_file(fd);
    uint64_t value;
    if (file == NULL) {
        return __real_write(fd, data, bytes);
    }
    memcpy(&value, data, sizeof value);
    file->value += value;
    return sizeof value;
}

int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    size_t length = strlen(path);
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (length < 5 || strcmp(path + length - 5, ".lock") != 0) {
        return __real_open(path, flags, mode);
    }
    struct file *file = kernel_double_new(LOCK, 0);
    FUZZ_HOLDS(length < sizeof file->name, "%s", path);
    memcpy(file->name, path, length + 1);
    return kernel_double_fd(file);
}

int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
    struct file *lock = kernel_double_file(fd);
    FUZZ_HOLDS(lock != NULL && operation == (LOCK_EX | LOCK_NB), "lock %d", fd);
    for (const struct file *other = NULL; (other = kernel_double_next(other, LOCK)) != NULL;) {
        if (other->value != 0 && strcmp(other->name, lock->name) == 0) {
            return kernel_double_fail(EWOULDBLOCK);
        }
    }
    lock->value = 1;
    return 0;
}

int __real_fcntl(int fd, int command, long argument);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
    struct file *file = kernel_double_file(fd);
    va_list args;
    va_start(args, command);
    long argument = command == F_GETFL ? 0 : va_arg(args, int);
    va_end(args);
    if (file == NULL) {
        return __real_fcntl(fd, command, argument);
    }
    file->flags = command == F_SETFL ? (int)argument & O_NONBLOCK : file->flags;
    return command == F_GETFL ? file->flags : 0;
}

// --- the clock ------------------------------------------------------------------------------------------------------

int __wrap_clock_gettime(clockid_t clock, struct timespec *time_out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time_out)
{
    (void)clock;
    now_ns += CLOCK_STEP_NS;
    *time_out = (struct timespec){.tv_sec = (time_t)(now_ns / 1000000000u), .tv_nsec = (long)(now_ns % 1000000000u)};
    return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    now_ns += (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
    return 0;
}

int __wrap_pause(void);
int __wrap_pause(void)
{
    FUZZ_HOLDS(false, "pause waits for ever");
    return 0;
}
