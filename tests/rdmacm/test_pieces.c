// rsockets: data in several buffers.
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <rdma/rsocket.h>

#include "doubles.h"
#include "tests/shim/test.h"
#include "verbs-shim/rdmacm/rsocket.h"

static char text[3][8];
static const struct iovec pieces[] = {{text[0], 3}, {text[1], 5}, {text[2], 2}};

static void begin(bool datagrams)
{
    doubles = (struct doubles){.datagrams = datagrams};
    memcpy(text[0], "abc", 4);
    memcpy(text[1], "defgh", 6);
    memcpy(text[2], "ij", 3);
}

static void results_set(ssize_t first, ssize_t second, ssize_t third)
{
    doubles.moves[0].result = first;
    doubles.moves[1].result = second;
    doubles.moves[2].result = third;
}

TEST(RsocketPieces, OfAStreamGoOneAfterTheOther)
{
    begin(false);
    results_set(3, 5, 2);
    EXPECT_EQ(rwritev(DOUBLE_SOCKET, pieces, 3), 10);
    EXPECT_EQ(doubles.move_count, 3);
    EXPECT_MEMEQ(doubles.wire, "abcdefghij", 10);
}

TEST(RsocketPieces, OfAStreamEndWhereOneIsTakenInPart)
{
    begin(false);
    results_set(3, 4, 0);
    EXPECT_EQ(rwritev(DOUBLE_SOCKET, pieces, 3), 7);
    EXPECT_EQ(doubles.move_count, 2);
}

TEST(RsocketPieces, OfAStreamFailOnlyWhereNothingWasMoved)
{
    begin(false);
    results_set(3, -EAGAIN, 0);
    EXPECT_EQ(rwritev(DOUBLE_SOCKET, pieces, 3), 3);
    begin(false);
    results_set(-ECONNRESET, 0, 0);
    EXPECT_EQ((uint64_t)rwritev(DOUBLE_SOCKET, pieces, 3), (uint64_t)-1);
    EXPECT_EQ(errno, ECONNRESET);
}

// Only the first buffer waits for data; data that have arrived are returned at once.
TEST(RsocketPieces, OfAStreamThatAreReceivedWaitForTheFirst)
{
    begin(false);
    memcpy(doubles.wire, "ABCDEFGH", 8);
    results_set(3, 5, -EAGAIN);
    EXPECT_EQ(rreadv(DOUBLE_SOCKET, pieces, 3), 8);
    EXPECT_STREQ(text[0], "ABC");
    EXPECT_STREQ(text[1], "DEFGH");
    EXPECT_EQ(doubles.moves[0].flags & MSG_DONTWAIT, 0);
    EXPECT_NE(doubles.moves[1].flags & MSG_DONTWAIT, 0);
}

TEST(RsocketPieces, OfADatagramGoAtOnce)
{
    begin(true);
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = 3};
    EXPECT_EQ(rsendmsg(DOUBLE_SOCKET, &message, 0), 10);
    EXPECT_EQ(doubles.move_count, 1);
    EXPECT_MEMEQ(doubles.wire, "abcdefghij", 10);
}

TEST(RsocketPieces, OfADatagramAreFilledInOrder)
{
    begin(true);
    memcpy(doubles.wire, "ABCDE", 5);
    results_set(5, 0, 0);
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = 3};
    EXPECT_EQ(rrecvmsg(DOUBLE_SOCKET, &message, 0), 5);
    EXPECT_STREQ(text[0], "ABC");
    EXPECT_STREQ(text[1], "DEfgh");
    EXPECT_STREQ(text[2], "ij");
}

TEST(RsocketPieces, OfADatagramMustFitIntoOne)
{
    static char large[RS_DATAGRAM_BYTES];
    begin(true);
    struct iovec two[] = {{large, sizeof large}, {large, 1}}, huge[] = {{text[0], 1}, {large, SIZE_MAX}};
    struct msghdr message = {.msg_iov = two, .msg_iovlen = 2};
    EXPECT_EQ((uint64_t)rsendmsg(DOUBLE_SOCKET, &message, 0), (uint64_t)-1);
    EXPECT_EQ(errno, EMSGSIZE);
    message.msg_iov = huge;
    EXPECT_EQ((uint64_t)rsendmsg(DOUBLE_SOCKET, &message, 0), (uint64_t)-1);
    EXPECT_EQ(doubles.move_count, 0);
}

TEST(RsocketPieces, HaveNoControlData)
{
    begin(false);
    char control[32];
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces,
                             .msg_iovlen = 3,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    EXPECT_EQ((uint64_t)rsendmsg(DOUBLE_SOCKET, &message, 0), (uint64_t)-1);
    EXPECT_EQ(errno, EOPNOTSUPP);
}
