// A program on the system's libibverbs that communicates with itself over its first device: a send with a completion
// channel whose descriptor it polls with poll(2), an RDMA write, and a child that opens devices of its own. It ends
// with status 0, or prints what was wrong.
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"

#define TIMEOUT_MS 10000
#define BYTES       4096

static void *send_later(void *arg)
{
    (void)usleep(20000);
    loop_post(arg, IBV_WR_SEND);
    return NULL;
}

// The other thread sends while this one waits for the descriptor.
static void send_with_event(struct loop *loop)
{
    struct ibv_sge sge = {.addr = (uintptr_t)loop->buffer + BYTES, .length = BYTES, .lkey = loop->mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad;
    struct pollfd waits = {.fd = loop->channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *user;
    struct ibv_wc wc[2];
    pthread_t thread;
    memset(loop->buffer, 0x5a, BYTES);
    CHECK(ibv_post_recv(loop->qp, &receive, &bad) == 0);
    CHECK(ibv_req_notify_cq(loop->cq, 0) == 0);
    CHECK(poll(&waits, 1, 0) == 0);
    CHECK(pthread_create(&thread, NULL, send_later, loop) == 0);
    CHECK(poll(&waits, 1, TIMEOUT_MS) == 1);
    CHECK(ibv_get_cq_event(loop->channel, &cq, &user) == 0 && cq == loop->cq && user == loop);
    CHECK(poll(&waits, 1, 0) == 0); // taken
    ibv_ack_cq_events(cq, 1);
    (void)pthread_join(thread, NULL);
    for (int got = 0; got < 2;) {
        int count = ibv_poll_cq(cq, 2 - got, wc + got);
        CHECK(count >= 0);
        got += count;
    }
    CHECK(wc[0].status == IBV_WC_SUCCESS && wc[1].status == IBV_WC_SUCCESS);
    CHECK(memcmp(loop->buffer, loop->buffer + BYTES, BYTES) == 0);
}

static void write_remote(struct loop *loop)
{
    struct ibv_wc wc;
    int count;
    memset(loop->buffer, 0x33, BYTES);
    loop_post(loop, IBV_WR_RDMA_WRITE);
    do {
        count = ibv_poll_cq(loop->cq, 1, &wc);
    } while (count == 0);
    CHECK(count == 1 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_WRITE);
    CHECK(loop->buffer[2 * BYTES - 1] == 0x33);
}

// The child has no object of its parent, and can open devices of its own.
static void child_try(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct loop loop = {0};
        loop_open(&loop, BYTES);
        _exit(loop.mr != NULL ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    struct loop loop = {0};
    CHECK(ibv_fork_init() == 0);
    loop_open(&loop, BYTES);
    loop_connect(&loop);
    send_with_event(&loop);
    write_remote(&loop);
    // Only one process at a time can use a board.
    if (strcmp(ibv_get_device_name(loop.context->device), "tca0") != 0) {
        child_try();
    }
    loop_close(&loop);
    child_try();
    return 0;
}
