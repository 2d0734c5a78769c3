// System calls by their numbers, through syscall(2): they do what the C library's functions do (calls.def). This file
// has the ones for which the kernel takes other arguments than the function, or returns another result.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/world.h"

#define A(i) ((void *)a[i]) // NOLINT(performance-no-int-to-ptr)

static long failure(int error)
{
    errno = error;
    return -1;
}

// The kernel returns the number of bytes.
static long world_number_getaffinity(const long *a)
{
    size_t bytes = (size_t)a[1];
    bool known = sched_getaffinity((pid_t)a[0], bytes, A(2)) == 0;
    return !known ? -1 : (long)(bytes < sizeof(cpu_set_t) ? bytes : sizeof(cpu_set_t));
}

// The kernel returns 40 to 1 (getpriority(2)).
static long world_number_getpriority(const long *a)
{
    errno = 0;
    int priority = getpriority((__priority_which_t)a[0], (id_t)a[1]);
    return priority == -1 && errno != 0 ? -1 : 20 - priority;
}

static long world_number_process_vm(const long *a,
                                    ssize_t (*function)(pid_t, const struct iovec *, unsigned long,
                                                        const struct iovec *, unsigned long, unsigned long))
{
    return function((pid_t)a[0], A(1), (unsigned long)a[2], A(3), (unsigned long)a[4], (unsigned long)a[5]);
}

// futimens(3) is this call without a path.
static long world_number_utimensat(const long *a)
{
    return a[1] != 0 ? utimensat((int)a[0], A(1), A(2), (int)a[3])
                     : world_result(kernel_call(SYS_utimensat, a[0], a[1], a[2], a[3], 0, 0));
}

// The kernel's identifier is an int.
static long world_number_timer_create(const long *a)
{
    timer_t timer;
    if (timer_create((clockid_t)a[0], A(1), &timer) != 0) {
        return -1;
    }
    *(int *)A(2) = (int)(uintptr_t)timer;
    return 0;
}

// --- signals --------------------------------------------------------------------------------------------------------
// The kernel's signal sets have 8 bytes, and its action has another layout (rt_sigaction(2); asm/signal.h).

enum { KERNEL_SET_BYTES = 8 };
#define KERNEL_SA_RESTORER 0x04000000ul

struct kernel_sigaction {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static sigset_t set_of(uint64_t kernel)
{
    sigset_t set;
    (void)sigemptyset(&set);
    memcpy(&set, &kernel, sizeof kernel);
    return set;
}

static uint64_t kernel_set(const sigset_t *set)
{
    uint64_t kernel;
    memcpy(&kernel, set, sizeof kernel);
    return kernel;
}

static long world_number_sigaction(const long *a)
{
    const struct kernel_sigaction *asked = A(1);
    struct kernel_sigaction *old_out = A(2);
    struct sigaction action = {0}, before;
    if (a[3] != KERNEL_SET_BYTES) {
        return failure(EINVAL);
    }
    if (asked != NULL) {
        action.sa_handler = asked->handler;
        action.sa_flags = (int)(asked->flags & ~KERNEL_SA_RESTORER);
        action.sa_mask = set_of(asked->mask);
    }
    int status = sigaction((int)a[0], asked != NULL ? &action : NULL, &before);
    if (status == 0 && old_out != NULL) {
        *old_out = (struct kernel_sigaction){
            .handler = before.sa_handler, .flags = (unsigned long)before.sa_flags, .mask = kernel_set(&before.sa_mask)};
    }
    return status;
}

static long world_number_sigprocmask(const long *a)
{
    const uint64_t *asked = A(1);
    uint64_t *old_out = A(2);
    sigset_t set, before;
    if (a[3] != KERNEL_SET_BYTES) {
        return failure(EINVAL);
    }
    set = set_of(asked != NULL ? *asked : 0);
    int status = sigprocmask((int)a[0], asked != NULL ? &set : NULL, &before);
    if (status == 0 && old_out != NULL) {
        *old_out = kernel_set(&before);
    }
    return status;
}

// sigqueue(3) makes the siginfo_t itself; here the program passes it.
static long world_number_sigqueue(const long *a)
{
    pid_t real = world_id_real((pid_t)a[0]);
    if (world_timed()) {
        attach_may_interrupt();
    }
    return world_result(kernel_call(SYS_rt_sigqueueinfo, real, a[1], a[2], 0, 0, 0));
}

// --- dispatch -------------------------------------------------------------------------------------------------------

#define NUMBER(name, result)                                                                                           \
    case SYS_##name:                                                                                                   \
        return (long)(result);
#define NO_NUMBER
#define FUNCTION(name, version, policy, number) number
#define CALL(name, function, trap, policy)

long syscall(long number, ...)
{
    long a[WORLD_CALL_WORDS] = {[WORLD_CALLER] = (long)WORLD_SITE}, result;
    va_list list;
    va_start(list, number);
    for (unsigned i = 0; i < 6; i++) {
        a[i] = va_arg(list, long);
    }
    va_end(list);
    switch (number) {
#include "verbs-shim/world/calls.def"
    case SYS_tkill:
        return tgkill(getpid(), (pid_t)a[0], (int)a[1]);
    }
    if (!world_call(number, a, &result)) {
        result = kernel_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    return world_result(result);
}
