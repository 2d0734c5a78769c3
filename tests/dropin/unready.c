// Two queue pairs of one process: a message on one, for which nothing is posted on the other, and whose completion is
// looked for. A queue pair that may retry for ever does.
#include "loop.h"

enum { BYTES = 64 };

int main(void)
{
    struct loop sender = {0}, receiver = {0};
    loop_open(&sender, BYTES);
    loop_open(&receiver, BYTES);
    struct loop_end of_sender = sender.peer;
    sender.peer = receiver.peer;
    receiver.peer = of_sender;
    loop_connect(&receiver);
    loop_connect(&sender);
    loop_post(&sender, IBV_WR_SEND);
    loop_completion_take(&sender);
    return 0;
}
