// A program that does not keep to the rules of attaching. "rude silent N": N connections say nothing for a while, then
// the last one says hello. "rude child N": announces N children that never attach themselves. "rude again N": attaches
// itself N times beside its first connection.
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/attach/protocol.h"

static int connection_open(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, getenv("TCASIM_ATTACH"), sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

static bool hello_send(int fd, const char *node)
{
    struct attach_hello hello = {.magic = ATTACH_MAGIC, .layout = ATTACH_LAYOUT};
    hello.tid = (uint32_t)syscall(SYS_gettid);
    strncpy(hello.node, node, sizeof hello.node - 1);
    return send(fd, &hello, sizeof hello, MSG_NOSIGNAL) == (ssize_t)sizeof hello;
}

// The segment that comes with the welcome. NULL: it was refused.
static struct attach_segment *segment_take(int fd)
{
    struct attach_welcome welcome = {0};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec vector = {&welcome, sizeof welcome};
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    bool good = recvmsg(fd, &message, 0) == (ssize_t)sizeof welcome && welcome.magic == ATTACH_MAGIC;
    struct cmsghdr *part = good ? CMSG_FIRSTHDR(&message) : NULL;
    int memory;
    if (part == NULL) {
        return NULL;
    }
    memcpy(&memory, CMSG_DATA(part), sizeof memory);
    void *segment = mmap(NULL, sizeof(struct attach_segment), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    close(memory);
    return segment != MAP_FAILED ? segment : NULL;
}

// Waits for the run token, which the simulator gives with the reply.
static void token_await(struct attach_slot *slot)
{
    while (atomic_load(&slot->holder) == ATTACH_HOLDER_SIMULATOR) {
        (void)syscall(SYS_sched_yield);
    }
}

static void wait_1_us(struct attach_slot *slot)
{
    slot->op = ATTACH_OP_WAIT;
    slot->args.wait = (struct attach_args_wait){.deadline_ps = slot->now_ps + 1000000};
    if (atomic_exchange(&slot->holder, ATTACH_HOLDER_SIMULATOR) == ATTACH_HOLDER_AWAITED) {
        (void)syscall(SYS_futex, &slot->holder, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    }
    token_await(slot);
}

static void calls_make(void)
{
    for (unsigned i = 0; i < 2000; i++) {
        (void)attach_wait(0, attach_now_ps() + 1000000);
    }
}

static int silent(int count)
{
    int last = -1;
    for (int i = 0; i < count; i++) {
        last = connection_open();
    }
    calls_make(); // the simulator sees that nothing comes
    printf("%d\n", last >= 0 && hello_send(last, "node1") && segment_take(last) != NULL);
    (void)fflush(stdout);
    return 0;
}

static int child(int count)
{
    unsigned unknown = 0;
    for (int i = 0; i < count; i++) {
        pid_t pid = (pid_t)syscall(SYS_fork);
        if (pid == 0) {
            (void)syscall(SYS_pause);
            _exit(0);
        }
        unknown += attach_fork_parent(pid) == pid; // it has no number in the run
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    printf("%u\n", unknown);
    (void)fflush(stdout);
    return 0;
}

static int again(int count)
{
    for (int i = 0; i < count; i++) {
        int fd = connection_open();
        struct attach_segment *segment = hello_send(fd, i % 2 == 0 ? "node1" : "node0") ? segment_take(fd) : NULL;
        if (segment == NULL) {
            return 1;
        }
        segment->slots[0].tid = (uint32_t)syscall(SYS_gettid);
        token_await(&segment->slots[0]);
        wait_1_us(&segment->slots[0]);
        (void)munmap(segment, sizeof *segment);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3 || backend_current() == NULL) {
        return 3;
    }
    int count = atoi(argv[2]), status = strcmp(argv[1], "silent") == 0  ? silent(count)
                                        : strcmp(argv[1], "child") == 0 ? child(count)
                                                                        : again(count);
    // The first connection is gone with a second one; what was attached last makes no calls.
    (void)syscall(SYS_kill, getpid(), status == 0 ? SIGKILL : SIGABRT);
}
