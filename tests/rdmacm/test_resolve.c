// Resolution of addresses: its time, and what may follow when it has failed.
#include <netinet/in.h>
#include <sys/socket.h>

#include "doubles.h"
#include "tests/shim/test.h"

static int resolve(struct cm_id *id, uint32_t node)
{
    struct sockaddr_storage to;
    cm_address_set(&to, AF_INET, false, node, 7471);
    return rdma_resolve_addr(&id->base, NULL, (struct sockaddr *)&to, 250);
}

// As in Linux: the identifier is bound again.
TEST(RdmaResolve, AnotherAddressMayFollowOneThatNobodyHas)
{
    doubles_begin();
    struct cm_id id = doubles_id(RDMA_PS_TCP);
    EXPECT_EQ(resolve(&id, DOUBLE_NODES), 0);
    EXPECT_EQ(doubles.deadline_ns, 250000000);
    cm_deadline_passed(&id);
    EXPECT_EQ(doubles.event, RDMA_CM_EVENT_ADDR_ERROR);
    EXPECT_EQ((uint64_t)doubles.event_status, (uint64_t)-ETIMEDOUT);
    EXPECT_EQ(resolve(&id, 0), 0);
    cm_deadline_passed(&id);
    EXPECT_EQ(doubles.event, RDMA_CM_EVENT_ADDR_RESOLVED);
    cm_port_give(&id);
    doubles_end();
}

// The request raises an interrupt on the other node, the answer one here; never less.
TEST(RdmaResolve, TheAnswerOfANodeTakesTwoInterrupts)
{
    doubles_begin();
    struct cm_id id = doubles_id(RDMA_PS_TCP);
    EXPECT_EQ(resolve(&id, 0), 0);
    EXPECT_BETWEEN(doubles.deadline_ns, 2 * DOUBLE_INTERRUPT_PS / 1000, 2 * DOUBLE_INTERRUPT_PS / 1000 + 1);
    cm_port_give(&id);
    doubles_end();
}
