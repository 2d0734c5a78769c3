// acprun's port is open to everybody: who does not know the run's secret is no rank, and keeps nobody waiting.
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "tests/shim/test.h"
#include "verbs-shim/acp/acprun.h"
#include "verbs-shim/acp/boot_wire.h"

enum { RANKS = 2, TURNS = 20 };

static int caller(const struct acprun_meeting *meeting)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(meeting->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void message_send(int fd, uint32_t kind, const void *bytes, uint32_t count)
{
    const struct acp_wire_header header = {kind, count};
    EXPECT_TRUE(acp_wire_send(fd, &header, sizeof header));
    EXPECT_TRUE(acp_wire_send(fd, bytes, count));
}

static void hello_send(int fd, uint32_t number, const uint8_t *secret)
{
    struct acp_wire_hello hello = {.number = number};
    memcpy(hello.secret, secret, sizeof hello.secret);
    message_send(fd, ACP_WIRE_HELLO, &hello, sizeof hello);
}

static void take(struct acprun_meeting *meeting)
{
    for (unsigned i = 0; i < TURNS; i++) {
        (void)acprun_meeting_wait(meeting, -1, 1);
    }
}

static bool is_closed(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

// All ranks meet, whatever else is connected.
static void expect_ranks_meet(struct acprun_meeting *meeting)
{
    int ranks[RANKS];
    struct acp_wire_header header;
    char all[RANKS];
    for (uint32_t i = 0; i < RANKS; i++) {
        ranks[i] = caller(meeting);
        hello_send(ranks[i], i, meeting->secret);
        message_send(ranks[i], ACP_WIRE_GATHER, &"ab"[i], 1);
    }
    take(meeting);
    for (uint32_t i = 0; i < RANKS; i++) {
        ASSERT_EQ(recv(ranks[i], &header, sizeof header, MSG_DONTWAIT), (ssize_t)sizeof header);
        EXPECT_EQ(header.bytes, RANKS);
        EXPECT_TRUE(acp_wire_receive(ranks[i], all, RANKS));
        EXPECT_MEMEQ(all, "ab", RANKS);
        (void)close(ranks[i]);
    }
    EXPECT_NULL(meeting->failure);
}

TEST(AcpStrangers, OneSilentByteKeepsNobodyWaiting)
{
    struct acprun_meeting meeting;
    ASSERT_EQ(acprun_meeting_open(&meeting, RANKS), 0);
    int stranger = caller(&meeting);
    EXPECT_TRUE(acp_wire_send(stranger, "", 1));
    take(&meeting);
    expect_ranks_meet(&meeting);
    (void)close(stranger);
    acprun_meeting_close(&meeting);
}

TEST(AcpStrangers, MoreConnectionsThanThereAreRanksKeepNobodyOut)
{
    enum { MANY = 100 };
    struct acprun_meeting meeting;
    int strangers[MANY];
    ASSERT_EQ(acprun_meeting_open(&meeting, RANKS), 0);
    for (unsigned i = 0; i < MANY; i++) {
        strangers[i] = caller(&meeting);
        (void)acprun_meeting_wait(&meeting, -1, 1);
    }
    expect_ranks_meet(&meeting);
    for (unsigned i = 0; i < MANY; i++) {
        (void)close(strangers[i]);
    }
    acprun_meeting_close(&meeting);
}

TEST(AcpStrangers, WhoDoesNotKnowTheSecretIsNoRank)
{
    struct acprun_meeting meeting;
    ASSERT_EQ(acprun_meeting_open(&meeting, RANKS), 0);
    uint8_t wrong[ACP_SECRET_BYTES];
    memcpy(wrong, meeting.secret, sizeof wrong);
    wrong[ACP_SECRET_BYTES - 1] ^= 1;
    int guesses = caller(&meeting), skips = caller(&meeting), old = caller(&meeting);
    hello_send(guesses, 0, wrong);
    message_send(skips, ACP_WIRE_ABORT, NULL, 0);
    message_send(old, ACP_WIRE_HELLO, &(uint32_t){0}, sizeof(uint32_t));
    take(&meeting);
    EXPECT_TRUE(is_closed(guesses));
    EXPECT_TRUE(is_closed(skips));
    EXPECT_TRUE(is_closed(old));
    EXPECT_FALSE(meeting.aborted);
    EXPECT_FALSE(meeting.lost);
    expect_ranks_meet(&meeting);
    (void)close(guesses);
    (void)close(skips);
    (void)close(old);
    acprun_meeting_close(&meeting);
}
