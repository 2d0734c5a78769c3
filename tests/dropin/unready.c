// Two queue pairs of one process: a message on one, for which no receive is posted on the other. The program polls for
// the completion, or, with the argument "sleeps", waits for it. A queue pair with endless retries retries forever. With
// "writes" it only writes, which needs no receive, and waits for an event that never comes.
#include <stdbool.h>
#include <string.h>

#include "loop.h"

enum { BYTES = 64 };

int main(int count, char **arguments)
{
    bool writes = count > 1 && strcmp(arguments[1], "writes") == 0;
    struct loop sender = {0}, receiver = {0};
    loop_open(&sender, BYTES);
    loop_open(&receiver, BYTES);
    struct loop_end of_sender = sender.peer;
    sender.peer = receiver.peer;
    receiver.peer = of_sender;
    loop_connect(&receiver);
    loop_connect(&sender);
    CHECK(ibv_req_notify_cq(sender.cq, 0) == 0);
    loop_post(&sender, writes ? IBV_WR_RDMA_WRITE : IBV_WR_SEND);
    if (count > 1) {
        struct ibv_cq *cq;
        void *context;
        CHECK(ibv_get_cq_event(sender.channel, &cq, &context) == 0);
        CHECK(!writes || ibv_get_cq_event(sender.channel, &cq, &context) == 0);
    }
    loop_completion_take(&sender);
    return 0;
}
