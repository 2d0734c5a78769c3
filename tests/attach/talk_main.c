// Two programs that talk over TCP: "talk PORT ROUNDS"; the one on node 0 listens. Prints when each message came.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs-shim/attach/attach.h"

static struct sockaddr_in address_of(uint32_t node, const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    address.sin_addr.s_addr = htonl(attach_environment()->address_base + node);
    return address;
}

static int listen_for_one(const struct sockaddr_in *address)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), peer;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) != 0 || listen(fd, 1) != 0) {
        exit(2);
    }
    attach_may_wake();
    while ((peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK)) < 0) {
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
    }
    return peer;
}

static int connect_to(const struct sockaddr_in *address)
{
    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0) {
            attach_may_wake();
            (void)fcntl(fd, F_SETFL, O_NONBLOCK);
            return fd;
        }
        close(fd);
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, attach_now_ps() + 1000000000);
    }
}

static void receive(int fd, unsigned expected)
{
    unsigned value;
    while (recv(fd, &value, sizeof value, 0) != sizeof value) {
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
    }
    printf("%u at %llu\n", value, (unsigned long long)attach_now_ps());
    if (value != expected) {
        exit(3);
    }
}

static void send_value(int fd, unsigned value)
{
    attach_spend_ps(500000);
    if (send(fd, &value, sizeof value, 0) != sizeof value) {
        exit(4);
    }
    attach_may_wake();
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        return 1;
    }
    const struct sockaddr_in address = address_of(0, argv[1]);
    unsigned first = attach_environment()->node_index == 0, rounds = (unsigned)atoi(argv[2]);
    int fd = first ? listen_for_one(&address) : connect_to(&address);
    for (unsigned i = 0; i < rounds; i++) {
        if (first) {
            send_value(fd, i);
        }
        receive(fd, i);
        if (!first) {
            send_value(fd, i);
        }
    }
    return 0;
}
