// Classic mistakes of verbs programs, one in each run: mistake DEVICE NAME wrong|right [SERVER]. Without SERVER: a
// server.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"

enum { MESSAGE = 64 };

static void wrong_rkey(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    if (!pair->server) {
        pair->peer.rkey += wrong ? 0x123 : 0;
        pair_need(pair_send(pair, 1, IBV_WR_RDMA_WRITE, MESSAGE, true) == 0, "send");
        (void)pair_wait(pair->cq);
    }
}

static void no_receive(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    if (pair->server) {
        pair_need(wrong || pair_receive(pair, 7, MESSAGE) == 0, "receive");
        pair_meet(pair);
        return;
    }
    pair_meet(pair);
    pair_need(pair_send(pair, 1, IBV_WR_SEND, MESSAGE, true) == 0, "send");
    (void)pair_wait(pair->cq);
}

static void wrong_qp(struct pair *pair, bool wrong)
{
    pair->peer.qpn += wrong && !pair->server ? 77 : 0;
    wrong_rkey(pair, false);
}

static void rtr_before_init(struct pair *pair, bool wrong)
{
    if (wrong) {
        (void)pair_to_rtr(pair);
        return;
    }
    pair_connect(pair);
}

static void small_buffer(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    if (pair->server) {
        pair_need(pair_receive(pair, 7, wrong ? MESSAGE / 2 : MESSAGE) == 0, "receive");
        pair_meet(pair);
        (void)pair_wait(pair->cq);
        return;
    }
    pair_meet(pair);
    pair_need(pair_send(pair, 1, IBV_WR_SEND, MESSAGE, true) == 0, "send");
    (void)pair_wait(pair->cq);
}

static void early_dereg(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    if (pair->server) {
        if (wrong) {
            pair_need(ibv_dereg_mr(pair->mr) == 0, "dereg");
            pair->mr = NULL;
        }
        pair_meet(pair);
        return;
    }
    pair_meet(pair);
    pair_need(pair_send(pair, 1, IBV_WR_RDMA_WRITE, MESSAGE, true) == 0, "send");
    (void)pair_wait(pair->cq);
}

static void wrong_cq(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    if (pair->server) {
        pair_need(pair_receive(pair, 7, MESSAGE) == 0, "receive");
        pair_meet(pair);
        (void)pair_wait(wrong ? pair->cq : pair->other_cq);
        return;
    }
    pair_meet(pair);
    pair_need(pair_send(pair, 1, IBV_WR_SEND, MESSAGE, true) == 0, "send");
    (void)pair_wait(pair->cq);
}

static void unsignalled(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    for (uint64_t i = 0; i < 2 * PAIR_DEPTH && !pair->server; i++) {
        bool signaled = !wrong && i % (PAIR_DEPTH / 2) == PAIR_DEPTH / 2 - 1;
        if (pair_send(pair, i, IBV_WR_RDMA_WRITE, MESSAGE, signaled) != 0) {
            return;
        }
        if (signaled) {
            (void)pair_wait(pair->cq);
        }
    }
}

// Two calls are refused, for different reasons.
static void two_refusals(struct pair *pair, bool wrong)
{
    if (wrong) {
        (void)pair_to_rtr(pair);
        pair_need(ibv_reg_mr(pair->pd, pair->buffer, 0, 0) == NULL, "a region without bytes");
    }
    pair_connect(pair);
}

// The program waits for the other one; nothing is wrong with its queues.
static void stuck_elsewhere(struct pair *pair, bool wrong)
{
    char byte;
    (void)wrong;
    pair_connect(pair);
    for (uint64_t i = 0; i < 4 && !pair->server; i++) {
        pair_need(pair_send(pair, i, IBV_WR_RDMA_WRITE, MESSAGE, i == 3) == 0, "send");
    }
    if (!pair->server) {
        (void)pair_wait(pair->cq);
    }
    (void)!read(pair->socket, &byte, 1);
}

// The buffer of a read is accessed before the read is complete.
static void early_read(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    if (!pair->server) {
        pair_need(pair_send(pair, 1, IBV_WR_RDMA_READ, MESSAGE, true) == 0, "send");
        volatile char first = wrong ? pair->buffer[0] : 0;
        (void)pair_wait(pair->cq);
        first += pair->buffer[0];
        (void)first;
    }
}

// The buffer of a send is written again before the send is complete.
static void early_write(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    if (!pair->server) {
        pair_need(pair_send(pair, 1, IBV_WR_RDMA_WRITE, MESSAGE, true) == 0, "send");
        if (wrong) {
            pair->buffer[0]++;
        }
        (void)pair_wait(pair->cq);
        pair->buffer[0]++;
    }
}

// Both sides have a buffer that is longer than what is compared at its beginning and at its end.
static void early_write_at_the_end(struct pair *pair, bool wrong)
{
    enum { LONG = 200000 };
    char *own = pair->buffer, *memory = calloc(1, LONG);
    struct ibv_mr *mr = ibv_reg_mr(pair->pd, memory, LONG, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    pair_need(mr != NULL, "ibv_reg_mr");
    struct pair_address here = {.address = (uintptr_t)memory, .rkey = mr->rkey}, there;
    pair_need(write(pair->socket, &here, sizeof here) == sizeof here &&
                  read(pair->socket, &there, sizeof there) == sizeof there,
              "exchange");
    pair->peer.address = there.address;
    pair->peer.rkey = there.rkey;
    pair_connect(pair);
    if (!pair->server) {
        struct ibv_mr *of_own = pair->mr;
        pair->buffer = memory;
        pair->mr = mr;
        pair_need(pair_send(pair, 1, IBV_WR_RDMA_WRITE, LONG, true) == 0, "send");
        memory[LONG - 1] += wrong ? 1 : 0;
        (void)pair_wait(pair->cq);
        memory[LONG - 1]++;
        pair->buffer = own;
        pair->mr = of_own;
    }
    pair_meet(pair);
    pair_need(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
    free(memory);
}

static void leaked_qp(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    pair_meet(pair);
    if (wrong && !pair->server) {
        exit(0);
    }
}

// The memory of a region is freed before the region is deregistered.
static void early_free(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    pair_meet(pair);
    char *memory = malloc(PAIR_BYTES);
    struct ibv_mr *mr = ibv_reg_mr(pair->pd, memory, PAIR_BYTES, IBV_ACCESS_LOCAL_WRITE);
    pair_need(mr != NULL, "ibv_reg_mr");
    if (wrong && !pair->server) {
        free(memory);
        memory = NULL;
    }
    pair_need(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
    free(memory);
}

static void early_unmap(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    pair_meet(pair);
    void *memory = mmap(NULL, PAIR_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(pair->pd, memory, PAIR_BYTES, IBV_ACCESS_LOCAL_WRITE);
    pair_need(mr != NULL, "ibv_reg_mr");
    if (wrong && !pair->server) {
        munmap(memory, PAIR_BYTES);
    }
    pair_need(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
    if (!wrong || pair->server) {
        munmap(memory, PAIR_BYTES);
    }
}

// More outstanding reads than the other side has agreed to.
static void many_reads(struct pair *pair, bool wrong)
{
    pair->reads = wrong ? 4 : 1;
    pair_connect(pair);
    if (!pair->server) {
        pair_need(pair_send(pair, 1, IBV_WR_RDMA_READ, MESSAGE, true) == 0, "send");
        (void)pair_wait(pair->cq);
    }
}

// Two receive requests with the same memory.
static void overlap(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    if (pair->server) {
        struct ibv_sge sge = {(uintptr_t)pair->buffer + (wrong ? PAIR_BYTES / 2 + MESSAGE / 2 : 0), MESSAGE,
                              pair->mr->lkey};
        struct ibv_recv_wr wr = {.wr_id = 8, .sg_list = &sge, .num_sge = 1}, *bad;
        pair_need(pair_receive(pair, 7, MESSAGE) == 0 && ibv_post_recv(pair->qp, &wr, &bad) == 0, "receive");
    }
    pair_meet(pair);
}

// More outstanding signalled requests than the completion queue has entries.
static void cq_overrun(struct pair *pair, bool wrong)
{
    unsigned count = wrong ? PAIR_DEPTH : 4;
    pair_connect(pair);
    for (uint64_t i = 0; i < count && !pair->server; i++) {
        pair_need(pair_send(pair, i, IBV_WR_RDMA_WRITE, MESSAGE, true) == 0, "send");
    }
    for (uint64_t i = 0; i < count && !pair->server; i++) {
        (void)pair_wait(pair->cq);
    }
}

// A request is posted to a queue pair that is in the error state after a failure.
static void error_post(struct pair *pair, bool wrong)
{
    wrong_rkey(pair, wrong);
    if (!pair->server) {
        pair_need(pair_send(pair, 2, IBV_WR_RDMA_WRITE, MESSAGE, true) == 0, "send");
        (void)pair_wait(pair->cq);
    }
}

// A queue pair is destroyed before its request is known to be complete.
static void early_destroy(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    if (!pair->server) {
        pair_need(pair_send(pair, 1, IBV_WR_RDMA_WRITE, MESSAGE, true) == 0, "send");
        if (!wrong) {
            (void)pair_wait(pair->cq);
        }
    }
}

// The source buffer is unmapped while the request is in flight.
static void unmap_in_flight(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    if (pair->server) {
        return;
    }
    void *memory = mmap(NULL, PAIR_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(pair->pd, memory, PAIR_BYTES, IBV_ACCESS_LOCAL_WRITE), *own = pair->mr;
    char *buffer = pair->buffer;
    pair->mr = mr;
    pair->buffer = memory;
    pair_need(pair_send(pair, 1, IBV_WR_RDMA_WRITE, MESSAGE, true) == 0, "send");
    if (wrong) {
        usleep(100); // the request's data are sent by then
        munmap(memory, PAIR_BYTES);
    }
    (void)pair_wait(pair->cq);
    pair->mr = own;
    pair->buffer = buffer;
    pair_need(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
    if (!wrong) {
        munmap(memory, PAIR_BYTES);
    }
}

// --- correct programs that a careless check would blame -------------------------------------------------------------

// Posts until the queue is full, polls one completion, fills its buffer again.
static void full_queue(struct pair *pair, bool wrong)
{
    unsigned done = 0, posted = 0;
    (void)wrong;
    pair_connect(pair);
    while (!pair->server && done < 4 * PAIR_DEPTH) {
        if (posted < 4 * PAIR_DEPTH && pair_send(pair, posted, IBV_WR_RDMA_WRITE, MESSAGE, true) == 0) {
            posted++;
            continue;
        }
        while (done < posted) {
            pair_need(pair_wait(pair->cq).wr_id == done++, "order");
        }
        pair->buffer[0]++;
    }
}

static void receives_fill(struct pair *pair)
{
    for (uint64_t i = 0; i < PAIR_DEPTH; i++) {
        struct ibv_sge sge = {(uintptr_t)pair->buffer + i * MESSAGE, MESSAGE, pair->mr->lkey};
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
        pair_need(ibv_post_recv(pair->qp, &wr, &bad) == 0, "receive");
    }
}

// Requests without an answer are dropped by a reset, and their buffers posted again.
static void reset_again(struct pair *pair, bool wrong)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    (void)wrong;
    for (unsigned round = 0; round < 3; round++) {
        pair_connect(pair);
        receives_fill(pair);
        pair_meet(pair);
        pair_need(ibv_modify_qp(pair->qp, &reset, IBV_QP_STATE) == 0, "reset");
    }
    pair->buffer[0]++;
}

// The buffer of a send that a reset dropped is written, and sent again.
static void reset_and_send(struct pair *pair, bool wrong)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    (void)wrong;
    for (uint64_t round = 0; round < 2; round++) {
        pair_connect(pair);
        pair->buffer[0]++;
        if (!pair->server) {
            pair_need(pair_send(pair, round, IBV_WR_RDMA_WRITE, MESSAGE, true) == 0, "send");
        }
        if (!pair->server && round > 0) {
            (void)pair_wait(pair->cq);
        }
        pair_meet(pair);
        pair_need(ibv_modify_qp(pair->qp, &reset, IBV_QP_STATE) == 0, "reset");
        pair_meet(pair);
    }
}

// Only every second request asks for a completion, which says that both are complete.
static void one_in_two(struct pair *pair, bool wrong)
{
    (void)wrong;
    pair_connect(pair);
    for (uint64_t i = 0; i < 4 && !pair->server; i++) {
        pair_need(pair_send(pair, 2 * i, IBV_WR_RDMA_WRITE, MESSAGE, false) == 0, "send");
        pair_need(pair_send(pair, 2 * i + 1, IBV_WR_RDMA_WRITE, MESSAGE, true) == 0, "send");
        (void)pair_wait(pair->cq);
        pair->buffer[0]++;
    }
}

// A server with one completion queue, which grows, and a queue pair for each connection.
static void many_connections(struct pair *pair, bool wrong)
{
    (void)wrong;
    struct ibv_qp *first = pair->qp;
    struct ibv_qp_init_attr init = {
        .send_cq = pair->cq, .recv_cq = pair->cq, .cap = {PAIR_DEPTH, PAIR_DEPTH, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    for (unsigned i = 0; i < 4; i++) {
        pair->qp = ibv_create_qp(pair->pd, &init);
        pair_need(pair->qp != NULL && pair_to_init(pair) == 0, "qp");
        receives_fill(pair);
        pair_need(ibv_destroy_qp(pair->qp) == 0, "ibv_destroy_qp");
    }
    pair->qp = first;
    pair_connect(pair);
    if (ibv_resize_cq(pair->cq, 4 * PAIR_DEPTH) == 0) {
        receives_fill(pair);
    }
}

static bool is_selective(void (*run)(struct pair *pair, bool wrong))
{
    return run == unsignalled || run == stuck_elsewhere || run == one_in_two;
}

static const struct mistake {
    const char *name;
    void (*run)(struct pair *pair, bool wrong);
} mistakes[] = {
    {"wrong-rkey", wrong_rkey},
    {"no-receive", no_receive},
    {"wrong-qp", wrong_qp},
    {"rtr-before-init", rtr_before_init},
    {"small-buffer", small_buffer},
    {"early-dereg", early_dereg},
    {"wrong-cq", wrong_cq},
    {"unsignalled", unsignalled},
    {"two-refusals", two_refusals},
    {"stuck-elsewhere", stuck_elsewhere},
    {"early-read", early_read},
    {"early-write", early_write},
    {"early-write-at-the-end", early_write_at_the_end},
    {"leaked-qp", leaked_qp},
    {"early-free", early_free},
    {"overlap", overlap},
    {"cq-overrun", cq_overrun},
    {"error-post", error_post},
    {"early-destroy", early_destroy},
    {"early-unmap", early_unmap},
    {"many-reads", many_reads},
    {"full-queue", full_queue},
    {"one-in-two", one_in_two},
    {"reset-again", reset_again},
    {"reset-and-send", reset_and_send},
    {"many-connections", many_connections},
    {"unmap-in-flight", unmap_in_flight},
};

int main(int argc, char **argv)
{
    struct pair pair = {0};
    for (size_t i = 0; argc >= 4 && i < sizeof mistakes / sizeof mistakes[0]; i++) {
        if (strcmp(argv[2], mistakes[i].name) == 0) {
            pair.two_cqs = mistakes[i].run == wrong_cq;
            pair.selective = is_selective(mistakes[i].run);
            pair.cq_entries = mistakes[i].run == cq_overrun ? 7 : 2 * PAIR_DEPTH;
            pair_open(&pair, argv[1], argc > 4 ? argv[4] : NULL);
            mistakes[i].run(&pair, strcmp(argv[3], "wrong") == 0);
            pair_close(&pair);
            return 0;
        }
    }
    fprintf(stderr, "usage: %s DEVICE NAME wrong|right [SERVER]\n", argv[0]);
    return 2;
}
