// A loop of polls that counts in halves of a word, beside a flag in the same word that a device writes: what it has counted is
// what it would have counted if every poll were carried out (waits.sh compares).
#include <stdint.h>
#include <string.h>

#include "loop.h"

enum { ROUNDS = 20, BYTES = 4, LARGE = 60000, HALF = 65536 };

// At the second half of the buffer, to which the device writes from its first half: much that takes long, and then the flag.
struct shared {
    volatile uint32_t flag, beside; // in one word
    volatile uint32_t polls, empty; // in another one
    volatile uint32_t phase, last;
};

int main(void)
{
    struct loop loop;
    loop_open(&loop, HALF);
    loop_connect(&loop);
    struct shared *shared = (struct shared *)(void *)(loop.buffer + HALF);
    memset(shared, 0, sizeof *shared);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct ibv_sge piece = {(uintptr_t)loop.buffer, BYTES, loop.mr->lkey};
        struct ibv_send_wr request = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &piece, .num_sge = 1}, *bad;
        request.wr.rdma.remote_addr = (uintptr_t)shared;
        request.wr.rdma.rkey = loop.mr->rkey;
        request.send_flags = i % 8 == 7 ? IBV_SEND_SIGNALED : 0;
        memcpy(loop.buffer, &(uint32_t){i + 1}, sizeof(uint32_t));
        struct ibv_sge much = {(uintptr_t)loop.buffer + 64, LARGE, loop.mr->lkey};
        struct ibv_send_wr before = request;
        before.sg_list = &much;
        before.send_flags = 0;
        before.wr.rdma.remote_addr += 64;
        before.next = &request;
        CHECK(ibv_post_send(loop.qp, &before, &bad) == 0);
        while (shared->flag <= i) {
            struct ibv_wc wc;
            shared->polls++;
            shared->beside++;
            shared->phase ^= 1;
            (void)ibv_poll_cq(loop.cq, 1, &wc);
            shared->empty++;
            shared->last = shared->polls;
        }
        printf("%u: %u %u %u %u %u\n", i, shared->beside, shared->polls, shared->empty, shared->phase, shared->last);
    }
    return 0;
}
