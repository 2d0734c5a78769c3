// Requests of the connection manager: their receivers, their retries, and their results for the program.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doubles.h"
#include "tests/shim/test.h"

#define ATTEMPT_NS UINT64_C(6144000000) // 2 * 2^18 us * 4.096 and 2^20 us * 4.096, as Linux rounds them

static struct cm_id request_make(enum rdma_port_space ps)
{
    struct cm_id id = doubles_id(ps);
    cm_address_set(&id.base.route.addr.dst_storage, AF_INET, false, DOUBLE_OWN_NODE, 7471);
    id.state = CM_CONNECTING;
    cm_message_begin(&id, &id.own, CM_REQ);
    return id;
}

TEST(RdmaMessage, BeginsWithWhoSendsIt)
{
    struct cm_id id = doubles_id(RDMA_PS_TCP);
    struct cm_message message;
    id.port = 4711;
    id.psn = 0x123456;
    cm_message_begin(&id, &message, CM_REP);
    EXPECT_EQ(message.kind, CM_REP);
    EXPECT_EQ(message.node, DOUBLE_OWN_NODE);
    EXPECT_EQ(message.port, 4711);
    EXPECT_EQ(message.psn, 0x123456);
    EXPECT_STREQ(message.device, "");
    EXPECT_EQ(cm_message_send(&id, &message), -ENOTCONN);
}

TEST(RdmaMessage, OfARequestReachesTheListenerAndWaitsForItsAnswer)
{
    doubles_begin();
    struct cm_id listener = doubles_id(RDMA_PS_TCP), id = request_make(RDMA_PS_TCP);
    struct cm_message got = {0};
    EXPECT_EQ(cm_port_take(&listener, 7471), 0);
    EXPECT_EQ(cm_socket_listen(&listener, 1), 0);
    listener.state = CM_LISTENING;
    cm_request_try(&id);
    EXPECT_EQ(doubles.watched, 1);
    EXPECT_EQ(doubles.deadline_ns, 16 * ATTEMPT_NS);
    EXPECT_EQ(doubles.events, 0);
    int accepted = accept(listener.socket, NULL, NULL);
    EXPECT_EQ(recv(accepted, &got, sizeof got, 0), sizeof got);
    EXPECT_EQ(got.kind, CM_REQ);
    (void)close(accepted);
    cm_socket_close(&id);
    cm_port_give(&listener);
    doubles_end();
}

TEST(RdmaMessage, ToAPortWithoutListenerIsRejectedOrForDatagramsUnreachable)
{
    doubles_begin();
    struct cm_id id = request_make(RDMA_PS_TCP), datagrams = request_make(RDMA_PS_UDP);
    cm_request_try(&id);
    EXPECT_EQ(id.state, CM_ENDED);
    EXPECT_EQ(doubles.event, RDMA_CM_EVENT_REJECTED);
    EXPECT_EQ(doubles.event_status, CM_REJ_NO_SERVICE);
    cm_request_try(&datagrams);
    EXPECT_EQ(doubles.event, RDMA_CM_EVENT_UNREACHABLE);
    EXPECT_EQ(doubles.event_status, CM_SIDR_NO_SERVICE);
    EXPECT_EQ(doubles.events, 2);
    doubles_end();
}

// 16 requests, as in Linux, each after the timeout of the previous one.
TEST(RdmaMessage, ToAListenerWhoseQueueIsFullIsSentAgainUntilItIsGivenUp)
{
    doubles_begin();
    struct cm_id listener = doubles_id(RDMA_PS_TCP), others[8], id = request_make(RDMA_PS_TCP);
    unsigned filled = 0;
    EXPECT_EQ(cm_port_take(&listener, 7471), 0);
    EXPECT_EQ(cm_socket_listen(&listener, 0), 0);
    listener.state = CM_LISTENING;
    do {
        others[filled] = doubles_id(RDMA_PS_TCP);
    } while (cm_socket_connect(&others[filled], DOUBLE_OWN_NODE, 7471) == 0 && ++filled < 8);
    for (unsigned attempt = 1; attempt < 16; attempt++) {
        cm_request_try(&id);
        EXPECT_EQ(doubles.deadline_ns, ATTEMPT_NS);
        EXPECT_EQ(doubles.events, 0);
    }
    cm_request_try(&id);
    EXPECT_EQ(id.state, CM_ENDED);
    EXPECT_EQ(doubles.event, RDMA_CM_EVENT_UNREACHABLE);
    EXPECT_EQ((uint64_t)doubles.event_status, (uint64_t)-ETIMEDOUT);
    for (unsigned i = 0; i < filled; i++) {
        cm_socket_close(&others[i]);
    }
    cm_port_give(&listener);
    doubles_end();
}
