// "talk listen" and "talk HOST": ten messages over TCP, for which both sides wait with poll(2); each is answered after
// a millisecond. Prints when each came, in microseconds since the first, and whether the connection holds small
// segments back until others are acknowledged.
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT   "18515"
#define ROUNDS 10

static long now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static int listen_for_one(void)
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    if (getaddrinfo(NULL, PORT, &hints, &found) != 0) {
        exit(2);
    }
    int fd = socket(found->ai_family, found->ai_socktype, 0), on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, 1) != 0) {
        exit(3);
    }
    return accept(fd, NULL, NULL);
}

static int connect_to(const char *host)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    if (getaddrinfo(host, PORT, &hints, &found) != 0) {
        exit(4);
    }
    int fd = socket(found->ai_family, found->ai_socktype, 0);
    if (connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
        exit(5);
    }
    return fd;
}

static void pieces_print(int fd)
{
    int at_once = 0;
    socklen_t bytes = sizeof at_once;
    (void)getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, &bytes);
    printf("pieces go %s\n", at_once != 0 ? "straight away" : "when the machine likes");
}

int main(int argc, char **argv)
{
    char host[64] = "", message = 0;
    (void)gethostname(host, sizeof host);
    printf("on %s\n", host);
    int listens = argc < 2 || strcmp(argv[1], "listen") == 0;
    int fd = listens ? listen_for_one() : connect_to(argv[1]);
    pieces_print(fd);
    long start_us = now_us();
    for (int i = 0; i < ROUNDS; i++) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (!listens && write(fd, &message, 1) != 1) {
            return 6;
        }
        if (poll(&ready, 1, -1) != 1 || read(fd, &message, 1) != 1) {
            return 7;
        }
        printf("%d at %ld\n", message++, now_us() - start_us);
        (void)usleep(1000);
        if (listens && write(fd, &message, 1) != 1) {
            return 8;
        }
    }
    return 0;
}
