// Addresses of nodes, and the owners of ports.
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doubles.h"
#include "tests/shim/test.h"

// --- addresses ------------------------------------------------------------------------------------------------------

static void where_expect(int family, const char *text, enum cm_where expected, uint32_t node)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {.any.sa_family = (sa_family_t)family};
    uint32_t found = 99;
    void *to = family == AF_INET ? (void *)&address.v4.sin_addr : (void *)&address.v6.sin6_addr;
    EXPECT_EQ(inet_pton(family, text, to), 1);
    EXPECT_EQ(cm_address_where(&address.any, &found), expected);
    EXPECT_EQ(expected == CM_WHERE_NODE ? found : node, node);
}

TEST(RdmaAddress, IsThatOfANodeOrOfNobody)
{
    where_expect(AF_INET, "127.1.0.1", CM_WHERE_NODE, 0);
    where_expect(AF_INET, "127.1.0.3", CM_WHERE_NODE, 2);
    where_expect(AF_INET, "127.1.0.4", CM_WHERE_NOBODY, 0);
    where_expect(AF_INET, "127.1.0.0", CM_WHERE_NOBODY, 0);
    where_expect(AF_INET, "192.168.0.1", CM_WHERE_NOBODY, 0);
    where_expect(AF_INET, "127.0.0.1", CM_WHERE_NODE, DOUBLE_OWN_NODE);
    where_expect(AF_INET, "0.0.0.0", CM_WHERE_ANY, 0);
}

TEST(RdmaAddress, OfIPv6IsMapped)
{
    where_expect(AF_INET6, "::ffff:127.1.0.3", CM_WHERE_NODE, 2);
    where_expect(AF_INET6, "::ffff:127.1.0.9", CM_WHERE_NOBODY, 0);
    where_expect(AF_INET6, "::1", CM_WHERE_NODE, DOUBLE_OWN_NODE);
    where_expect(AF_INET6, "::", CM_WHERE_ANY, 0);
    where_expect(AF_INET6, "fe80::1", CM_WHERE_NOBODY, 0);
}

TEST(RdmaAddress, OfAnotherFamilyIsBad)
{
    const struct sockaddr address = {.sa_family = AF_UNIX};
    uint32_t node;
    EXPECT_EQ(cm_address_where(&address, &node), CM_WHERE_BAD);
}

TEST(RdmaAddress, ThatIsWrittenReadsBack)
{
    static const int families[] = {AF_INET, AF_INET6};
    for (unsigned i = 0; i < 2; i++) {
        struct sockaddr_storage address;
        uint32_t node = 0;
        cm_address_set(&address, families[i], false, 2, 4711);
        EXPECT_EQ(address.ss_family, families[i]);
        EXPECT_EQ(cm_address_where((const struct sockaddr *)&address, &node), CM_WHERE_NODE);
        EXPECT_EQ(node, 2);
        EXPECT_EQ(cm_address_port((const struct sockaddr *)&address), 4711);
        cm_address_set(&address, families[i], true, 2, 0);
        EXPECT_EQ(cm_address_where((const struct sockaddr *)&address, &node), CM_WHERE_ANY);
    }
}

// --- ports ----------------------------------------------------------------------------------------------------------

TEST(RdmaPort, HasOneOwnerInItsPortSpace)
{
    doubles_begin();
    struct cm_id first = doubles_id(RDMA_PS_TCP), second = doubles_id(RDMA_PS_TCP), datagrams = doubles_id(RDMA_PS_UDP);
    EXPECT_EQ(cm_port_take(&first, 7471), 0);
    EXPECT_EQ(first.port, 7471);
    EXPECT_EQ(cm_port_take(&second, 7471), -EADDRINUSE);
    EXPECT_EQ(cm_port_take(&datagrams, 7471), 0);
    cm_port_give(&first);
    EXPECT_EQ(first.claim, -1);
    EXPECT_EQ(cm_port_take(&second, 7471), 0);
    cm_port_give(&second);
    cm_port_give(&datagrams);
    cm_port_give(&second); // nothing
    doubles_end();
}

static unsigned descriptors_open(void)
{
    unsigned count = 0;
    DIR *all = opendir("/proc/self/fd");
    if (all != NULL) {
        while (readdir(all) != NULL) {
            count++;
        }
        (void)closedir(all);
    }
    return count;
}

// A program may look for a free port for a long time.
TEST(RdmaPort, ThatIsTakenCostsNoDescriptor)
{
    doubles_begin();
    struct cm_id owner = doubles_id(RDMA_PS_TCP), other = doubles_id(RDMA_PS_TCP);
    EXPECT_EQ(cm_port_take(&owner, 7471), 0);
    unsigned before = descriptors_open();
    EXPECT_EQ(cm_port_take(&other, 7471), -EADDRINUSE);
    EXPECT_GT(before, 0);
    EXPECT_EQ(descriptors_open(), before);
    cm_port_give(&owner);
    doubles_end();
}

TEST(RdmaPort, OfNoNumberIsTheFirstFreeOneOfTheKernelsRange)
{
    doubles_begin();
    struct cm_id ids[3];
    for (unsigned i = 0; i < 3; i++) {
        ids[i] = doubles_id(RDMA_PS_TCP);
        EXPECT_EQ(cm_port_take(&ids[i], 0), 0);
        EXPECT_EQ(ids[i].port, 32768 + i);
    }
    cm_port_give(&ids[1]);
    EXPECT_EQ(cm_port_take(&ids[1], 0), 0);
    EXPECT_EQ(ids[1].port, 32769);
    for (unsigned i = 0; i < 3; i++) {
        cm_port_give(&ids[i]);
    }
    doubles_end();
}

TEST(RdmaPort, IsThereOnlyInARun)
{
    struct cm_id id = doubles_id(RDMA_PS_TCP);
    unsetenv("TCASIM_ATTACH");
    EXPECT_EQ(cm_port_take(&id, 7471), -ENODEV);
    setenv("TCASIM_ATTACH", "no-folder", 1);
    EXPECT_EQ(cm_port_take(&id, 7471), -ENODEV);
    char longest[300];
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '/';
    longest[150] = '/';
    longest[sizeof longest - 1] = '\0';
    setenv("TCASIM_ATTACH", longest, 1);
    EXPECT_EQ(cm_port_take(&id, 7471), -ENODEV);
    EXPECT_EQ(cm_socket_listen(&id, 1), -ENODEV);
    EXPECT_EQ(cm_socket_connect(&id, 0, 7471), -ENODEV);
    unsetenv("TCASIM_ATTACH");
}

// --- listening and connecting ---------------------------------------------------------------------------------------

static struct cm_id listener_make(int backlog)
{
    struct cm_id listener = doubles_id(RDMA_PS_TCP);
    EXPECT_EQ(cm_port_take(&listener, 7471), 0);
    EXPECT_EQ(cm_socket_listen(&listener, backlog), 0);
    listener.state = CM_LISTENING;
    return listener;
}

TEST(RdmaSocket, ReachesAListenerOfTheNode)
{
    doubles_begin();
    struct cm_id listener = listener_make(1), client = doubles_id(RDMA_PS_TCP);
    EXPECT_EQ(cm_socket_connect(&client, DOUBLE_OWN_NODE, 7471), 0);
    int accepted = accept(listener.socket, NULL, NULL);
    EXPECT_GE(accepted, 0);
    cm_socket_close(&client);
    char byte;
    EXPECT_EQ(recv(accepted, &byte, 1, 0), 0); // the end of the connection
    (void)close(accepted);
    cm_port_give(&listener);
    doubles_end();
}

TEST(RdmaSocket, FindsNobodyOnAnotherNodePortOrPortSpace)
{
    doubles_begin();
    struct cm_id listener = listener_make(1), client = doubles_id(RDMA_PS_TCP), other = doubles_id(RDMA_PS_IPOIB);
    EXPECT_EQ(cm_socket_connect(&client, 0, 7471), -ENOENT);
    EXPECT_EQ(client.socket, -1);
    EXPECT_EQ(cm_socket_connect(&client, DOUBLE_OWN_NODE, 7472), -ENOENT);
    EXPECT_EQ(cm_socket_connect(&other, DOUBLE_OWN_NODE, 7471), -ENOENT);
    cm_port_give(&listener);
    EXPECT_EQ(cm_socket_connect(&client, DOUBLE_OWN_NODE, 7471), -ENOENT);
    doubles_end();
}

TEST(RdmaSocket, OfAFullListenerTriesLater)
{
    doubles_begin();
    struct cm_id listener = listener_make(0), clients[8];
    int status = 0;
    unsigned made = 0;
    for (; made < 8 && status == 0; made++) {
        clients[made] = doubles_id(RDMA_PS_TCP);
        status = cm_socket_connect(&clients[made], DOUBLE_OWN_NODE, 7471);
    }
    EXPECT_EQ((uint64_t)status, (uint64_t)-EAGAIN);
    for (unsigned i = 0; i < made; i++) {
        cm_socket_close(&clients[i]);
    }
    cm_port_give(&listener);
    doubles_end();
}

// A killed process leaves its name, but its claim to the name ends with the process.
TEST(RdmaSocket, TakesTheNameThatAKilledProcessLeft)
{
    doubles_begin();
    struct cm_id killed = listener_make(1);
    (void)close(killed.socket);
    (void)close(killed.claim);
    struct cm_id listener = listener_make(1);
    cm_port_give(&listener);
    doubles_end();
}

// --- datagrams ------------------------------------------------------------------------------------------------------

TEST(RdmaMeeting, BringsADatagramToTheOwnerOfAPort)
{
    doubles_begin();
    struct cm_id receiver = doubles_id(RDMA_PS_UDP), sender = doubles_id(RDMA_PS_UDP);
    int to = socket(AF_UNIX, SOCK_DGRAM, 0), from = socket(AF_UNIX, SOCK_DGRAM, 0);
    char got[8] = "";
    EXPECT_EQ(cm_port_take(&receiver, 9000), 0);
    EXPECT_EQ(cm_meeting_bind(&receiver, to), 0);
    EXPECT_EQ(cm_meeting_send(&sender, from, DOUBLE_OWN_NODE, 9000, "hello", 6), 0);
    EXPECT_EQ(recv(to, got, sizeof got, 0), 6);
    EXPECT_STREQ(got, "hello");
    EXPECT_EQ((uint64_t)cm_meeting_send(&sender, from, 0, 9000, "hello", 6), (uint64_t)-ENOENT);
    cm_meeting_unbind(&receiver);
    EXPECT_EQ((uint64_t)cm_meeting_send(&sender, from, DOUBLE_OWN_NODE, 9000, "hello", 6), (uint64_t)-ENOENT);
    cm_port_give(&receiver);
    (void)close(to);
    (void)close(from);
    doubles_end();
}
