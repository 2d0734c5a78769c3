// For programs on the system's libibverbs, on their first device: a queue pair, and a buffer of two halves. The first
// half is sent or written to the second half of the peer, which is the program itself unless it sets another peer
// before it connects.
#pragma once

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

// If the condition fails, the program prints it and ends with status 1.
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
    uint32_t bytes;       // size of a half
    struct loop_end peer; // initially the program's own end
};

void loop_open(struct loop *loop, uint32_t bytes);
void loop_connect(struct loop *loop);
void loop_post(struct loop *loop, enum ibv_wr_opcode opcode);
void loop_completion_take(struct loop *loop);
void loop_close(struct loop *loop);
// A TCP connection of two programs: the first one listens (host NULL), the other one connects.
int loop_meet(const char *host, uint16_t port);
