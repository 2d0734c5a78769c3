// A program that does not keep to the rules of attaching. "rude silent N": N connections say nothing for a while, then
// the last one says hello. "rude child N": announces N children that never attach themselves. "rude again N": attaches
// itself N times beside its first connection. Beside its first connection and for ever: "rude asks 0": asks for numbers,
// which takes no simulated time; "rude announces 0": announces threads that never come; "rude ends 0": announces its end
// and computes. "rude lingers N": waits N times for a socket whose last close() waits for its peer. "rude queues N": sends such
// sockets to whoever does not ask for them.
#include <arpa/inet.h>
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

static void token_give(struct attach_slot *slot, enum attach_op op)
{
    slot->op = op;
    if (atomic_exchange(&slot->holder, ATTACH_HOLDER_SIMULATOR) == ATTACH_HOLDER_AWAITED) {
        (void)syscall(SYS_futex, &slot->holder, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    }
}

static void request(struct attach_slot *slot, enum attach_op op)
{
    token_give(slot, op);
    token_await(slot);
}

static void wait_1_us(struct attach_slot *slot)
{
    slot->args.wait = (struct attach_args_wait){.deadline_ps = slot->now_ps + 1000000};
    request(slot, ATTACH_OP_WAIT);
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

// Attaches once more. NULL: refused.
static struct attach_segment *attach_again(const char *node, int *fd_out)
{
    *fd_out = connection_open();
    struct attach_segment *segment = hello_send(*fd_out, node) ? segment_take(*fd_out) : NULL;
    if (segment != NULL) {
        segment->slots[0].tid = (uint32_t)syscall(SYS_gettid);
        token_await(&segment->slots[0]);
    }
    return segment;
}

static int again(int count)
{
    for (int i = 0; i < count; i++) {
        int fd;
        struct attach_segment *segment = attach_again(i % 2 == 0 ? "node1" : "node0", &fd);
        if (segment == NULL) {
            return 1;
        }
        wait_1_us(&segment->slots[0]);
        (void)munmap(segment, sizeof *segment);
    }
    return 0;
}

static int endless(enum attach_op op)
{
    int fd;
    struct attach_segment *segment = attach_again("node0", &fd);
    struct attach_slot *slot = segment != NULL ? &segment->slots[0] : NULL;
    if (slot == NULL) {
        return 1;
    }
    if (op == ATTACH_OP_THREAD_EXIT) {
        token_give(slot, op);
    }
    for (volatile int on = 1; on != 0;) {
        if (op != ATTACH_OP_THREAD_EXIT) {
            slot->args.id = (struct attach_args_id){.number = 1};
            request(slot, op);
        }
    }
    return 0;
}

// The end of a connection whose peer does not read: its last close() waits for an hour until all bytes are read.
static int socket_that_lingers(int ends_out[2])
{
    const struct linger linger = {.l_onoff = 1, .l_linger = 3600};
    static char bytes[1 << 16];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
    ends_out[0] = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
    (void)syscall(SYS_bind, listener, &address, size);
    (void)syscall(SYS_listen, listener, 1);
    (void)syscall(SYS_getsockname, listener, &address, &size);
    (void)syscall(SYS_connect, ends_out[0], &address, size);
    ends_out[1] = (int)syscall(SYS_accept4, listener, NULL, NULL, 0);
    (void)syscall(SYS_setsockopt, ends_out[0], SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    while (syscall(SYS_sendto, ends_out[0], bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) > 0) {
    }
    return ends_out[0];
}

// The receiver has the last copy.
static void lingering_send(int fd, const void *data, size_t bytes)
{
    int ends[2];
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec vector = {(void *)(uintptr_t)data, bytes};
    const struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    int sent = socket_that_lingers(ends);
    memcpy(CMSG_DATA(&control.header), &sent, sizeof sent);
    if (syscall(SYS_sendmsg, fd, &message, MSG_NOSIGNAL) > 0) { // or the connection is closed
        (void)syscall(SYS_close, sent);
    }
}

static int lingers(int count)
{
    int fd;
    struct attach_segment *segment = attach_again("node0", &fd);
    for (int i = 0; i < count && segment != NULL; i++) {
        struct attach_slot *slot = &segment->slots[0];
        lingering_send(fd, "", 1);
        slot->args.wait = (struct attach_args_wait){
            .flags = ATTACH_WAIT_DESCRIPTORS, .watches = 1, .deadline_ps = slot->now_ps + 1000000};
        slot->args.wait.events.list[0] = 1; // POLLIN, which never comes
        request(slot, ATTACH_OP_WAIT);
    }
    return segment == NULL;
}

// Nobody asks for what comes with these messages: not with a wrong hello, nor with one of a connection that is served.
static int queues(int count)
{
    int served, refused = connection_open();
    struct attach_segment *segment = attach_again("node0", &served);
    for (int i = 0; i < count && segment != NULL; i++) {
        lingering_send(refused, "", 1);
        lingering_send(served, "", 1);
    }
    return segment == NULL;
}

static int behave(const char *how, int count)
{
    static const struct {
        const char *name;
        int (*behave)(int count);
        enum attach_op op;
    } ways[] = {{"silent", silent, ATTACH_OPS},        {"child", child, ATTACH_OPS},
                {"again", again, ATTACH_OPS},          {"lingers", lingers, ATTACH_OPS},
                {"queues", queues, ATTACH_OPS},        {"asks", NULL, ATTACH_OP_ID},
                {"announces", NULL, ATTACH_OP_THREAD}, {"ends", NULL, ATTACH_OP_THREAD_EXIT}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (strcmp(how, ways[i].name) == 0) {
            return ways[i].behave != NULL ? ways[i].behave(count) : endless(ways[i].op);
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 3 || backend_current() == NULL) {
        return 3;
    }
    int status = behave(argv[1], atoi(argv[2]));
    // The first connection is gone with a second one; what was attached last makes no calls.
    (void)syscall(SYS_kill, getpid(), status == 0 ? SIGKILL : SIGABRT);
}
