// Programs that rely on more than is guaranteed, and their corrected versions, over the first device: `tcasim exec
// --seeds` must find the former and accept the latter. race.c <claim>; it ends with status 0, or prints what was wrong.
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"

enum { BYTES = 4096, ROUNDS = 40 };

// --- data and a flag -------------------------------------------------------------------------------------------------

static void write_part(const struct loop *by, const struct loop *to, uint32_t at, uint32_t bytes)
{
    struct ibv_sge sge = {.addr = (uintptr_t)to->buffer + at, .length = bytes, .lkey = by->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    wr.wr.rdma.remote_addr = to->peer.buffer + to->bytes + at;
    wr.wr.rdma.rkey = to->peer.rkey;
    sge.lkey = to->mr->lkey;
    CHECK(ibv_post_send(by->qp, &wr, &bad) == 0);
}

// The flag is sent over `flag`, the data over `data`. There is no order between two queue pairs.
static void flag_follows_data(struct loop *data, struct loop *flag)
{
    volatile char *arrived = flag->buffer + flag->bytes;
    for (int i = 1; i <= ROUNDS; i++) {
        memset(data->buffer, i, BYTES);
        write_part(data, data, 1, BYTES - 1);
        flag->buffer[0] = (char)i;
        write_part(flag, flag, 0, 1);
        while (arrived[0] != (char)i) {
        }
        CHECK(data->buffer[BYTES + 1] == (char)i && data->buffer[2 * BYTES - 1] == (char)i);
        loop_completion_take(data);
        loop_completion_take(flag);
    }
}

static void flag_by_another_queue_pair(struct loop *loop)
{
    struct loop other = {0};
    loop_open(&other, BYTES);
    loop_connect(&other);
    flag_follows_data(loop, &other);
    loop_close(&other);
}

static void flag_by_the_same_queue_pair(struct loop *loop)
{
    flag_follows_data(loop, loop);
}

// --- events ----------------------------------------------------------------------------------------------------------

static void event_take(struct loop *loop)
{
    struct ibv_cq *cq;
    void *user;
    CHECK(ibv_get_cq_event(loop->channel, &cq, &user) == 0);
    ibv_ack_cq_events(cq, 1);
}

static void an_event_is_a_completion(struct loop *loop)
{
    struct ibv_wc wc;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(ibv_req_notify_cq(loop->cq, 0) == 0);
        loop_post(loop, IBV_WR_RDMA_WRITE);
        if (ibv_poll_cq(loop->cq, 1, &wc) == 0) { // otherwise its event has not come yet
            event_take(loop);
            CHECK(ibv_poll_cq(loop->cq, 1, &wc) == 1);
        }
    }
}

static void an_event_is_a_hint(struct loop *loop)
{
    struct ibv_wc wc;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(ibv_req_notify_cq(loop->cq, 0) == 0);
        loop_post(loop, IBV_WR_RDMA_WRITE);
        while (ibv_poll_cq(loop->cq, 1, &wc) == 0) {
            event_take(loop);
            CHECK(ibv_req_notify_cq(loop->cq, 0) == 0);
        }
    }
}

// --- threads ---------------------------------------------------------------------------------------------------------

static volatile int posted;

static void *receive_post(void *arg)
{
    struct loop *loop = arg;
    struct ibv_sge sge = {.addr = (uintptr_t)loop->buffer + BYTES, .length = BYTES, .lkey = loop->mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(ibv_post_recv(loop->qp, &receive, &bad) == 0);
    posted = 1;
    return NULL;
}

static void message_send(struct loop *loop, int waits)
{
    pthread_t thread;
    for (int i = 0; i < ROUNDS; i++) {
        posted = 0;
        CHECK(pthread_create(&thread, NULL, receive_post, loop) == 0);
        if (waits) {
            CHECK(pthread_join(thread, NULL) == 0);
        } else {
            (void)usleep(5);
        }
        CHECK(posted);
        loop_post(loop, IBV_WR_SEND);
        loop_completion_take(loop);
        loop_completion_take(loop);
        CHECK(waits || pthread_join(thread, NULL) == 0);
    }
}

static void a_thread_is_fast(struct loop *loop)
{
    message_send(loop, 0);
}

static void a_thread_is_waited_for(struct loop *loop)
{
    message_send(loop, 1);
}

static const struct {
    const char *name;
    void (*run)(struct loop *loop);
} claims[] = {
    {"flag_by_another_queue_pair", flag_by_another_queue_pair},
    {"flag_by_the_same_queue_pair", flag_by_the_same_queue_pair},
    {"an_event_is_a_completion", an_event_is_a_completion},
    {"an_event_is_a_hint", an_event_is_a_hint},
    {"a_thread_is_fast", a_thread_is_fast},
    {"a_thread_is_waited_for", a_thread_is_waited_for},
};

int main(int argc, char **argv)
{
    struct loop loop = {0};
    loop_open(&loop, BYTES);
    loop_connect(&loop);
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        if (argc == 2 && strcmp(argv[1], claims[i].name) == 0) {
            claims[i].run(&loop);
            loop_close(&loop);
            return 0;
        }
    }
    (void)fprintf(stderr, "there is no claim %s\n", argc > 1 ? argv[1] : "");
    return 2;
}
