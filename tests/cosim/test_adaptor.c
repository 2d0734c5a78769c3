// Conversion of TLPs to beats and back.
#include <string.h>

#include "sim/cosim/adaptor.h"
#include "tests/cosim/chip.h"

static pcie_tlp_t *through_beats(pcie_pool_t *pool, pcie_tlp_t *tlp)
{
    struct cosim_assembly assembly = {0};
    pcie_tlp_t *back = NULL;
    uint32_t count = cosim_beat_count(tlp);
    for (uint32_t i = 0; i < count; i++) {
        struct cosim_beat beat;
        cosim_beat_get(tlp, i, &beat);
        EXPECT_EQ(beat.sop, i == 0);
        EXPECT_EQ(beat.eop, i == count - 1);
        back = cosim_assembly_add(&assembly, pool, "test", &beat);
        EXPECT_EQ(back != NULL, i == count - 1);
    }
    return back;
}

static void expect_same(pcie_tlp_t *actual, pcie_tlp_t *expected)
{
    EXPECT_EQ(actual->kind, expected->kind);
    EXPECT_EQ(actual->requester, expected->requester);
    EXPECT_EQ(actual->tag, expected->tag);
    EXPECT_EQ(actual->dwords, expected->dwords);
    EXPECT_EQ(actual->address, expected->address);
    EXPECT_EQ(actual->first_be, expected->first_be);
    EXPECT_EQ(actual->last_be, expected->last_be);
    EXPECT_EQ(actual->completer, expected->completer);
    EXPECT_EQ(actual->cpl_status, expected->cpl_status);
    EXPECT_EQ(actual->lower_address, expected->lower_address);
    ASSERT_EQ(actual->payload != NULL, expected->payload != NULL);
    if (expected->payload != NULL) {
        EXPECT_MEMEQ(pcie_tlp_data(actual), pcie_tlp_data(expected), expected->dwords * 4u);
    }
}

static void expect_round_trip(pcie_pool_t *pool, pcie_tlp_t *tlp)
{
    pcie_tlp_t *back = through_beats(pool, tlp);
    ASSERT_NOT_NULL(back);
    expect_same(back, tlp);
    pcie_tlp_unref(back);
    pcie_tlp_unref(tlp);
}

TEST(Adaptor, BringsWritesOfEveryAlignmentBackUnchanged)
{
    pcie_pool_t *pool;
    uint64_t state = 7;
    uint8_t data[PCIE_PAYLOAD_MAX];
    chip_fill(&state, data, sizeof data);
    ASSERT_EQ(pcie_pool_create(&pool), SIM_OK);
    for (uint32_t offset = 0; offset < 32; offset++) {
        for (uint32_t bytes = 1; bytes <= 80; bytes++) {
            expect_round_trip(pool, pcie_tlp_write(pool, 0x1234, UINT64_C(0xabcdef000) + offset, bytes, data));
        }
    }
    expect_round_trip(pool, pcie_tlp_write(pool, 1, UINT64_C(0x7000), PCIE_PAYLOAD_MAX, data));
    EXPECT_EQ(pcie_pool_destroy(pool), 0);
}

TEST(Adaptor, BringsReadsBackUnchanged)
{
    pcie_pool_t *pool;
    ASSERT_EQ(pcie_pool_create(&pool), SIM_OK);
    for (uint32_t offset = 0; offset < 8; offset++) {
        expect_round_trip(pool, pcie_tlp_read(pool, 0xffff, 0xa5, UINT64_C(0xfedcba9876540000) + offset, 9));
    }
    expect_round_trip(pool, pcie_tlp_read(pool, 0, 1, UINT64_C(0x1000), 4096));
    EXPECT_EQ(pcie_pool_destroy(pool), 0);
}

TEST(Adaptor, BringsCompletionsOfEveryAlignmentBackUnchanged)
{
    pcie_pool_t *pool;
    uint64_t state = 9;
    uint8_t data[256];
    chip_fill(&state, data, sizeof data);
    ASSERT_EQ(pcie_pool_create(&pool), SIM_OK);
    for (uint32_t offset = 0; offset < 128; offset += 3) {
        for (uint32_t bytes = 1; bytes <= 40; bytes++) {
            pcie_tlp_t *read = pcie_tlp_read(pool, 0x10, 0x20, UINT64_C(0x4000) + offset, bytes);
            expect_round_trip(pool, pcie_tlp_completion(read, 0x500, 0, bytes, data));
            expect_round_trip(pool, pcie_tlp_error(read, 0x500, PCIE_CPL_UR));
            pcie_tlp_unref(read);
        }
    }
    EXPECT_EQ(pcie_pool_destroy(pool), 0);
}

TEST(Adaptor, PutsPayloadOnTheLanesOfItsAddress)
{
    pcie_pool_t *pool;
    const uint32_t data[3] = {0x11111111, 0x22222222, 0x33333333};
    struct cosim_beat beat;
    ASSERT_EQ(pcie_pool_create(&pool), SIM_OK);
    pcie_tlp_t *tlp = pcie_tlp_write(pool, 0, 0x1008, sizeof data, data);
    EXPECT_EQ(cosim_beat_count(tlp), 3);
    cosim_beat_get(tlp, 1, &beat);
    EXPECT_MEMEQ(beat.words, ((uint32_t[]){0, 0, 0x11111111, 0x22222222}), sizeof beat.words);
    cosim_beat_get(tlp, 2, &beat);
    EXPECT_MEMEQ(beat.words, ((uint32_t[]){0x33333333, 0, 0, 0}), sizeof beat.words);
    EXPECT_EQ(beat.empty, 3);
    pcie_tlp_unref(tlp);
    EXPECT_EQ(pcie_pool_destroy(pool), 0);
}

TEST(Adaptor, WritesTheHeaderAsTheSpecificationPrintsIt)
{
    pcie_pool_t *pool;
    const uint8_t data[6] = {1, 2, 3, 4, 5, 6};
    struct cosim_beat beat;
    ASSERT_EQ(pcie_pool_create(&pool), SIM_OK);
    pcie_tlp_t *tlp = pcie_tlp_write(pool, 0x0510, UINT64_C(0x123456789a), sizeof data, data);
    cosim_beat_get(tlp, 0, &beat);
    EXPECT_EQ(beat.words[0], 0x60000002); // fmt 011, type 00000, 2 DWs
    EXPECT_EQ(beat.words[1], 0x051000fc); // requester, tag 0, last 1111, first 1100
    EXPECT_EQ(beat.words[2], 0x12);
    EXPECT_EQ(beat.words[3], 0x34567898);
    pcie_tlp_unref(tlp);
    EXPECT_EQ(pcie_pool_destroy(pool), 0);
}
