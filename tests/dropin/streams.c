// Stream rsockets of one program on one node: `streams CLAIM` tests a claim; exit status 0: it holds.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "streams: line %d: %s (errno %s)\n", __LINE__, #condition, strerror(errno));         \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { PORT = 7274 };

static struct sockaddr_in here(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t bytes = sizeof value;
    CHECK(rgetsockopt(fd, level, name, &value, &bytes) == 0);
    return value;
}

static void *connect_it(void *arg)
{
    const struct sockaddr_in to = here(PORT);
    CHECK(rconnect(*(int *)arg, (const struct sockaddr *)&to, sizeof to) == 0);
    return NULL;
}

// Both ends of a stream; the active one and the listener have the option.
static void pair_make(int *active, int *passive, int level, int name, int value)
{
    const struct sockaddr_in own = here(PORT);
    pthread_t thread;
    int listener = rsocket(AF_INET, SOCK_STREAM, 0);
    *active = rsocket(AF_INET, SOCK_STREAM, 0);
    CHECK(listener >= 0 && *active >= 0);
    CHECK(level < 0 || rsetsockopt(listener, level, name, &value, sizeof value) == 0);
    CHECK(level < 0 || rsetsockopt(*active, level, name, &value, sizeof value) == 0);
    CHECK(rbind(listener, (const struct sockaddr *)&own, sizeof own) == 0 && rlisten(listener, 1) == 0);
    CHECK(pthread_create(&thread, NULL, connect_it, active) == 0);
    *passive = raccept(listener, NULL, NULL);
    CHECK(*passive >= 0 && pthread_join(thread, NULL) == 0);
    CHECK(rclose(listener) == 0);
}

static void plain_pair_make(int *active, int *passive)
{
    pair_make(active, passive, -1, 0, 0);
}

static uint64_t now_us(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

// --- options --------------------------------------------------------------------------------------------------------

// socket(7): SO_ERROR gets and clears the error.
static void error_is_told_once(void)
{
    const struct sockaddr_in nobody = here(PORT + 1);
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    CHECK(fd >= 0 && rfcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    CHECK(rconnect(fd, (const struct sockaddr *)&nobody, sizeof nobody) == -1 && errno == EINPROGRESS);
    CHECK(rpoll(&ready, 1, 1000) == 1);
    CHECK(option_of(fd, SOL_SOCKET, SO_ERROR) == ECONNREFUSED);
    CHECK(option_of(fd, SOL_SOCKET, SO_ERROR) == 0);
}

// As with TCP, accepted sockets have the options of their listener.
static void accepted_socket_has_its_listeners_options(void)
{
    int active, passive;
    pair_make(&active, &passive, IPPROTO_TCP, TCP_NODELAY, 1);
    CHECK(option_of(passive, IPPROTO_TCP, TCP_NODELAY) == 1);
    CHECK(option_of(passive, SOL_SOCKET, SO_KEEPALIVE) == 0);
}

// rsocket(7): the sizes of queues are wishes.
static void larger_queue_than_the_devices_is_a_wish(void)
{
    int active, passive;
    char byte = 'a';
    pair_make(&active, &passive, SOL_RDMA, RDMA_RQSIZE, 1 << 14);
    CHECK(rsend(active, &byte, 1, 0) == 1 && rrecv(passive, &byte, 1, 0) == 1);
}

// --- receiving ------------------------------------------------------------------------------------------------------

enum { PART = 100 };

static void *send_in_two_parts(void *arg)
{
    char part[PART];
    memset(part, 'a', sizeof part);
    CHECK(rsend(*(int *)arg, part, PART, 0) == PART);
    CHECK(usleep(1000) == 0);
    memset(part, 'b', sizeof part);
    CHECK(rsend(*(int *)arg, part, PART, 0) == PART);
    return NULL;
}

// recv(2), MSG_WAITALL: until the full request is satisfied.
static void waiting_for_all_waits_for_all(void)
{
    int active, passive;
    pthread_t thread;
    char got[2 * PART];
    plain_pair_make(&active, &passive);
    CHECK(pthread_create(&thread, NULL, send_in_two_parts, &active) == 0);
    CHECK(rrecv(passive, got, sizeof got, MSG_WAITALL) == sizeof got);
    CHECK(got[0] == 'a' && got[PART - 1] == 'a' && got[PART] == 'b' && got[2 * PART - 1] == 'b');
    CHECK(pthread_join(thread, NULL) == 0);
}

// recv(2), MSG_PEEK: the data stay; they are bytes of a stream, however they were sent.
static void peek_sees_the_stream(void)
{
    int active, passive;
    char got[9] = "";
    plain_pair_make(&active, &passive);
    CHECK(rsend(active, "abc", 3, 0) == 3 && rsend(active, "defgh", 5, 0) == 5);
    CHECK(usleep(1000) == 0); // until both have come
    for (unsigned i = 0; i < 2; i++) {
        CHECK(rrecv(passive, got, 8, MSG_PEEK) == 8 && strcmp(got, "abcdefgh") == 0);
    }
    CHECK(rrecv(passive, got, 8, 0) == 8 && strcmp(got, "abcdefgh") == 0);
}

// select(2): blocked until then at least.
static void half_a_millisecond_is_waited_for(void)
{
    int active, passive;
    fd_set in;
    struct timeval half = {.tv_usec = 500};
    plain_pair_make(&active, &passive);
    FD_ZERO(&in);
    FD_SET(passive, &in);
    uint64_t before = now_us();
    CHECK(rselect(passive + 1, &in, NULL, NULL, &half) == 0);
    CHECK(now_us() - before >= 500);
}

// --- mapped memory --------------------------------------------------------------------------------------------------

static void mapping_ends_with_its_last_byte(void)
{
    static char memory[4096];
    int active, passive;
    char byte = 'x';
    pair_make(&active, &passive, SOL_RDMA, RDMA_IOMAPSIZE, 1);
    CHECK(riomap(passive, memory, sizeof memory, PROT_WRITE, 0, 0) == 0);
    CHECK(rsend(passive, &byte, 1, 0) == 1 && rrecv(active, &byte, 1, 0) == 1); // the mapping is known
    CHECK(riowrite(active, "at the end", 10, sizeof memory - 10, 0) == 10);
    CHECK(riowrite(active, &byte, 1, sizeof memory, 0) == (size_t)-1 && errno == EFAULT);
    CHECK(rsend(active, &byte, 1, 0) == 1 && rrecv(passive, &byte, 1, 0) == 1);
    CHECK(memcmp(memory + sizeof memory - 10, "at the end", 10) == 0);
}

static const struct {
    const char *name;
    void (*holds)(void);
} claims[] = {
    {"error_is_told_once", error_is_told_once},
    {"accepted_socket_has_its_listeners_options", accepted_socket_has_its_listeners_options},
    {"larger_queue_than_the_devices_is_a_wish", larger_queue_than_the_devices_is_a_wish},
    {"waiting_for_all_waits_for_all", waiting_for_all_waits_for_all},
    {"peek_sees_the_stream", peek_sees_the_stream},
    {"half_a_millisecond_is_waited_for", half_a_millisecond_is_waited_for},
    {"mapping_ends_with_its_last_byte", mapping_ends_with_its_last_byte},
};

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        if (strcmp(claims[i].name, argv[1]) == 0) {
            claims[i].holds();
            return 0;
        }
    }
    (void)fprintf(stderr, "streams: there is no claim %s\n", argv[1]);
    return 2;
}
