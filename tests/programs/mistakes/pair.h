// Two processes with a queue pair each, connected over a socket as in small verbs programs.
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum { PAIR_BYTES = 8192, PAIR_DEPTH = 16 };

struct pair_address {
    uint32_t qpn, rkey;
    uint64_t address;
    uint16_t lid;
};

struct pair {
    bool server;
    int socket;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq, *other_cq; // other_cq: for receives, if a program wants two
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    char *buffer; // PAIR_BYTES, page-aligned
    struct pair_address own, peer;
    struct ibv_qp_cap cap;   // may be changed before pair_open
    bool two_cqs, selective; // selective: only requested sends are signalled
    int cq_entries;
    uint8_t reads; // max_rd_atomic, if it is not 1
};

// Unless good: prints what failed and ends the program with 1.
void pair_need(bool good, const char *what);
void pair_open(struct pair *pair, const char *device, const char *server);
// One state transition each; 0 or an errno value.
int pair_to_init(struct pair *pair);
int pair_to_rtr(struct pair *pair);
int pair_to_rts(struct pair *pair);
void pair_connect(struct pair *pair); // all three; on return both sides have done them
void pair_meet(struct pair *pair);    // returns when both sides have called it
int pair_receive(struct pair *pair, uint64_t wr_id, uint32_t bytes);
int pair_send(struct pair *pair, uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t bytes, bool signaled);
// Waits for the next completion of a queue.
struct ibv_wc pair_wait(struct ibv_cq *cq);
void pair_close(struct pair *pair);
