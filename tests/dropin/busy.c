// Two programs. The one without an argument only reads clocks for 50 ms, like a program that calibrates. The other,
// whose argument is the host of the first, writes to it meanwhile, and gets its completion long before the 50 ms have
// passed.
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

enum { BYTES = 64, BUSY_NS = 50000000, SOON_NS = 5000000 };

static long now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

static int meet(const char *host)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *address;
    CHECK(getaddrinfo(host, "18600", &hints, &address) == 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (host != NULL) {
        CHECK(connect(fd, address->ai_addr, address->ai_addrlen) == 0);
    } else {
        int listener = fd, again = 1; // an earlier run may have used the port just before
        CHECK(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &again, sizeof again) == 0);
        CHECK(bind(listener, address->ai_addr, address->ai_addrlen) == 0 && listen(listener, 1) == 0);
        fd = accept(listener, NULL, NULL);
        (void)close(listener);
    }
    freeaddrinfo(address);
    return fd;
}

int main(int argc, char **argv)
{
    struct loop loop = {0};
    char byte = 0;
    loop_open(&loop, BYTES);
    int fd = meet(argc > 1 ? argv[1] : NULL);
    CHECK(write(fd, &loop.peer, sizeof loop.peer) == sizeof loop.peer);
    CHECK(read(fd, &loop.peer, sizeof loop.peer) == sizeof loop.peer);
    loop_connect(&loop);
    CHECK(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1); // both have started
    long start_ns = now_ns();
    if (argc > 1) {
        loop_post(&loop, IBV_WR_RDMA_WRITE);
        loop_completion_take(&loop);
        CHECK(now_ns() - start_ns < SOON_NS);
    } else {
        while (now_ns() - start_ns < BUSY_NS) {
        }
    }
    CHECK(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1); // both have ended
    loop_close(&loop);
    return 0;
}
