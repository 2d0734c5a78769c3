// Two processes with a queue pair each, connected as small verbs programs do it: over a socket.
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum { PAIR_BYTES = 8192, PAIR_DEPTH = 16 };

struct pair_place {
    uint32_t qpn, rkey;
    uint64_t address;
    uint16_t lid;
};

struct pair {
    bool server;
    int socket;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq, *other_cq; // other_cq: of receives, where a program wants two
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    char *buffer; // PAIR_BYTES, page-aligned
    struct pair_place own, peer;
    struct ibv_qp_cap cap;   // to be changed before pair_open
    bool two_cqs, selective; // selective: sends are signalled where asked for
    int cq_entries;
    uint8_t reads; // max_rd_atomic, where it is not 1
};

// Ends the program with 1 and says what failed, unless good.
void pair_need(bool good, const char *what);
void pair_open(struct pair *pair, const char *device, const char *server);
// The states, one at a time; 0 or an errno value.
int pair_to_init(struct pair *pair);
int pair_to_rtr(struct pair *pair);
int pair_to_rts(struct pair *pair);
void pair_connect(struct pair *pair); // all three, and both sides are there when it returns
void pair_meet(struct pair *pair);    // both sides have come here
int pair_receive(struct pair *pair, uint64_t wr_id, uint32_t bytes);
int pair_send(struct pair *pair, uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t bytes, bool signaled);
// The next completion of a queue.
struct ibv_wc pair_wait(struct ibv_cq *cq);
void pair_close(struct pair *pair);
