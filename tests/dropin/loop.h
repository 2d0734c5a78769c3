// For programs of the system's libibverbs, on their first device: a queue pair, and a buffer of two halves. The first
// is sent or written to the second of the peer, which is the program itself unless it says otherwise before it
// connects.
#pragma once

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

// Or the program says what was wrong, and ends with status 1.
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "%s: line %d: not %s\n", __FILE__, __LINE__, #condition);                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

struct loop_end {
    uint16_t lid;
    uint32_t qpn;
    uint64_t buffer;
    uint32_t rkey;
};

struct loop {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *buffer;
    uint32_t bytes;       // of a half
    struct loop_end peer; // at first the program's own
};

void loop_open(struct loop *loop, uint32_t bytes);
void loop_connect(struct loop *loop);
void loop_post(struct loop *loop, enum ibv_wr_opcode opcode);
void loop_completion_take(struct loop *loop);
void loop_close(struct loop *loop);
