// Datagram rsockets of one program on one node: each datagram arrives whole with its sender, or there is an error.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "datagrams: line %d: %s (errno %s)\n", __LINE__, #condition, strerror(errno));       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { PORT = 7174, OTHER_PORT = 7175, BYTES_MAX = 2048 - 8 };

static struct sockaddr_in here(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int bound(uint16_t port)
{
    struct sockaddr_in own = here(port);
    int fd = rsocket(AF_INET, SOCK_DGRAM, 0), type = 0;
    socklen_t bytes = sizeof type;
    CHECK(fd >= 0 && rbind(fd, (struct sockaddr *)&own, sizeof own) == 0);
    CHECK(rgetsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_DGRAM);
    return fd;
}

// Receives a datagram of at most `most` bytes; checks its port.
static void expect(int fd, uint16_t port, char letter, ssize_t bytes, size_t most)
{
    static char buffer[BYTES_MAX + 1];
    struct sockaddr_in from = {0};
    socklen_t from_bytes = sizeof from;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    CHECK(rpoll(&ready, 1, 1000) == 1 && ready.revents == POLLIN);
    ssize_t got = rrecvfrom(fd, buffer, most, 0, (struct sockaddr *)&from, &from_bytes);
    CHECK(got == (bytes < (ssize_t)most ? bytes : (ssize_t)most));
    CHECK(ntohs(from.sin_port) == port && from_bytes == sizeof from);
    for (ssize_t i = 0; i < got; i++) {
        CHECK(buffer[i] == letter);
    }
}

static void send_one(int fd, uint16_t port, char letter, size_t bytes)
{
    static char buffer[BYTES_MAX + 1];
    struct sockaddr_in to = here(port);
    memset(buffer, letter, sizeof buffer);
    CHECK(rsendto(fd, buffer, bytes, 0, (struct sockaddr *)&to, sizeof to) == (ssize_t)bytes);
}

static void bounds(int one, int two)
{
    char byte;
    // The first two go over the kernel socket, the others over the queue pairs.
    const size_t sizes[] = {1, 57, 0, 64, 1000, BYTES_MAX, 56};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        send_one(one, OTHER_PORT, (char)('a' + i), sizes[i]);
        expect(two, PORT, (char)('a' + i), (ssize_t)sizes[i], BYTES_MAX);
        send_one(two, PORT, (char)('A' + i), sizes[i]);
        expect(one, OTHER_PORT, (char)('A' + i), (ssize_t)sizes[i], BYTES_MAX);
    }
    send_one(one, OTHER_PORT, 'x', 100);
    send_one(one, OTHER_PORT, 'y', 10);
    expect(two, PORT, 'x', 100, 7); // the rest is dropped
    expect(two, PORT, 'y', 10, BYTES_MAX);
    CHECK(rrecv(two, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

static void pieces(int one, int two)
{
    struct sockaddr_in to = here(OTHER_PORT), from = {0};
    char left[3] = "abc", right[4] = "defg", back[5], rest[5];
    struct iovec out[2] = {{left, sizeof left}, {right, sizeof right}},
                 in[2] = {{back, sizeof back}, {rest, sizeof rest}};
    struct msghdr message = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = out, .msg_iovlen = 2};
    CHECK(rsendmsg(one, &message, 0) == 7);
    message = (struct msghdr){.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = in, .msg_iovlen = 2};
    CHECK(rrecvmsg(two, &message, 0) == 7 && memcmp(back, "abcde", 5) == 0 && memcmp(rest, "fg", 2) == 0);
    CHECK(ntohs(from.sin_port) == PORT);
}

static void refusals(int one)
{
    static char buffer[BYTES_MAX + 1];
    struct sockaddr_in to = here(OTHER_PORT), nobody = here(PORT + 5), peer;
    socklen_t bytes = sizeof peer;
    CHECK(rsend(one, buffer, 1, 0) == -1 && errno == EDESTADDRREQ);
    CHECK(rsendto(one, buffer, sizeof buffer, 0, (struct sockaddr *)&to, sizeof to) == -1 && errno == EMSGSIZE);
    CHECK(rlisten(one, 1) == -1 && errno == EOPNOTSUPP && raccept(one, NULL, NULL) == -1 && errno == EOPNOTSUPP);
    CHECK(rgetpeername(one, (struct sockaddr *)&peer, &bytes) == -1 && errno == ENOTCONN);
    CHECK(rbind(one, (struct sockaddr *)&to, sizeof to) == -1 && errno == EINVAL);
    int third = rsocket(AF_INET, SOCK_DGRAM, IPPROTO_UDP);
    CHECK(third >= 0 && rbind(third, (struct sockaddr *)&to, sizeof to) == -1 && errno == EADDRINUSE);
    CHECK(rconnect(third, (struct sockaddr *)&nobody, sizeof nobody) == 0);
    CHECK(rgetpeername(third, (struct sockaddr *)&peer, &bytes) == 0 && peer.sin_port == nobody.sin_port);
    CHECK(rsend(third, buffer, 1, 0) == 1 && rrecv(third, buffer, 1, 0) == -1 && errno == ECONNREFUSED);
    CHECK(rclose(third) == 0);
}

// A receiver that does not take them loses only those beyond its buffers.
static void too_many(int one, int two)
{
    char buffer[8] = {0};
    int taken = 0;
    for (int i = 0; i < 200; i++) {
        send_one(one, OTHER_PORT, 'z', sizeof buffer);
    }
    CHECK(usleep(1000) == 0); // until all have arrived
    struct pollfd ready = {.fd = two, .events = POLLIN};
    while (rpoll(&ready, 1, 1) == 1) {
        CHECK(rrecv(two, buffer, sizeof buffer, MSG_DONTWAIT) == sizeof buffer && buffer[0] == 'z');
        taken++;
    }
    CHECK(taken == 64); // 128 KiB
}

// A socket has no limit of those who send it a first datagram, one after the other.
static void many_strangers(int two)
{
    for (uint16_t i = 1; i <= 70; i++) {
        int stranger = bound(OTHER_PORT + i);
        send_one(stranger, OTHER_PORT, 's', 5);
        expect(two, OTHER_PORT + i, 's', 5, BYTES_MAX);
        CHECK(rclose(stranger) == 0);
    }
}

int main(void)
{
    int one = bound(PORT), two = bound(OTHER_PORT);
    bounds(one, two);
    pieces(one, two);
    refusals(one);
    too_many(one, two);
    many_strangers(two);
    CHECK(rclose(one) == 0 && rclose(two) == 0);
    return 0;
}
