// The end of a stream, and the data before it.
#include <sys/eventfd.h>

#include "doubles.h"
#include "tests/shim/test.h"

static void peer_ends(const struct rs *rs)
{
    EXPECT_EQ(eventfd_write(rs->fd, 1), 0);
}

TEST(RsocketEnd, IsReadAsNoBytes)
{
    char got[8];
    struct rs *rs = doubles_connected("");
    EXPECT_EQ((uint64_t)rrecv(rs->fd, got, sizeof got, MSG_DONTWAIT), (uint64_t)-1);
    EXPECT_EQ(errno, EAGAIN);
    peer_ends(rs);
    EXPECT_EQ(rrecv(rs->fd, got, sizeof got, MSG_DONTWAIT), 0);
    doubles_close(rs);
}

// The completion queue was empty when the call looked, and the data came before the end was taken: a peer may be killed
// while its last bytes are on their way.
TEST(RsocketEnd, ComesAfterTheLastDataEvenIfBothComeDuringOneCall)
{
    char got[8] = "";
    struct rs *rs = doubles_connected("bytes");
    doubles.bytes = 5;
    doubles.comes_at = 2;
    peer_ends(rs);
    EXPECT_EQ(rrecv(rs->fd, got, sizeof got, MSG_DONTWAIT), 5);
    EXPECT_STREQ(got, "bytes");
    EXPECT_EQ(rrecv(rs->fd, got, sizeof got, MSG_DONTWAIT), 0);
    doubles_close(rs);
}
