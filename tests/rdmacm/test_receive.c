// The end of a peer, as an identifier and its program see it.
#include <sys/socket.h>
#include <unistd.h>

#include "doubles.h"
#include "tests/shim/test.h"

// An identifier in that state, and the socket of its peer.
static struct cm_id connected_make(enum cm_state state, int *peer_out)
{
    int ends[2] = {-1, -1};
    struct cm_id id = doubles_id(RDMA_PS_TCP);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    id.socket = ends[0];
    id.state = state;
    *peer_out = ends[1];
    return id;
}

// A kernel disconnects for a process that ends.
TEST(RdmaReceive, APeerThatEndsHasDisconnectedAlsoWhenThisSideDoesSo)
{
    static const enum cm_state states[] = {CM_ESTABLISHED, CM_PARTING};
    for (unsigned i = 0; i < 2; i++) {
        TEST_TRACE("%s", i == 0 ? "established" : "parting");
        int peer;
        doubles_begin();
        struct cm_id id = connected_make(states[i], &peer);
        (void)close(peer);
        cm_socket_ready(&id);
        EXPECT_EQ(doubles.events, 1);
        EXPECT_EQ(doubles.event, RDMA_CM_EVENT_DISCONNECTED);
        EXPECT_EQ(doubles.event_status, 0);
        doubles_end();
    }
}

TEST(RdmaReceive, APeerThatEndsBeforeItsAnswerHasRefused)
{
    int peer;
    doubles_begin();
    struct cm_id id = connected_make(CM_CONNECTING, &peer);
    (void)close(peer);
    cm_socket_ready(&id);
    EXPECT_EQ(doubles.events, 1);
    EXPECT_EQ(doubles.event, RDMA_CM_EVENT_REJECTED);
    EXPECT_EQ(doubles.event_status, CM_REJ_CONSUMER);
    doubles_end();
}

// The kernel tells first that the peer did not read everything (unix(7): ECONNRESET), and then what the peer wrote.
TEST(RdmaReceive, TheLastWordOfAPeerIsHeardAlthoughItLeftOthersUnread)
{
    int peer;
    struct cm_message request, refusal;
    doubles_begin();
    struct cm_id id = connected_make(CM_CONNECTING, &peer);
    cm_message_begin(&id, &request, CM_REQ);
    EXPECT_EQ(cm_message_send(&id, &request), 0);
    cm_message_begin(&id, &refusal, CM_REJ);
    refusal.reason = CM_REJ_NO_SERVICE;
    EXPECT_EQ(send(peer, &refusal, sizeof refusal, 0), sizeof refusal);
    (void)close(peer);
    cm_socket_ready(&id);
    EXPECT_EQ(doubles.events, 1);
    EXPECT_EQ(doubles.event, RDMA_CM_EVENT_REJECTED);
    EXPECT_EQ(doubles.event_status, CM_REJ_NO_SERVICE);
    doubles_end();
}
