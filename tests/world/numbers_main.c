// The numbers of a process, its threads and its children: they must be consistent and usable in calls. Prints them.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool good = true;

static void check(bool holds, const char *what)
{
    if (!holds) {
        printf("wrong: %s\n", what);
        good = false;
    }
}

static void *thread(void *unused)
{
    cpu_set_t set;
    printf("thread %d\n", (int)gettid());
    check(gettid() == syscall(SYS_gettid), "the system call knows another thread");
    check(sched_getaffinity(gettid(), sizeof set, &set) == 0, "the kernel does not know the thread");
    check(syscall(SYS_tgkill, getpid(), gettid(), 0) == 0, "no signal reaches the thread");
    return unused;
}

static void child(int socket)
{
    const pid_t numbers[2] = {getpid(), getppid()};
    (void)!write(socket, numbers, sizeof numbers);
    (void)pause();
}

static void children(void)
{
    int ends[2];
    pid_t reported[2] = {0};
    int status = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        return check(false, "no sockets");
    }
    pid_t number = fork();
    if (number == 0) {
        child(ends[1]);
        _exit(9);
    }
    (void)!read(ends[0], reported, sizeof reported);
    printf("child %d\n", (int)number);
    check(reported[0] == number, "the child has another number than its parent knows");
    check(reported[1] == getpid(), "the child has another parent");
    check(kill(number, SIGTERM) == 0, "no signal reaches the child");
    check(waitpid(number, &status, 0) == number && WIFSIGNALED(status), "the child is not waited for");
}

static void peer(void)
{
    int ends[2];
    struct ucred other = {0};
    socklen_t bytes = sizeof other;
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 &&
              getsockopt(ends[0], SOL_SOCKET, SO_PEERCRED, &other, &bytes) == 0 && other.pid == getpid(),
          "a socket's other end has another number");
}

// From memory that is not writable, as the message is const.
static void credentials(void)
{
    int ends[2], on = 1;
    char byte = 0;
    struct iovec piece = {&byte, 1};
    struct cmsghdr *part = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ucred own = {.pid = getpid(), .uid = getuid(), .gid = getgid()};
    *part = (struct cmsghdr){CMSG_LEN(sizeof own), SOL_SOCKET, SCM_CREDENTIALS};
    memcpy(CMSG_DATA(part), &own, sizeof own);
    (void)mprotect(part, 4096, PROT_READ);
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = part};
    message.msg_controllen = CMSG_SPACE(sizeof own);
    check(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0 &&
              setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 && sendmsg(ends[0], &message, 0) == 1,
          "credentials are not sent");
    (void)mprotect(part, 4096, PROT_READ | PROT_WRITE);
    memset(part, 0, 4096);
    memset(&own, 0, sizeof own);
    check(recvmsg(ends[1], &message, 0) == 1, "credentials are not received");
    memcpy(&own, CMSG_DATA(part), sizeof own);
    check(own.pid == getpid(), "a message is from somebody else");
}

static void owner(void)
{
    int ends[2];
    check(pipe(ends) == 0 && fcntl(ends[0], F_SETOWN, getpid()) == 0, "a descriptor's owner cannot be set");
    check(fcntl(ends[0], F_GETOWN) == getpid(), "a descriptor has another owner");
}

int main(void)
{
    char path[64];
    pthread_t handle;
    printf("process %d\n", (int)getpid());
    check(gettid() == getpid() && syscall(SYS_getpid) == getpid(), "the first thread is not the process");
    check(kill(getpid(), 0) == 0 && getpgid(getpid()) == getpgrp(), "the kernel does not know the process");
    snprintf(path, sizeof path, "/proc/%d/stat", (int)getpid());
    check(access(path, R_OK) == 0, "there is no folder of the process");
    check(pthread_create(&handle, NULL, thread, NULL) == 0 && pthread_join(handle, NULL) == 0, "no thread");
    (void)fflush(stdout);
    children();
    peer();
    credentials();
    owner();
    return good ? 0 : 1;
}
