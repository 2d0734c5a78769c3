// Classic mistakes of verbs programs, one a run: mistake DEVICE NAME wrong|right [SERVER]. Without a server it is one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

// The buffer of a read is looked at before the read is done.
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

// The buffer of a send is written again before the send is done.
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

static void leaked_qp(struct pair *pair, bool wrong)
{
    pair_connect(pair);
    pair_meet(pair);
    if (wrong && !pair->server) {
        exit(0);
    }
}

// The memory of a region is given back before the region.
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

// More reads under way than the other side has agreed to.
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

// More signalled requests under way than the completion queue has entries.
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

// A request is posted to a queue pair that a failure has brought to the error state.
static void error_post(struct pair *pair, bool wrong)
{
    wrong_rkey(pair, wrong);
    if (!pair->server) {
        pair_need(pair_send(pair, 2, IBV_WR_RDMA_WRITE, MESSAGE, true) == 0, "send");
        (void)pair_wait(pair->cq);
    }
}

// A queue pair goes before its request is known to be complete.
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

static const struct mistake {
    const char *name;
    void (*run)(struct pair *pair, bool wrong);
} mistakes[] = {
    {"wrong-rkey", wrong_rkey},     {"no-receive", no_receive},
    {"wrong-qp", wrong_qp},         {"rtr-before-init", rtr_before_init},
    {"small-buffer", small_buffer}, {"early-dereg", early_dereg},
    {"wrong-cq", wrong_cq},         {"unsignalled", unsignalled},
    {"early-read", early_read},     {"early-write", early_write},
    {"leaked-qp", leaked_qp},       {"early-free", early_free},
    {"overlap", overlap},           {"cq-overrun", cq_overrun},
    {"error-post", error_post},     {"early-destroy", early_destroy},
    {"early-unmap", early_unmap},   {"many-reads", many_reads},
};

int main(int argc, char **argv)
{
    struct pair pair = {0};
    for (size_t i = 0; argc >= 4 && i < sizeof mistakes / sizeof mistakes[0]; i++) {
        if (strcmp(argv[2], mistakes[i].name) == 0) {
            pair.two_cqs = mistakes[i].run == wrong_cq;
            pair.selective = mistakes[i].run == unsignalled;
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
