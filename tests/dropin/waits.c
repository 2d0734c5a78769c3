// Programs that wait in many ways, drawn from a seed: waits FIRST COUNT STYLES [HOST]. Two nodes send each other
// messages of 8 B in turn. Before each of its messages a node waits for the other one's in a way, and sometimes pauses.
// Prints the simulated time after each wait. STYLES: a bit for each way of waiting (`ways`).
//
// The times must be those of a run in which every poll is carried out (exec --every-poll).
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

enum { BYTES = 4096, MESSAGE_BYTES = 8, RECEIVES = 16, ROUNDS = 12, PORT = 18517 };

static struct loop loop;
static struct ibv_cq *receives;
static unsigned received, sent; // completions

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(0x2545f4914f6cdd1d) >> 33;
}

static long long now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

// --- messages -----------------------------------------------------------------------------------------------------------

static void receive_post(void)
{
    struct ibv_sge sge = {(uintptr_t)loop.buffer + loop.bytes, MESSAGE_BYTES, loop.mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(ibv_post_recv(loop.qp, &wr, &bad) == 0);
}

static void send_post(void)
{
    struct ibv_sge sge = {(uintptr_t)loop.buffer, MESSAGE_BYTES, loop.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE},
                       *bad;
    CHECK(ibv_post_send(loop.qp, &wr, &bad) == 0);
}

static int poll_receives(void)
{
    struct ibv_wc wc;
    int count = ibv_poll_cq(receives, 1, &wc);
    CHECK(count >= 0 && (count == 0 || wc.status == IBV_WC_SUCCESS));
    received += (unsigned)count;
    return count;
}

static int poll_sends(void)
{
    struct ibv_wc wc;
    int count = ibv_poll_cq(loop.cq, 1, &wc);
    CHECK(count >= 0 && (count == 0 || wc.status == IBV_WC_SUCCESS));
    sent += (unsigned)count;
    return count;
}

// --- ways of waiting until `wanted` messages have been received ----------------------------------------------------------

static void tight(unsigned wanted)
{
    while (received < wanted) {
        (void)poll_receives();
    }
}

static void both_queues(unsigned wanted)
{
    while (received < wanted) {
        (void)poll_sends();
        (void)poll_receives();
    }
}

// Takes what there is, and looks at it only then.
static void drain(unsigned wanted)
{
    while (received < wanted) {
        unsigned taken = 0;
        while (taken < 8 && poll_receives() == 1) {
            taken++;
        }
    }
}

static void budget_then_sleep(unsigned wanted)
{
    for (unsigned polls = 0; received < wanted; polls++) {
        if (poll_receives() == 0 && polls % 5 == 4) {
            (void)usleep(3);
        }
    }
}

static void twice_then_block(unsigned wanted)
{
    while (received < wanted) {
        if (poll_receives() != 0 || poll_receives() != 0) {
            continue;
        }
        struct ibv_cq *cq;
        void *context;
        CHECK(ibv_req_notify_cq(receives, 0) == 0);
        if (poll_receives() == 0) {
            CHECK(ibv_get_cq_event(loop.channel, &cq, &context) == 0);
            ibv_ack_cq_events(cq, 1);
        }
    }
}

// More polls after each one in vain, and then a pause.
static void backoff(unsigned wanted)
{
    for (unsigned step = 1; received < wanted; step = step < 16 ? 2 * step : 1) {
        for (unsigned i = 0; i < step && poll_receives() == 0; i++) {
        }
        if (step == 16 && received < wanted) {
            (void)usleep(1);
        }
    }
}

// Gives up after some polls, sends something, and waits for both.
static void early_exit(unsigned wanted)
{
    for (unsigned i = 0; i < 7 && received < wanted; i++) {
        (void)poll_receives();
    }
    uint64_t word = received;
    memcpy(loop.buffer + 64, &word, sizeof word);
    tight(wanted);
}

static void every_third(unsigned wanted)
{
    static unsigned calls;
    while (received < wanted) {
        if (++calls % 3 == 0) {
            (void)poll_sends();
        }
        (void)poll_receives();
    }
}

static void until_a_time(unsigned wanted)
{
    long long end = now_ns() + 1500;
    while (received < wanted && now_ns() < end) {
        (void)poll_receives();
    }
    tight(wanted);
}

// As the progress engines of MPI libraries do: they count their calls, do less urgent things every eighth time, and look
// at a clock there.
static void engine(unsigned wanted)
{
    static unsigned calls, looks;
    static long long last;
    while (received < wanted) {
        (void)poll_receives();
        if ((calls++ & 7) == 0) {
            (void)poll_sends();
            long long now = now_ns();
            if (now - last > 3000) {
                last = now;
                looks++;
                (void)usleep(looks % 2);
            }
        }
    }
}

// Another thread waits for the messages, and says so in memory.
static volatile bool told;

static void *helper(void *arg)
{
    tight(*(const unsigned *)arg);
    told = true;
    return NULL;
}

static void with_a_thread(unsigned wanted)
{
    pthread_t thread;
    told = false;
    CHECK(pthread_create(&thread, NULL, helper, &wanted) == 0);
    while (!told) {
        (void)poll_sends();
    }
    CHECK(pthread_join(thread, NULL) == 0);
}

// Another process says in shared memory when to go on.
static void with_a_process(unsigned wanted)
{
    static volatile unsigned *said;
    if (said == NULL) {
        said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(said != MAP_FAILED);
    }
    *said = 0;
    pid_t child = fork();
    if (child == 0) {
        (void)usleep(wanted % 4);
        *said = wanted;
        _exit(0);
    }
    while (*said != wanted) {
        (void)poll_receives();
    }
    tight(wanted);
    CHECK(waitpid(child, NULL, 0) == child);
}

// What the loop has written, and did not read, counts after it.
static void with_a_note(unsigned wanted)
{
    static volatile unsigned polled_in_vain, noted;
    while (received < wanted) {
        polled_in_vain = 0;
        while (poll_receives() == 0) {
            polled_in_vain = 1;
            noted = received + 1;
        }
        if (polled_in_vain != 0 && noted == received) {
            (void)usleep(1);
        }
    }
}

// --- ways that poll by calls -----------------------------------------------------------------------------------------------

static void with_yields(unsigned wanted)
{
    while (received < wanted) {
        if (poll_receives() == 0) {
            (void)sched_yield();
        }
    }
}

static void arm(void)
{
    CHECK(ibv_req_notify_cq(receives, 0) == 0);
}

static void event_take(void)
{
    struct ibv_cq *cq;
    void *context;
    CHECK(ibv_get_cq_event(loop.channel, &cq, &context) == 0);
    ibv_ack_cq_events(cq, 1);
    arm();
    while (poll_receives() != 0) {
    }
}

// Looks whether the channel has an event, and now and then at the clock.
static void with_poll(unsigned wanted)
{
    struct pollfd channel = {.fd = loop.channel->fd, .events = POLLIN};
    unsigned looks = 0;
    arm();
    while (poll_receives() != 0) {
    }
    for (long long end = now_ns() + 400000; received < wanted;) {
        if (poll(&channel, 1, 0) == 1) {
            event_take();
        } else if (++looks % 16 == 0 && now_ns() > end) {
            tight(wanted);
        }
    }
}

static void with_select(unsigned wanted)
{
    arm();
    while (poll_receives() != 0) {
    }
    while (received < wanted) {
        fd_set set;
        struct timeval at_once = {0};
        FD_ZERO(&set);
        FD_SET(loop.channel->fd, &set);
        if (select(loop.channel->fd + 1, &set, NULL, NULL, &at_once) == 1) {
            event_take();
        }
    }
}

static void with_epoll(unsigned wanted)
{
    static int set = -1;
    if (set < 0) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLET};
        set = epoll_create1(EPOLL_CLOEXEC);
        CHECK(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, loop.channel->fd, &event) == 0);
    }
    arm();
    while (poll_receives() != 0) {
    }
    for (unsigned calls = 0; received < wanted; calls++) {
        struct epoll_event event;
        if (epoll_wait(set, &event, 1, 0) == 1) {
            event_take();
        } else if (calls % 4 == 0) {
            (void)poll_receives();
        }
    }
}

static int told_pipe[2];

static void *pipe_helper(void *arg)
{
    tight(*(const unsigned *)arg);
    CHECK(write(told_pipe[1], "", 1) == 1);
    return NULL;
}

// Another thread waits, and says so by a pipe that does not block.
static void with_a_pipe(unsigned wanted)
{
    pthread_t thread;
    char byte;
    if (told_pipe[1] == 0) {
        CHECK(pipe2(told_pipe, O_NONBLOCK) == 0);
    }
    CHECK(pthread_create(&thread, NULL, pipe_helper, &wanted) == 0);
    while (read(told_pipe[0], &byte, 1) != 1) {
        CHECK(errno == EAGAIN);
    }
    CHECK(pthread_join(thread, NULL) == 0);
}

// --- ways that look at clocks ------------------------------------------------------------------------------------------------

static long long now_us(void)
{
    struct timeval now;
    (void)gettimeofday(&now, NULL);
    return now.tv_sec * 1000000LL + now.tv_usec;
}

// Polls again when some time has passed.
static void now_and_then(unsigned wanted)
{
    while (received < wanted) {
        if (poll_receives() == 0) {
            for (long long end = now_ns() + 7777; now_ns() < end;) {
            }
        }
    }
}

static void by_wall_clock(unsigned wanted)
{
    while (received < wanted) {
        if (poll_receives() == 0) {
            for (long long end = now_us() + 12; now_us() < end;) {
            }
        }
    }
}

static double now_s(void) // as MPI_Wtime
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Gives up polling after a time, computes for some, and polls to the end.
static void in_seconds(unsigned wanted)
{
    double begin = now_s();
    while (received < wanted && now_s() - begin < 2.5e-6) {
        (void)poll_receives();
    }
    for (double end = now_s() + 5e-6; now_s() < end;) {
    }
    tight(wanted);
}

static void (*const ways[])(unsigned wanted) = {
    tight,       both_queues,  drain,  budget_then_sleep, twice_then_block, backoff,    early_exit,
    every_third, until_a_time, engine, with_a_thread,     with_a_process,   with_a_note,  with_yields,
    with_poll,   with_select,  with_epoll, with_a_pipe,   now_and_then,     by_wall_clock, in_seconds};
enum { WAYS = sizeof ways / sizeof ways[0] };

// --- a program ------------------------------------------------------------------------------------------------------------

static void play(uint64_t seed, unsigned styles, unsigned me)
{
    uint64_t state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    static unsigned wanted; // also in all programs before
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned way[2], pause_us[2];
        for (unsigned i = 0; i < 2; i++) {
            do {
                way[i] = (unsigned)(draw(&state) % WAYS);
            } while ((styles >> way[i] & 1) == 0);
            pause_us[i] = draw(&state) % 4 == 0 ? (unsigned)(draw(&state) % 40) : 0;
        }
        unsigned burst = draw(&state) % 5 == 0 ? 3 : 1, first = round % 2;
        wanted += burst;
        for (unsigned turn = 0; turn < 2; turn++) {
            if ((turn ^ first) != me) {
                ways[way[me]](wanted);
                printf("%llu %u way %u at %lld\n", (unsigned long long)seed, round, way[me], now_ns());
                for (unsigned i = 0; i < burst; i++) {
                    receive_post();
                }
            } else {
                for (unsigned i = 0; i < burst; i++) {
                    send_post();
                    if (pause_us[me] != 0) {
                        (void)usleep(pause_us[me]);
                    }
                }
            }
        }
        while (sent < wanted) {
            (void)poll_sends();
        }
    }
}

// --- the connection ---------------------------------------------------------------------------------------------------------

static int meet(const char *host)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    if (host == NULL) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        CHECK(bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0);
        return accept(fd, NULL, NULL);
    }
    struct addrinfo *found;
    CHECK(getaddrinfo(host, NULL, &(struct addrinfo){.ai_family = AF_INET}, &found) == 0);
    address.sin_addr = ((struct sockaddr_in *)found->ai_addr)->sin_addr;
    CHECK(connect(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

// Its receives have a queue of their own.
static void queue_pair_replace(void)
{
    CHECK(ibv_destroy_qp(loop.qp) == 0);
    receives = ibv_create_cq(loop.context, 64, NULL, loop.channel, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = loop.cq,
        .recv_cq = receives,
        .cap = {.max_send_wr = 8, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 64},
        .qp_type = IBV_QPT_RC};
    loop.qp = receives != NULL ? ibv_create_qp(loop.pd, &init) : NULL;
    CHECK(loop.qp != NULL);
    loop.peer.qpn = loop.qp->qp_num;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    CHECK(ibv_modify_qp(loop.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 4);
    const char *host = argc > 4 ? argv[4] : NULL;
    uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    unsigned styles = (unsigned)strtoul(argv[3], NULL, 0);
    loop_open(&loop, BYTES);
    queue_pair_replace();
    struct loop_end own = loop.peer;
    char byte = 0;
    int fd = meet(host);
    CHECK(write(fd, &own, sizeof own) == sizeof own && read(fd, &loop.peer, sizeof loop.peer) == sizeof loop.peer);
    for (unsigned i = 0; i < RECEIVES; i++) {
        receive_post();
    }
    loop_connect(&loop);
    CHECK(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1);
    for (uint64_t seed = first; seed < first + count; seed++) {
        play(seed, styles, host != NULL);
    }
    CHECK(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1);
    return 0;
}
