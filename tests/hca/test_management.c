// Management datagrams: each agent's answers, and what is refused with which status.
#include <string.h>

#include "fixture.h"
#include "models/hca/management.h"

enum { BY_LID = 0x01, DIRECTED = 0x81, ADMINISTRATION = 0x03, PERFORMANCE = 0x04, GET = 1, SET = 2, DELETE = 0x15 };
enum { STATUS = 4, METHOD = 3, HOPS = 7, ATTRIBUTE = 16, MODIFIER = 20, COMPONENTS = 48, RECORD = 56, DATA = 64 };
enum {
    NOT_SUPPORTED = 2 << 2,
    NO_ATTRIBUTE = 3 << 2,
    NO_VALUE = 7 << 2,
    TOO_FEW = 6 << 8,
    NO_RECORD = 3 << 8,
    NO_GID = 5 << 8
};

static uint8_t mad[HCA_MAD_BYTES];
static struct hca_port_info ports[2];

static struct hca *adapter(void *ctx, unsigned node, const char **name_out)
{
    (void)ctx;
    *name_out = node == 0 ? "first" : "second";
    return fixture.base.nodes[node].hca;
}

static const struct hca_subnet subnet = {2, adapter, NULL};

static void begin(void)
{
    fixture_init(HCA_RC);
    for (unsigned node = 0; node < 2; node++) {
        struct hca_command query = {.id = HCA_CMD_QUERY_PORT};
        EXPECT_EQ(hca_fw_command(fixture.base.nodes[node].hca, &query), SIM_OK);
        ports[node] = query.query_port;
    }
    memset(mad, 0, sizeof mad);
}

static uint64_t field(unsigned at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value = value << 8 | mad[at + i];
    }
    return value;
}

static void field_set(unsigned at, unsigned bytes, uint64_t value)
{
    for (unsigned i = bytes; i-- > 0; value >>= 8) {
        mad[at + i] = (uint8_t)value;
    }
}

static void about(unsigned class, unsigned method, unsigned attribute)
{
    mad[0] = 1;
    mad[1] = (uint8_t) class;
    mad[METHOD] = (uint8_t)method;
    field_set(ATTRIBUTE, 2, attribute);
    field_set(STATUS, 2, 0);
}

static bool sent_to(uint16_t lid)
{
    return hca_mad_answer(&subnet, 0, lid, mad);
}

TEST(HcaManagement, APortTellsOfItselfByADirectedRouteWithoutHops)
{
    begin();
    about(DIRECTED, GET, 0x11);
    EXPECT_TRUE(sent_to(0xffff));
    EXPECT_EQ(field(STATUS, 2), 0x8000u); // it returns
    EXPECT_EQ(mad[METHOD], 0x81);
    EXPECT_EQ(field(DATA + 20, 8), ports[0].guid);
    about(DIRECTED, GET, 0x11);
    mad[HOPS] = 1;
    EXPECT_FALSE(sent_to(0xffff));
    fixture_fini();
}

TEST(HcaManagement, AnotherPortIsAskedByItsLid)
{
    begin();
    about(BY_LID, GET, 0x15);
    EXPECT_TRUE(sent_to(ports[1].lid));
    EXPECT_EQ(field(STATUS, 2), 0u);
    EXPECT_EQ(field(DATA + 8, 8), ports[1].gid_prefix);
    EXPECT_EQ(field(DATA + 16, 2), ports[1].lid);
    EXPECT_EQ(field(DATA + 18, 2), (uint64_t)HCA_MANAGER_LID);
    EXPECT_EQ(mad[DATA + 32] & 0xf, 4); // active
    EXPECT_EQ(mad[DATA + 33] >> 4, 5);  // LinkUp
    EXPECT_EQ(mad[DATA + 30], 3);       // widths 1x and 4x, of which it uses the latter
    EXPECT_EQ(mad[DATA + 31], 2);
    EXPECT_EQ(mad[DATA + 32] >> 4, 7); // QDR and slower
    EXPECT_EQ(mad[DATA + 35], 0x47);
    about(BY_LID, GET, 0x10);
    EXPECT_TRUE(sent_to(ports[1].lid));
    EXPECT_STREQ((const char *)mad + DATA, "second ibsim0");
    about(BY_LID, GET, 0x14);
    EXPECT_TRUE(sent_to(ports[1].lid));
    EXPECT_EQ(field(DATA, 8), ports[1].guid);
    about(BY_LID, GET, 0x16);
    EXPECT_TRUE(sent_to(ports[1].lid));
    EXPECT_EQ(field(DATA, 2), 0xffffu);
    about(BY_LID, GET, 0x15);
    EXPECT_FALSE(sent_to(77));
    EXPECT_FALSE(sent_to(0));
    fixture_fini();
}

TEST(HcaManagement, OnlyTheManagersPortIsOne)
{
    begin();
    about(BY_LID, GET, 0x20);
    EXPECT_TRUE(sent_to(ports[0].lid));
    EXPECT_EQ(field(STATUS, 2), 0u);
    EXPECT_EQ(field(DATA, 8), ports[0].guid);
    EXPECT_EQ(mad[DATA + 20], 3); // master
    about(BY_LID, GET, 0x20);
    EXPECT_TRUE(sent_to(ports[1].lid));
    EXPECT_EQ(field(STATUS, 2), (uint64_t)NO_ATTRIBUTE);
    fixture_fini();
}

TEST(HcaManagement, WhatAPortDoesNotHaveIsRefusedWithAStatus)
{
    begin();
    about(BY_LID, SET, 0x15);
    EXPECT_TRUE(sent_to(ports[1].lid));
    EXPECT_EQ(field(STATUS, 2), (uint64_t)NOT_SUPPORTED);
    about(BY_LID, GET, 0x99);
    EXPECT_TRUE(sent_to(ports[1].lid));
    EXPECT_EQ(field(STATUS, 2), (uint64_t)NO_ATTRIBUTE);
    static const struct {
        unsigned attribute;
        uint32_t modifier;
        unsigned status;
    } modified[] = {{0x15, 1, 0}, {0x15, 2, NO_VALUE}, {0x14, 1, NO_VALUE}, {0x16, 1, NO_VALUE}};
    for (unsigned i = 0; i < sizeof modified / sizeof modified[0]; i++) {
        about(BY_LID, GET, modified[i].attribute);
        field_set(MODIFIER, 4, modified[i].modifier);
        EXPECT_TRUE(sent_to(ports[1].lid));
        EXPECT_EQ(field(STATUS, 2), modified[i].status);
    }
    about(0x0b, GET, 0x15); // a class that has no agent
    EXPECT_FALSE(sent_to(ports[1].lid));
    static const unsigned without_answers[] = {0x81, 3, 5, 7}; // a response, Send, Trap, TrapRepress
    for (unsigned i = 0; i < sizeof without_answers / sizeof without_answers[0]; i++) {
        about(BY_LID, without_answers[i], 0x15);
        EXPECT_FALSE(sent_to(ports[1].lid));
    }
    fixture_fini();
}

static void write_far(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 5000, fixture.far, 0), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
}

TEST(HcaManagement, CountersAreThoseOfThePort)
{
    begin();
    fixture_run(write_far, NULL);
    struct hca_port_counts counts;
    EXPECT_TRUE(hca_port_count(fixture.base.nodes[1].hca, &counts));
    EXPECT_GT(counts.received.packets, 1);
    EXPECT_GT(counts.sent.packets, 0);
    EXPECT_GT(counts.received.bytes, 5000);
    about(PERFORMANCE, GET, 0x12);
    mad[DATA + 1] = 1;
    EXPECT_TRUE(sent_to(ports[1].lid));
    EXPECT_EQ(field(STATUS, 2), 0u);
    EXPECT_EQ(mad[DATA + 1], 1);
    EXPECT_EQ(field(DATA + 24, 4), counts.sent.bytes / 4);
    EXPECT_EQ(field(DATA + 28, 4), counts.received.bytes / 4);
    EXPECT_EQ(field(DATA + 32, 4), counts.sent.packets);
    EXPECT_EQ(field(DATA + 36, 4), counts.received.packets);
    about(PERFORMANCE, GET, 0x1d);
    EXPECT_TRUE(sent_to(ports[1].lid));
    EXPECT_EQ(field(DATA + 8, 8), counts.sent.bytes / 4);
    EXPECT_EQ(field(DATA + 16, 8), counts.received.bytes / 4);
    EXPECT_EQ(field(DATA + 24, 8), counts.sent.packets);
    EXPECT_EQ(field(DATA + 32, 8), counts.received.packets);
    EXPECT_EQ(field(DATA + 40, 8) + field(DATA + 48, 8), 0u);
    about(PERFORMANCE, GET, 0x12);
    mad[DATA + 1] = 2;
    EXPECT_TRUE(sent_to(ports[1].lid));
    EXPECT_EQ(field(STATUS, 2), (uint64_t)NO_VALUE);
    about(PERFORMANCE, GET, 0x01);
    EXPECT_TRUE(sent_to(ports[1].lid));
    EXPECT_EQ(field(DATA + 2, 2), 0x0400u); // extended counters, but none for unicast
    about(PERFORMANCE, SET, 0x12);
    EXPECT_TRUE(sent_to(ports[1].lid));
    EXPECT_EQ(field(STATUS, 2), (uint64_t)NOT_SUPPORTED);
    fixture_fini();
}

static void path_wanted(uint64_t components)
{
    about(ADMINISTRATION, GET, 0x35);
    memset(mad + RECORD, 0, sizeof mad - RECORD);
    field_set(COMPONENTS, 8, components);
    field_set(RECORD + 16, 8, ports[1].guid);
    field_set(RECORD + 32, 8, ports[0].guid);
    field_set(RECORD + 40, 2, ports[1].lid);
    field_set(RECORD + 42, 2, ports[0].lid);
}

TEST(HcaManagement, APathIsFoundByGidsAndByLidsOfBothEnds)
{
    enum { TO_GID = 1 << 2, FROM_GID = 1 << 3, TO_LID = 1 << 4, FROM_LID = 1 << 5 };
    static const uint64_t enough[] = {TO_GID | FROM_GID, TO_LID | FROM_LID, TO_LID | FROM_GID},
                          too_few[] = {0, TO_GID, FROM_LID, TO_GID | TO_LID};
    begin();
    for (unsigned i = 0; i < sizeof enough / sizeof enough[0]; i++) {
        path_wanted(enough[i]);
        EXPECT_TRUE(sent_to(HCA_MANAGER_LID));
        EXPECT_EQ(field(STATUS, 2), 0u);
        EXPECT_EQ(field(RECORD + 8, 8), ports[1].gid_prefix);
        EXPECT_EQ(field(RECORD + 16, 8), ports[1].guid);
        EXPECT_EQ(field(RECORD + 32, 8), ports[0].guid);
        EXPECT_EQ(field(RECORD + 40, 2), ports[1].lid);
        EXPECT_EQ(field(RECORD + 42, 2), ports[0].lid);
        EXPECT_EQ(mad[RECORD + 54], 2 << 6 | 4); // exactly 2048 B
    }
    for (unsigned i = 0; i < sizeof too_few / sizeof too_few[0]; i++) {
        path_wanted(too_few[i]);
        EXPECT_TRUE(sent_to(HCA_MANAGER_LID));
        EXPECT_EQ(field(STATUS, 2), (uint64_t)TOO_FEW);
    }
    path_wanted(TO_LID | FROM_LID);
    field_set(RECORD + 40, 2, 77);
    EXPECT_TRUE(sent_to(HCA_MANAGER_LID));
    EXPECT_EQ(field(STATUS, 2), (uint64_t)NO_RECORD);
    path_wanted(TO_LID | FROM_LID);
    EXPECT_FALSE(sent_to(ports[1].lid)); // no manager
    fixture_fini();
}

static void group_wanted(unsigned method, uint64_t components, const uint8_t gid[16])
{
    about(ADMINISTRATION, method, 0x38);
    memset(mad + RECORD, 0, sizeof mad - RECORD);
    field_set(COMPONENTS, 8, components);
    memcpy(mad + RECORD, gid, 16);
}

TEST(HcaManagement, WhoJoinsAGroupGetsItsLid)
{
    enum { GROUP = 1, STATE = 1 << 16 };
    static const uint8_t gid[16] = {0xff, 0x12, 0x40, 0x1b, [15] = 9}, other[16] = {0xfe, 0x80};
    begin();
    group_wanted(SET, GROUP | STATE, gid);
    mad[RECORD + 48] = 4; // only sends
    EXPECT_TRUE(sent_to(HCA_MANAGER_LID));
    EXPECT_EQ(field(STATUS, 2), 0u);
    EXPECT_EQ(mad[METHOD], 0x81);
    EXPECT_MEMEQ(mad + RECORD, gid, sizeof gid);
    EXPECT_EQ(field(RECORD + 24, 8), ports[0].guid);
    EXPECT_EQ(field(RECORD + 36, 2), hca_group_lid(gid));
    EXPECT_BETWEEN(field(RECORD + 36, 2), 0xc000, 0xfffe);
    EXPECT_EQ(mad[RECORD + 48], 4);
    group_wanted(DELETE, GROUP, gid);
    EXPECT_TRUE(sent_to(HCA_MANAGER_LID));
    EXPECT_EQ(field(STATUS, 2), 0u);
    EXPECT_EQ(mad[METHOD], 0x95);
    group_wanted(SET, STATE, gid);
    EXPECT_TRUE(sent_to(HCA_MANAGER_LID));
    EXPECT_EQ(field(STATUS, 2), (uint64_t)TOO_FEW);
    group_wanted(SET, GROUP, other);
    EXPECT_TRUE(sent_to(HCA_MANAGER_LID));
    EXPECT_EQ(field(STATUS, 2), (uint64_t)NO_GID);
    about(ADMINISTRATION, SET, 0x35);
    EXPECT_TRUE(sent_to(HCA_MANAGER_LID));
    EXPECT_EQ(field(STATUS, 2), (uint64_t)NOT_SUPPORTED);
    fixture_fini();
}
