// Numbers of processes and threads. Programs see the run's numbers, which are the same in each run, and may pass them
// to calls that take the machine's. A number below ATTACH_ID_BASE is the machine's own, of a process outside of the
// run, and is passed on unchanged.
//
// Leaves out, so these show or take the machine's numbers: siginfo_t of signals, shmctl and semctl, ptrace, prctl,
// /proc/self as a link; and system calls in machine code of the program's own.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/world.h"

// --- the program's own numbers --------------------------------------------------------------------------------------

pid_t getpid(void)
{
    return world_timed() ? (pid_t)attach_environment()->id : world_real_pid();
}

pid_t gettid(void)
{
    uint32_t id = world_timed() ? attach_thread_id() : 0;
    return id != 0 ? (pid_t)id : world_real_tid();
}

pid_t getppid(void)
{
    return world_id_of(WORLD_REAL(getppid)());
}

pid_t getpgrp(void)
{
    return world_id_of(WORLD_REAL(getpgrp)());
}

pid_t getpgid(pid_t process)
{
    return world_id_of(WORLD_REAL(getpgid)(world_id_real(process)));
}

pid_t getsid(pid_t process)
{
    return world_id_of(WORLD_REAL(getsid)(world_id_real(process)));
}

pid_t setsid(void)
{
    return world_id_of(WORLD_REAL(setsid)());
}

int setpgid(pid_t process, pid_t group)
{
    return WORLD_REAL(setpgid)(world_id_real(process), world_id_real(group));
}

// --- the target of a call -------------------------------------------------------------------------------------------

// The notification is the last entry of the list, so that no attach call comes between it and the signal.
static void signal_notify(void)
{
    if (world_timed()) {
        attach_may_interrupt();
    }
}

// A process that was killed has ended for the others from now on, also for the caller, who may look at once.
static int signal_sent(int number, int status)
{
    if (number == SIGKILL && world_timed()) {
        int error = errno;
        (void)attach_now_ps();
        errno = error;
    }
    return status;
}

// A signal to the own process is the first thread's, if that does not block it (signal(7)). The kernel would give it to
// the calling thread, as all others block their signals while they wait. So the others are scheduled first; if none of
// them takes it, it is handled here.
static int kill_own(pid_t real, int number)
{
    sigset_t set, before;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, number);
    (void)pthread_sigmask(SIG_BLOCK, &set, &before);
    signal_notify();
    int status = WORLD_REAL(kill)(real, number), error = errno;
    (void)attach_wait(0, 0);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return status;
}

int kill(pid_t process, int number)
{
    pid_t real = world_id_real_signed(process);
    if (number > 0 && number < NSIG && world_timed() && real == world_real_pid() && real != world_real_tid()) {
        return kill_own(real, number);
    }
    signal_notify();
    return signal_sent(number, WORLD_REAL(kill)(real, number));
}

int killpg(pid_t group, int number)
{
    return kill(-group, number);
}

int tgkill(pid_t process, pid_t thread, int number)
{
    pid_t real = world_id_real(process), real_thread = world_id_real(thread);
    signal_notify();
    return signal_sent(number, WORLD_REAL(tgkill)(real, real_thread, number));
}

int pthread_kill(pthread_t thread, int number)
{
    signal_notify();
    return WORLD_REAL(pthread_kill)(thread, number);
}

int pthread_sigqueue(pthread_t thread, int number, const union sigval value)
{
    signal_notify();
    return WORLD_REAL(pthread_sigqueue)(thread, number, value);
}

// The C library sends a signal to a thread that waits.
int pthread_cancel(pthread_t thread)
{
    signal_notify();
    return WORLD_REAL(pthread_cancel)(thread);
}

int sigqueue(pid_t process, int number, const union sigval value)
{
    pid_t real = world_id_real(process);
    signal_notify();
    return WORLD_REAL(sigqueue)(real, number, value);
}

int sched_setscheduler(pid_t thread, int policy, const struct sched_param *parameters)
{
    return WORLD_REAL(sched_setscheduler)(world_id_real(thread), policy, parameters);
}

int sched_getscheduler(pid_t thread)
{
    return WORLD_REAL(sched_getscheduler)(world_id_real(thread));
}

int sched_setparam(pid_t thread, const struct sched_param *parameters)
{
    return WORLD_REAL(sched_setparam)(world_id_real(thread), parameters);
}

int sched_getparam(pid_t thread, struct sched_param *parameters)
{
    return WORLD_REAL(sched_getparam)(world_id_real(thread), parameters);
}

int setpriority(__priority_which_t which, id_t who, int priority)
{
    id_t real = which == PRIO_USER ? who : (id_t)world_id_real((pid_t)who);
    return WORLD_REAL(setpriority)(which, real, priority);
}

int getpriority(__priority_which_t which, id_t who)
{
    return WORLD_REAL(getpriority)(which, which == PRIO_USER ? who : (id_t)world_id_real((pid_t)who));
}

int prlimit(pid_t process, __rlimit_resource_t resource, const struct rlimit *wanted, struct rlimit *was)
{
    return WORLD_REAL(prlimit)(world_id_real(process), resource, wanted, was);
}

int prlimit64(pid_t process, __rlimit_resource_t resource, const struct rlimit64 *wanted, struct rlimit64 *was)
{
    return WORLD_REAL(prlimit64)(world_id_real(process), resource, wanted, was);
}

ssize_t process_vm_readv(pid_t process, const struct iovec *to, unsigned long to_count, const struct iovec *from,
                         unsigned long from_count, unsigned long flags)
{
    return WORLD_REAL(process_vm_readv)(world_id_real(process), to, to_count, from, from_count, flags);
}

ssize_t process_vm_writev(pid_t process, const struct iovec *from, unsigned long from_count, const struct iovec *to,
                          unsigned long to_count, unsigned long flags)
{
    return WORLD_REAL(process_vm_writev)(world_id_real(process), from, from_count, to, to_count, flags);
}

int pidfd_open(pid_t process, unsigned flags)
{
    return WORLD_REAL(pidfd_open)(world_id_real(process), flags);
}

// --- owners of a descriptor's signals, and of a file's lock ---------------------------------------------------------

static int owner_ex_set(int fd, const struct f_owner_ex *owner)
{
    const struct f_owner_ex real = {.type = owner->type, .pid = world_id_real(owner->pid)};
    return WORLD_REAL(fcntl)(fd, F_SETOWN_EX, &real);
}

static int descriptor_control(int fd, int command, void *argument)
{
    if (command == F_SETOWN) {
        return WORLD_REAL(fcntl)(fd, command, world_id_real_signed((pid_t)(intptr_t)argument));
    }
    if (command == F_SETOWN_EX) {
        return owner_ex_set(fd, argument);
    }
    int result = WORLD_REAL(fcntl)(fd, command, argument);
    if (command == F_GETOWN) {
        return result < -1 ? -world_id_of(-result) : world_id_of(result);
    }
    if (result == 0 && command == F_GETOWN_EX) {
        struct f_owner_ex *owner = argument;
        owner->pid = world_id_of(owner->pid);
    } else if (result == 0 && command == F_GETLK) {
        struct flock *lock = argument;
        lock->l_pid = world_id_of(lock->l_pid);
    }
    return result;
}

int fcntl(int fd, int command, ...)
{
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    return descriptor_control(fd, command, argument);
}

int fcntl64(int fd, int command, ...)
{
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    return descriptor_control(fd, command, argument);
}

// --- the peer of a socket -------------------------------------------------------------------------------------------

int getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict bytes)
{
    int status = WORLD_REAL(getsockopt)(fd, level, option, value, bytes);
    if (status == 0 && level == SOL_SOCKET && option == SO_PEERCRED && *bytes == sizeof(struct ucred)) {
        struct ucred peer;
        memcpy(&peer, value, sizeof peer);
        peer.pid = world_id_of(peer.pid);
        memcpy(value, &peer, sizeof peer);
    }
    return status;
}

void world_id_credentials(struct msghdr *message, pid_t (*translate)(pid_t))
{
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS &&
            part->cmsg_len >= CMSG_LEN(sizeof(struct ucred))) {
            struct ucred peer;
            memcpy(&peer, CMSG_DATA(part), sizeof peer);
            peer.pid = translate(peer.pid);
            memcpy(CMSG_DATA(part), &peer, sizeof peer);
        }
    }
}

// --- the kernel's numbers ----------------------------------------------------------------------------------

static long kernel_number(long number)
{
    return kernel_call(number, 0, 0, 0, 0, 0, 0);
}

pid_t world_real_pid(void)
{
    return (pid_t)kernel_number(SYS_getpid);
}

pid_t world_real_tid(void)
{
    return (pid_t)kernel_number(SYS_gettid);
}
