// Numbers of processes and threads: they are the run's, and reach whom they mean, at once.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "timely.h"

enum { FIRST_ID = (1 << 22) + 1, TRUE = 1 }; // above every number of the machine

// --- the program's own ----------------------------------------------------------------------------------------------

static long by_getpid(struct timely_scene *scene)
{
    (void)scene;
    return getpid();
}

static long by_gettid(struct timely_scene *scene)
{
    (void)scene;
    return gettid();
}

static int has_parent(void *scene)
{
    return getppid() == ((struct timely_scene *)scene)->process;
}

static long by_getppid(struct timely_scene *scene)
{
    return timely_in_child(has_parent, scene);
}

static int leads_group(void *unused)
{
    (void)unused;
    return setpgid(0, 0) == 0 && getpgrp() == getpid() && getpgid(getpid()) == getpid();
}

static long by_getpgid(struct timely_scene *scene)
{
    return timely_in_child(leads_group, scene);
}

static int leads_session(void *unused)
{
    (void)unused;
    return setsid() == getpid() && getsid(getpid()) == getpid() && getsid(0) == getpid();
}

static long by_getsid(struct timely_scene *scene)
{
    return timely_in_child(leads_session, scene);
}

static int has_terminal(void *unused)
{
    (void)unused;
    int controller = posix_openpt(O_RDWR | O_NOCTTY);
    if (setsid() < 0 || grantpt(controller) != 0 || unlockpt(controller) != 0) {
        return 0;
    }
    int terminal = open(ptsname(controller), O_RDWR); // it becomes the session's
    return tcsetpgrp(terminal, getpid()) == 0 && tcgetpgrp(terminal) == getpid();
}

static long by_tcgetpgrp(struct timely_scene *scene)
{
    return timely_in_child(has_terminal, scene);
}

// --- signals to somebody --------------------------------------------------------------------------------------------

static sigset_t user_signal(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    return set;
}

// The thread waits for the signal that another one sends.
static long wait_for_signal(struct timely_scene *scene, void (*action)(void *))
{
    const sigset_t set = user_signal();
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    timely_later(scene, TIMELY_WOKEN_US, action, scene);
    int number = sigwaitinfo(&set, NULL);
    timely_later_end();
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    return number;
}

static void kill_it(void *scene)
{
    (void)kill(((struct timely_scene *)scene)->process, SIGUSR1);
}

static void kill_thread(void *scene)
{
    (void)tgkill(((struct timely_scene *)scene)->process, ((struct timely_scene *)scene)->thread, SIGUSR1);
}

static void queue_signal(void *scene)
{
    (void)sigqueue(((struct timely_scene *)scene)->process, SIGUSR1, (union sigval){.sival_int = 1});
}

static long by_kill(struct timely_scene *scene)
{
    return wait_for_signal(scene, kill_it);
}

static long by_tgkill(struct timely_scene *scene)
{
    return wait_for_signal(scene, kill_thread);
}

static long by_sigqueue(struct timely_scene *scene)
{
    return wait_for_signal(scene, queue_signal);
}

// The group is that of a child, in which nobody else is.
static void kill_group(void *unused)
{
    (void)unused;
    (void)killpg(getpgrp(), SIGUSR1);
}

static int wait_in_group(void *scene)
{
    return setpgid(0, 0) == 0 ? (int)wait_for_signal(scene, kill_group) : 0;
}

static long by_killpg(struct timely_scene *scene)
{
    return timely_in_child(wait_in_group, scene);
}

// --- groups of processes --------------------------------------------------------------------------------------------

enum { MEMBERS = 2 };

// Children in a group of their own, whose number is the first one's. They sleep.
static void group_start(pid_t members[MEMBERS])
{
    for (unsigned i = 0; i < MEMBERS; i++) {
        members[i] = fork();
        if (members[i] == 0) {
            (void)sleep(100);
            _exit(0);
        }
        (void)setpgid(members[i], members[0]);
    }
}

// Waits for as many children. The number of those that SIGTERM has ended. whom: as of waitpid(2); 0: each by its number.
static long ended_of(const pid_t members[MEMBERS], pid_t whom)
{
    long ended = 0;
    for (unsigned i = 0; i < MEMBERS; i++) {
        int status = 0;
        pid_t child = waitpid(whom != 0 ? whom : members[i], &status, 0);
        ended += (child == members[0] || child == members[1]) && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
    }
    return ended;
}

static long by_setpgid(struct timely_scene *scene)
{
    pid_t members[MEMBERS];
    (void)scene;
    group_start(members);
    bool same = getpgid(members[0]) == members[0] && getpgid(members[1]) == members[0];
    (void)kill(members[0], SIGTERM);
    (void)kill(members[1], SIGTERM);
    return same && ended_of(members, 0) == MEMBERS;
}

static long by_killpg_of_members(struct timely_scene *scene)
{
    pid_t members[MEMBERS];
    (void)scene;
    group_start(members);
    (void)usleep(TIMELY_WOKEN_US);
    (void)killpg(members[0], SIGTERM);
    return ended_of(members, 0);
}

static long by_kill_of_group(struct timely_scene *scene)
{
    pid_t members[MEMBERS];
    (void)scene;
    group_start(members);
    (void)usleep(TIMELY_WOKEN_US);
    (void)kill(-members[0], SIGTERM);
    return ended_of(members, 0);
}

static long by_waitpid_of_group(struct timely_scene *scene)
{
    pid_t members[MEMBERS];
    (void)scene;
    group_start(members);
    (void)usleep(TIMELY_WOKEN_US);
    (void)killpg(members[0], SIGTERM);
    return ended_of(members, -members[0]);
}

static long by_waitid_of_group(struct timely_scene *scene)
{
    pid_t members[MEMBERS];
    siginfo_t first = {0}, second = {0};
    (void)scene;
    group_start(members);
    (void)usleep(TIMELY_WOKEN_US);
    (void)killpg(members[0], SIGTERM);
    (void)waitid(P_PGID, (id_t)members[0], &first, WEXITED);
    (void)waitid(P_PGID, (id_t)members[0], &second, WEXITED);
    return first.si_pid + second.si_pid == members[0] + members[1];
}

// --- signals to sleeping processes ----------------------------------------------------------------------------------

static void on_signal(int number)
{
    (void)number;
}

static void nothing(void *unused)
{
    (void)unused;
}

// A signal of another process to a process of two threads: the first one handles it.
static int pause_beside_thread(void *scene)
{
    const struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(SIGUSR1, &action, NULL);
    timely_later(scene, 10 * TIMELY_WOKEN_US, nothing, NULL);
    return pause() == -1 && errno == EINTR;
}

static long by_kill_of_threads(struct timely_scene *scene)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(pause_beside_thread(scene));
    }
    (void)usleep(TIMELY_WOKEN_US);
    (void)kill(child, SIGUSR1);
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// A signal without a handler ends a process that sleeps.
static int sleep_for_long(void *unused)
{
    (void)unused;
    (void)sleep(100);
    return 0;
}

static long by_kill_of_sleeper(struct timely_scene *scene)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(sleep_for_long(scene));
    }
    (void)usleep(TIMELY_WOKEN_US);
    (void)kill(child, SIGTERM);
    (void)waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

// sigqueue(3) by the number of its system call. The child ends by the signal's handler.
static int pause_alone(void *unused)
{
    const struct sigaction action = {.sa_handler = on_signal};
    (void)unused;
    (void)sigaction(SIGUSR1, &action, NULL);
    return pause() == -1 && errno == EINTR;
}

static long by_sigqueue_number(struct timely_scene *scene)
{
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(pause_alone(scene));
    }
    (void)usleep(TIMELY_WOKEN_US);
    (void)syscall(SYS_rt_sigqueueinfo, child, SIGUSR1, &info);
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static long by_pidfd_open(struct timely_scene *scene)
{
    (void)scene;
    pid_t child = fork();
    if (child == 0) {
        (void)usleep(TIMELY_WOKEN_US);
        _exit(0);
    }
    struct pollfd end = {.fd = pidfd_open(child, 0), .events = POLLIN};
    int ready = poll(&end, 1, -1);
    (void)waitpid(child, NULL, 0);
    (void)close(end.fd);
    return ready;
}

// --- properties of a process ----------------------------------------------------------------------------------------

#define LIMITS_ROW(function, call, limits)                                                                             \
    static long function(struct timely_scene *scene)                                                                   \
    {                                                                                                                  \
        struct limits own, of_number;                                                                                  \
        bool known =                                                                                                   \
            call(0, RLIMIT_NOFILE, NULL, &own) == 0 && call(scene->process, RLIMIT_NOFILE, NULL, &of_number) == 0;     \
        return known && own.rlim_cur == of_number.rlim_cur && own.rlim_max == of_number.rlim_max;                      \
    }

LIMITS_ROW(by_prlimit, prlimit, rlimit)
LIMITS_ROW(by_prlimit64, prlimit64, rlimit64)

static long by_process_vm_readv(struct timely_scene *scene)
{
    char from[4] = "text", to[4] = "";
    const struct iovec there = {from, sizeof from}, here = {to, sizeof to};
    return timely_result(process_vm_readv(scene->process, &here, 1, &there, 1, 0));
}

static long by_process_vm_writev(struct timely_scene *scene)
{
    char from[4] = "text", to[4] = "";
    const struct iovec here = {from, sizeof from}, there = {to, sizeof to};
    return timely_result(process_vm_writev(scene->process, &here, 1, &there, 1, 0));
}

static long by_sched_getscheduler(struct timely_scene *scene)
{
    struct sched_param parameters = {0};
    int policy = sched_getscheduler(scene->process);
    return policy == sched_getscheduler(0) && sched_setscheduler(scene->process, policy, &parameters) == 0;
}

static long by_sched_getparam(struct timely_scene *scene)
{
    struct sched_param parameters = {.sched_priority = 1};
    return sched_getparam(scene->thread, &parameters) == 0 && parameters.sched_priority == 0 &&
           sched_setparam(scene->thread, &parameters) == 0;
}

static int becomes_nicer(void *unused)
{
    (void)unused;
    int before = getpriority(PRIO_PROCESS, (id_t)getpid());
    return setpriority(PRIO_PROCESS, (id_t)getpid(), 19) == 0 && before <= 19 &&
           getpriority(PRIO_PROCESS, (id_t)getpid()) == 19;
}

static long by_getpriority(struct timely_scene *scene)
{
    return timely_in_child(becomes_nicer, scene);
}

// --- numbers that descriptors have ----------------------------------------------------------------------------------

#define OWNER_ROW(function, call)                                                                                      \
    static long function(struct timely_scene *scene)                                                                   \
    {                                                                                                                  \
        int ends[2];                                                                                                   \
        (void)!pipe(ends);                                                                                             \
        bool own = call(ends[0], F_SETOWN, scene->process) == 0 && call(ends[0], F_GETOWN) == scene->process;          \
        (void)close(ends[0]);                                                                                          \
        (void)close(ends[1]);                                                                                          \
        return own;                                                                                                    \
    }

OWNER_ROW(by_fcntl, fcntl)
OWNER_ROW(by_fcntl64, fcntl64)

static struct flock whole(short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

// fcntl(2): F_GETLK tells who holds the lock. Here a child does, until it is told to end.
static long by_fcntl_of_lock(struct timely_scene *scene)
{
    char name[] = "/dev/shm/timely-ids-XXXXXX", byte;
    int fd = mkstemp(name), ends[2];
    struct flock held = whole(F_WRLCK), asked = whole(F_WRLCK);
    (void)scene;
    (void)!pipe(ends);
    pid_t child = fork();
    if (child == 0) {
        (void)fcntl(fd, F_SETLK, &held);
        _exit((int)read(ends[0], &byte, 1));
    }
    (void)usleep(TIMELY_WOKEN_US);
    int status = fcntl(fd, F_GETLK, &asked);
    (void)!write(ends[1], "x", 1);
    (void)waitpid(child, NULL, 0);
    (void)unlink(name);
    (void)close(fd);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return status == 0 && asked.l_type == F_WRLCK && asked.l_pid == child;
}

static long by_getsockopt(struct timely_scene *scene)
{
    int ends[2];
    struct ucred peer = {0};
    socklen_t bytes = sizeof peer;
    (void)socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    int status = getsockopt(ends[0], SOL_SOCKET, SO_PEERCRED, &peer, &bytes);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return status == 0 && peer.pid == scene->process;
}

#define CHILD .at_us = TIMELY_END_US // its end takes so long
#define WAKES .at_us = TIMELY_WOKEN_US
// Who has sent a signal may see the end before it is told of it.
#define KILLS WAKES, .late_ns = TIMELY_END_US * 1000
enum { READ_NS = 100 }; // the C library reads a clock for the letters of a temporary name
#define ENDS .late_ns = TIMELY_END_US * 1000

static const struct timely_row rows[] = {
    TIMELY_ROW(FUNCTION, "getpid", by_getpid, FIRST_ID),
    TIMELY_ROW(FUNCTION, "gettid", by_gettid, FIRST_ID),
    TIMELY_ROW(FUNCTION, "getppid", by_getppid, TRUE, CHILD),
    TIMELY_ROW(FUNCTION, "getpgid", by_getpgid, TRUE, CHILD),
    TIMELY_ROW(FUNCTION, "getpgrp", by_getpgid, TRUE, CHILD),
    TIMELY_ROW(FUNCTION, "setpgid", by_getpgid, TRUE, CHILD),
    TIMELY_ROW(FUNCTION, "getsid", by_getsid, TRUE, CHILD),
    TIMELY_ROW(FUNCTION, "setsid", by_getsid, TRUE, CHILD),
    TIMELY_ROW(FUNCTION, "tcgetpgrp", by_tcgetpgrp, TRUE, CHILD),
    TIMELY_ROW(FUNCTION, "tcsetpgrp", by_tcgetpgrp, TRUE, CHILD),
    TIMELY_ROW(FUNCTION, "kill", by_kill, SIGUSR1, WAKES),
    TIMELY_ROW(FUNCTION, "kill", by_kill_of_threads, TRUE, KILLS),
    TIMELY_ROW(FUNCTION, "kill", by_kill_of_sleeper, SIGTERM, KILLS),
    TIMELY_ROW(FUNCTION, "killpg", by_killpg, SIGUSR1, KILLS),
    TIMELY_ROW(FUNCTION, "setpgid", by_setpgid, TRUE, ENDS),
    TIMELY_ROW(FUNCTION, "killpg", by_killpg_of_members, MEMBERS, KILLS),
    TIMELY_ROW(FUNCTION, "kill", by_kill_of_group, MEMBERS, KILLS),
    TIMELY_ROW(FUNCTION, "waitpid", by_waitpid_of_group, MEMBERS, KILLS),
    TIMELY_ROW(FUNCTION, "waitid", by_waitid_of_group, TRUE, KILLS),
    TIMELY_ROW(FUNCTION, "syscall", by_sigqueue_number, TRUE, KILLS),
    TIMELY_ROW(FUNCTION, "tgkill", by_tgkill, SIGUSR1, WAKES),
    TIMELY_ROW(FUNCTION, "sigqueue", by_sigqueue, SIGUSR1, WAKES),
    TIMELY_ROW(FUNCTION, "pidfd_open", by_pidfd_open, 1, .at_us = TIMELY_WOKEN_US + TIMELY_END_US),
    TIMELY_ROW(FUNCTION, "prlimit", by_prlimit, TRUE),
    TIMELY_ROW(FUNCTION, "prlimit64", by_prlimit64, TRUE),
    TIMELY_ROW(FUNCTION, "process_vm_readv", by_process_vm_readv, 4),
    TIMELY_ROW(FUNCTION, "process_vm_writev", by_process_vm_writev, 4),
    TIMELY_ROW(FUNCTION, "sched_getscheduler", by_sched_getscheduler, TRUE),
    TIMELY_ROW(FUNCTION, "sched_setscheduler", by_sched_getscheduler, TRUE),
    TIMELY_ROW(FUNCTION, "sched_getparam", by_sched_getparam, TRUE),
    TIMELY_ROW(FUNCTION, "sched_setparam", by_sched_getparam, TRUE),
    TIMELY_ROW(FUNCTION, "getpriority", by_getpriority, TRUE, CHILD),
    TIMELY_ROW(FUNCTION, "setpriority", by_getpriority, TRUE, CHILD),
    TIMELY_ROW(FUNCTION, "fcntl", by_fcntl, TRUE),
    TIMELY_ROW(FUNCTION, "fcntl64", by_fcntl64, TRUE),
    TIMELY_ROW(FUNCTION, "fcntl", by_fcntl_of_lock, TRUE, .at_us = TIMELY_WOKEN_US + TIMELY_END_US, .late_ns = READ_NS),
    TIMELY_ROW(FUNCTION, "getsockopt", by_getsockopt, TRUE),
};
TIMELY_THEME(ids, rows);
