// rdma_getaddrinfo: the addresses of a name, and the kind of a connection.
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include "doubles.h"
#include "tests/shim/test.h"

TEST(RdmaAddrinfo, OfANameIsADestinationUnlessItIsToListen)
{
    struct rdma_addrinfo *info = NULL, hints = {.ai_flags = RAI_NUMERICHOST};
    EXPECT_EQ(rdma_getaddrinfo("127.1.0.2", "7471", &hints, &info), 0);
    ASSERT_NOT_NULL(info);
    EXPECT_NULL(info->ai_src_addr);
    ASSERT_NOT_NULL(info->ai_dst_addr);
    EXPECT_EQ(((struct sockaddr_in *)info->ai_dst_addr)->sin_port, htons(7471));
    EXPECT_EQ(info->ai_family, AF_INET);
    rdma_freeaddrinfo(info);
    hints.ai_flags |= RAI_PASSIVE;
    EXPECT_EQ(rdma_getaddrinfo("127.1.0.2", "7471", &hints, &info), 0);
    EXPECT_NULL(info->ai_dst_addr);
    EXPECT_NOT_NULL(info->ai_src_addr);
    rdma_freeaddrinfo(info);
}

static void kind_expect(int type, int space, int type_expected, int space_expected)
{
    struct rdma_addrinfo *info = NULL;
    const struct rdma_addrinfo hints = {.ai_qp_type = type, .ai_port_space = space, .ai_flags = RAI_NUMERICHOST};
    EXPECT_EQ(rdma_getaddrinfo("127.1.0.2", NULL, &hints, &info), 0);
    EXPECT_EQ(info->ai_qp_type, type_expected);
    EXPECT_EQ(info->ai_port_space, space_expected);
    rdma_freeaddrinfo(info);
}

TEST(RdmaAddrinfo, OfOneKindGivesTheOther)
{
    kind_expect(0, 0, IBV_QPT_RC, RDMA_PS_TCP);
    kind_expect(IBV_QPT_UD, 0, IBV_QPT_UD, RDMA_PS_UDP);
    kind_expect(0, RDMA_PS_UDP, IBV_QPT_UD, RDMA_PS_UDP);
    kind_expect(0, RDMA_PS_IPOIB, IBV_QPT_UD, RDMA_PS_IPOIB);
    kind_expect(IBV_QPT_RC, RDMA_PS_IB, IBV_QPT_RC, RDMA_PS_IB);
}

TEST(RdmaAddrinfo, OfHintsAloneHasTheirAddresses)
{
    struct rdma_addrinfo *info = NULL;
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = 5}, far = {.sin_family = AF_INET, .sin_port = 6};
    const struct rdma_addrinfo hints = {.ai_family = AF_INET,
                                        .ai_src_addr = (struct sockaddr *)&own,
                                        .ai_src_len = sizeof own,
                                        .ai_dst_addr = (struct sockaddr *)&far,
                                        .ai_dst_len = sizeof far};
    EXPECT_EQ(rdma_getaddrinfo(NULL, NULL, &hints, &info), 0);
    ASSERT_NOT_NULL(info);
    ASSERT_EQ(info->ai_src_len, sizeof own);
    ASSERT_EQ(info->ai_dst_len, sizeof far);
    EXPECT_MEMEQ(info->ai_src_addr, &own, sizeof own);
    EXPECT_MEMEQ(info->ai_dst_addr, &far, sizeof far);
    EXPECT_NE(info->ai_src_addr, (struct sockaddr *)&own); // a copy
    rdma_freeaddrinfo(info);
}

TEST(RdmaAddrinfo, OfNothingIsRefused)
{
    struct rdma_addrinfo *info = NULL;
    EXPECT_EQ((uint64_t)rdma_getaddrinfo(NULL, NULL, NULL, &info), (uint64_t)-1);
    EXPECT_EQ(errno, EINVAL);
    const struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST};
    EXPECT_NE(rdma_getaddrinfo("no number", NULL, &hints, &info), 0);
    EXPECT_NULL(info);
    rdma_freeaddrinfo(NULL);
}
