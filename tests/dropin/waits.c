// Programs that wait in many ways, drawn from a seed: waits FIRST COUNT STYLES [HOST]. Two nodes send each other
// messages of 8 B in turn. Before each of its messages a node waits for the other one's in a way, and sometimes pauses.
// Prints the simulated time after each wait. STYLES: a bit for each way of waiting (`ways`).
//
// The times must be those of a run in which every poll is carried out (exec --every-poll).
#include <errno.h>
#include <fcntl.h>
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

#include "waits_ways.h"
// ways beside others use `tight`
#include "waits_beside.h"

static void (*const ways[])(unsigned wanted) = {tight,
                                                both_queues,
                                                drain,
                                                budget_then_sleep,
                                                twice_then_block,
                                                backoff,
                                                early_exit,
                                                every_third,
                                                until_a_time,
                                                engine,
                                                with_a_thread,
                                                with_a_process,
                                                with_a_note,
                                                with_yields,
                                                with_poll,
                                                with_select,
                                                with_epoll,
                                                with_a_pipe,
                                                now_and_then,
                                                by_wall_clock,
                                                in_seconds,
                                                with_a_toggle,
                                                with_a_number,
                                                with_two_counters,
                                                with_a_difference,
                                                among_other_work,
                                                with_a_copy,
                                                with_a_flash,
                                                with_a_lock,
                                                with_a_pulse,
                                                in_microseconds};
// The last three are played alone: another number of ways would be other programs.
enum { WAYS = sizeof ways / sizeof ways[0], DRAWN = WAYS - 3 };

static unsigned way_draw(uint64_t *state, unsigned styles)
{
    unsigned way = DRAWN;
    if (styles >> DRAWN == 0) {
        do {
            way = (unsigned)(draw(state) % DRAWN);
        } while ((styles >> way & 1) == 0);
    }
    while ((styles >> way & 1) == 0) {
        way++;
    }
    return way;
}

// --- a program ------------------------------------------------------------------------------------------------------------

// Sleeps in small steps beside a thread that posts between its polls: on tca0 it does the library's work meanwhile.
static volatile bool resting;

static void *sleeper(void *arg)
{
    const struct timespec step = {.tv_nsec = 170};
    while (resting) {
        (void)nanosleep(&step, NULL);
    }
    return arg;
}

static void play(uint64_t seed, unsigned styles, unsigned me)
{
    uint64_t state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    static unsigned wanted; // also in all programs before
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned way[2], pause_us[2];
        for (unsigned i = 0; i < 2; i++) {
            way[i] = way_draw(&state, styles);
            pause_us[i] = draw(&state) % 4 == 0 ? (unsigned)(draw(&state) % 40) : 0;
        }
        unsigned burst = draw(&state) % 5 == 0 ? 6 : 1, first = round % 2;
        bool beside = draw(&state) % 4 == 0;
        pthread_t thread;
        resting = beside;
        CHECK(!beside || pthread_create(&thread, NULL, sleeper, NULL) == 0);
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
                    for (unsigned polls = (round + i) % 4; polls > 0; polls--) {
                        (void)poll_sends();
                    }
                    if (pause_us[me] != 0) {
                        (void)usleep(pause_us[me]);
                    }
                }
            }
        }
        while (sent < wanted) {
            (void)poll_sends();
        }
        resting = false;
        CHECK(!beside || pthread_join(thread, NULL) == 0);
    }
}

// --- the connection ---------------------------------------------------------------------------------------------------------

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
    int fd = loop_meet(host, PORT);
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
