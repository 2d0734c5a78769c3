// A program for the system's libibverbs that talks to itself over its first device: a queue pair that is connected with
// itself, and a buffer of two halves, of which the first is sent or written to the second.
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

struct loop {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *buffer;
    uint32_t bytes; // of a half
};

void loop_open(struct loop *loop, uint32_t bytes);
void loop_connect(struct loop *loop);
void loop_post(struct loop *loop, enum ibv_wr_opcode opcode);
void loop_close(struct loop *loop);
