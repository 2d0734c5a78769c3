// A program that sends management datagrams on /dev/infiniband/umad0 by itself (user_mad.rst of the kernel).
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <rdma/rdma_user_ioctl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAD_BYTES = 256,
    BY_LID = 0x01,
    GET = 0x01,
    SEND = 0x03,
    NODE_INFO = 0x11,
    OWN_LID = 1,
    OTHER_LID = 2,
    NO_LID = 77,
    OPENS = 200
};

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "%s: line %d: not %s (%s)\n", __FILE__, __LINE__, #condition, strerror(errno));      \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

struct message {
    struct ib_user_mad_hdr header;
    unsigned char mad[MAD_BYTES];
};

static int device_open(int flags)
{
    int fd = open("/dev/infiniband/umad0", O_RDWR | flags);
    CHECK(fd >= 0);
    CHECK(ioctl(fd, IB_USER_MAD_ENABLE_PKEY, NULL) == 0);
    return fd;
}

static uint32_t agent_register(int fd)
{
    struct ib_user_mad_reg_req request = {.qpn = 0, .mgmt_class = BY_LID, .mgmt_class_version = 1};
    CHECK(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &request) == 0);
    return request.id;
}

static struct message question(uint32_t agent, uint16_t lid, unsigned char number)
{
    struct message message = {.header = {.id = agent, .timeout_ms = 100, .lid = htons(lid)}};
    message.mad[0] = 1;
    message.mad[1] = BY_LID;
    message.mad[2] = 1;
    message.mad[3] = GET;
    message.mad[15] = number; // the end of the transaction's number
    message.mad[17] = NODE_INFO;
    return message;
}

static struct message answer(int fd)
{
    struct message message;
    struct pollfd one = {.fd = fd, .events = POLLIN};
    CHECK(poll(&one, 1, 1000) == 1 && one.revents == POLLIN);
    CHECK(read(fd, &message, sizeof message) == sizeof message);
    return message;
}

static void asks(int fd, uint32_t agent, unsigned char number)
{
    const struct message sent = question(agent, OTHER_LID, number);
    CHECK(write(fd, &sent, sizeof sent) == sizeof sent);
    struct message got = answer(fd);
    CHECK(got.header.id == agent && got.header.status == 0 && got.header.length == sizeof got);
    CHECK(got.mad[3] == (GET | 0x80) && got.mad[15] == number && got.mad[4] == 0 && got.mad[5] == 0);
}

static bool is_quiet(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 10) == 0;
}

// What write(2) takes, and what comes back.
static void writes(void)
{
    int fd = device_open(0);
    uint32_t agent = agent_register(fd);
    struct message message = question(agent, OTHER_LID, 1);
    CHECK(write(fd, &message, 0) == -1 && errno == EINVAL);
    CHECK(write(fd, &message, sizeof message.header + 35) == -1 && errno == EINVAL);
    CHECK(write(fd, &message, sizeof message.header + 36) == (ssize_t)sizeof message.header + 36);
    CHECK(answer(fd).header.status == 0);
    message.header.id = agent + 1;
    CHECK(write(fd, &message, sizeof message) == -1 && errno == EINVAL);
    CHECK(is_quiet(fd));
    // Nobody answers: it comes back, if the program waits for an answer.
    message = question(agent, NO_LID, 2);
    CHECK(write(fd, &message, sizeof message) == sizeof message);
    struct message back = answer(fd);
    CHECK(back.header.status == ETIMEDOUT && back.mad[3] == GET && back.mad[15] == 2);
    message.header.timeout_ms = 0;
    CHECK(write(fd, &message, sizeof message) == sizeof message);
    message = question(agent, OTHER_LID, 3);
    message.mad[3] = SEND;
    message.header.timeout_ms = 0;
    CHECK(write(fd, &message, sizeof message) == sizeof message);
    CHECK(is_quiet(fd));
    CHECK(close(fd) == 0);
}

static void agents(void)
{
    int fd = device_open(0), other = device_open(0);
    uint32_t first = agent_register(fd), second = agent_register(fd);
    CHECK(first != second && agent_register(other) == first); // each descriptor has its own
    CHECK(ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &first) == 0);
    CHECK(ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &first) == -1 && errno == EINVAL);
    asks(fd, second, 4);
    asks(other, first, 5);
    CHECK(is_quiet(fd) && is_quiet(other));
    CHECK(close(fd) == 0 && close(other) == 0);
    CHECK(ioctl(STDIN_FILENO, IB_USER_MAD_ENABLE_PKEY, NULL) == -1);
}

// Copies of a descriptor are the same device; a descriptor that was closed frees its place.
static void copies(void)
{
    for (unsigned i = 0; i < OPENS; i++) {
        CHECK(close(device_open(0)) == 0);
    }
    int fd = device_open(O_NONBLOCK), copy = dup(fd);
    uint32_t agent = agent_register(fd);
    struct message nothing;
    CHECK(read(fd, &nothing, sizeof nothing) == -1 && errno == EAGAIN);
    CHECK(close(fd) == 0);
    asks(copy, agent, 6);
    pid_t child = fork();
    if (child == 0) {
        asks(copy, agent, 7);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(is_quiet(copy));
    // Whatever else the program closes or takes.
    for (int other = 3; other < 1024; other++) {
        if (other != copy) {
            (void)close(other);
        }
    }
    CHECK(close_range((unsigned)copy + 1, ~0u, 0) == 0);
    asks(copy, agent, 8);
    for (int other = 900; other < 910; other++) {
        CHECK(dup2(STDERR_FILENO, other) == other);
    }
    asks(copy, agent, 9);
    CHECK(close(copy) == 0);
}

static void *thread_asks(void *argument)
{
    unsigned char number = *(unsigned char *)argument;
    for (unsigned i = 0; i < OPENS; i++) {
        int fd = device_open(0);
        asks(fd, agent_register(fd), number);
        CHECK(close(fd) == 0);
    }
    return NULL;
}

static void threads(void)
{
    enum { THREADS = 4 };
    static unsigned char numbers[THREADS] = {10, 11, 12, 13};
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, thread_asks, &numbers[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

// A program without standard input gets the number 0.
static void first_number(void)
{
    int input = dup(STDIN_FILENO);
    CHECK(close(STDIN_FILENO) == 0);
    CHECK(device_open(0) == STDIN_FILENO);
    CHECK(dup2(input, STDIN_FILENO) == STDIN_FILENO);
    CHECK(close(input) == 0);
}

int main(void)
{
    first_number();
    writes();
    agents();
    copies();
    threads();
    return EXIT_SUCCESS;
}
