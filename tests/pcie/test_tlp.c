#include "models/pcie/tlp.h"
#include "tests/shim/test.h"

#include <string.h>

static pcie_pool_t *pool_make(void)
{
    pcie_pool_t *pool = NULL;
    (void)pcie_pool_create(&pool);
    return pool;
}

TEST(Tlp, DerivesLengthAndByteEnablesFromAddressAndSize)
{
    static const struct {
        uint64_t address;
        uint32_t bytes, dwords, first_be, last_be;
    } ROWS[] = {
        {0x1000, 4, 1, 0xf, 0x0},       {0x1001, 1, 1, 0x2, 0x0}, {0x1003, 1, 1, 0x8, 0x0}, {0x1001, 2, 1, 0x6, 0x0},
        {0x1003, 2, 2, 0x8, 0x1},       {0x1000, 8, 2, 0xf, 0xf}, {0x1002, 7, 3, 0xc, 0x1}, {0x1001, 8, 3, 0xe, 0x1},
        {0x1000, 5, 2, 0xf, 0x1},       {0x1000, 6, 2, 0xf, 0x3}, {0x1000, 7, 2, 0xf, 0x7}, {0x1000, 256, 64, 0xf, 0xf},
        {0x1000, 4096, 1024, 0xf, 0xf},
    };
    pcie_pool_t *pool = pool_make();
    for (unsigned i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        pcie_tlp_t *tlp = pcie_tlp_read(pool, 0, 0, ROWS[i].address, ROWS[i].bytes);
        EXPECT_EQ(tlp->dwords, ROWS[i].dwords);
        EXPECT_EQ(tlp->first_be, ROWS[i].first_be);
        EXPECT_EQ(tlp->last_be, ROWS[i].last_be);
        EXPECT_EQ(pcie_tlp_first_byte(tlp), ROWS[i].address);
        EXPECT_EQ(pcie_tlp_byte_count(tlp), ROWS[i].bytes);
        pcie_tlp_unref(tlp);
    }
    EXPECT_EQ(pcie_pool_destroy(pool), 0);
}

TEST(Tlp, ReadsByteCountOfSparseByteEnablesFromFirstToLast)
{
    // Rows of table 2-38: first BE, last BE, Length in DWs, byte count.
    static const struct {
        uint8_t first_be, last_be;
        uint16_t dwords, count;
    } ROWS[] = {
        {0x9, 0x0, 1, 4},  {0x5, 0x0, 1, 3},  {0xa, 0x0, 1, 3},  {0x3, 0x0, 1, 2},  {0x6, 0x0, 1, 2},
        {0xc, 0x0, 1, 2},  {0x1, 0x0, 1, 1},  {0x2, 0x0, 1, 1},  {0x4, 0x0, 1, 1},  {0x8, 0x0, 1, 1},
        {0x0, 0x0, 1, 1},  {0x1, 0x8, 5, 20}, {0x1, 0x4, 5, 19}, {0x1, 0x2, 5, 18}, {0x1, 0x1, 5, 17},
        {0x2, 0x8, 5, 19}, {0x4, 0x2, 5, 16}, {0x8, 0x1, 5, 14},
    };
    pcie_pool_t *pool = pool_make();
    for (unsigned i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        pcie_tlp_t *tlp = pcie_tlp_blank(pool, PCIE_TLP_MRD, 0);
        tlp->first_be = ROWS[i].first_be;
        tlp->last_be = ROWS[i].last_be;
        tlp->dwords = ROWS[i].dwords;
        EXPECT_EQ(pcie_tlp_byte_count(tlp), ROWS[i].count);
        pcie_tlp_unref(tlp);
    }
    EXPECT_EQ(pcie_pool_destroy(pool), 0);
}

TEST(Tlp, CarriesThePayloadOfAnotherThatIsGone)
{
    pcie_pool_t *pool = pool_make();
    uint8_t bytes[64];
    for (unsigned i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 7 + 1);
    }
    pcie_tlp_t *read = pcie_tlp_read(pool, 0, 1, 0x1000, sizeof bytes);
    pcie_tlp_t *data = pcie_tlp_completion(read, 0, 0, sizeof bytes, bytes);

    pcie_tlp_t *write = pcie_tlp_write_shared(9, 0x2040, data);
    pcie_tlp_unref(data);
    pcie_tlp_t *other = pcie_tlp_write(pool, 0, 0x3000, sizeof bytes, NULL); // takes the free memory

    EXPECT_EQ(pcie_tlp_first_byte(write), 0x2040);
    EXPECT_EQ(pcie_tlp_byte_count(write), sizeof bytes);
    EXPECT_EQ(write->requester, 9);
    EXPECT_MEMEQ(pcie_tlp_data(write), bytes, sizeof bytes);
    pcie_tlp_unref(other);
    pcie_tlp_unref(write);
    pcie_tlp_unref(read);
    EXPECT_EQ(pcie_pool_destroy(pool), 0);
}

TEST(Tlp, TakesTheBytesOfTheSpecificationOnTheWire)
{
    pcie_pool_t *pool = pool_make();
    pcie_tlp_t *read = pcie_tlp_read(pool, 0, 1, 0x1000, 256);
    pcie_tlp_t *write = pcie_tlp_write(pool, 0, 0x1001, 4, NULL);
    pcie_tlp_t *data = pcie_tlp_completion(read, 0, 0, 64, NULL);
    pcie_tlp_t *error = pcie_tlp_error(read, 0, PCIE_CPL_UR);

    EXPECT_EQ(pcie_tlp_wire_bytes(read), 24);
    EXPECT_EQ(pcie_tlp_wire_bytes(write), 24 + 8);
    EXPECT_EQ(pcie_tlp_wire_bytes(data), 20 + 64);
    EXPECT_EQ(pcie_tlp_wire_bytes(error), 20);
    EXPECT_EQ(pcie_tlp_data_credits(read), 0);
    EXPECT_EQ(pcie_tlp_data_credits(write), 1);
    EXPECT_EQ(pcie_tlp_data_credits(data), 4);
    EXPECT_EQ(pcie_tlp_class(write), PCIE_POSTED);
    EXPECT_EQ(pcie_tlp_class(read), PCIE_NONPOSTED);
    EXPECT_EQ(pcie_tlp_class(error), PCIE_COMPLETION);

    pcie_tlp_unref(error);
    pcie_tlp_unref(data);
    pcie_tlp_unref(write);
    pcie_tlp_unref(read);
    EXPECT_EQ(pcie_pool_destroy(pool), 0);
}

TEST(Tlp, CompletionSaysWhichBytesItCarriesAndHowManyAreLeft)
{
    pcie_pool_t *pool = pool_make();
    pcie_tlp_t *request = pcie_tlp_read(pool, 0x1234, 7, 0x10000003e, 100);
    const uint8_t data[98] = {0xaa, 0xbb};

    pcie_tlp_t *tlp = pcie_tlp_completion(request, 0x42, 1, 65, data);
    EXPECT_EQ(tlp->requester, 0x1234);
    EXPECT_EQ(tlp->tag, 7);
    EXPECT_EQ(tlp->completer, 0x42);
    EXPECT_EQ(tlp->byte_count, 99);
    EXPECT_EQ(tlp->lower_address, 0x3f);
    EXPECT_EQ(tlp->dwords, 17);
    EXPECT_EQ(pcie_tlp_byte_count(tlp), 65);
    EXPECT_EQ(pcie_tlp_data(tlp)[3], 0xaa);
    EXPECT_EQ(pcie_tlp_data(tlp)[4], 0xbb);
    EXPECT_EQ(pcie_tlp_data(tlp)[0], 0);

    pcie_tlp_unref(tlp);
    pcie_tlp_unref(request);
    EXPECT_EQ(pcie_pool_destroy(pool), 0);
}

TEST(Tlp, ACopySharesThePayloadAndLeavesTheOriginal)
{
    pcie_pool_t *pool = pool_make();
    pcie_tlp_t *tlp = pcie_tlp_write(pool, 1, 0x1000, 8, "01234567");

    pcie_tlp_t *other = pcie_tlp_copy(tlp);
    other->address = 0x2000;
    EXPECT_EQ(pcie_tlp_data(other), pcie_tlp_data(tlp));
    EXPECT_EQ(tlp->address, 0x1000);
    pcie_tlp_unref(tlp);
    EXPECT_EQ(other->address, 0x2000);
    EXPECT_MEMEQ(pcie_tlp_data(other), "01234567", 8);

    pcie_tlp_unref(other);
    EXPECT_EQ(pcie_pool_destroy(pool), 0);
}

TEST(Pool, ReportsTlpsThatWereNotReturned)
{
    pcie_pool_t *pool = pool_make();
    for (unsigned i = 0; i < 1000; i++) {
        pcie_tlp_t *tlp = pcie_tlp_write(pool, 0, 0x1000, 1 + i * 4, NULL);
        if (i % 100 != 0) {
            pcie_tlp_unref(tlp);
        }
    }
    EXPECT_EQ(pcie_pool_live(pool), 10);
    EXPECT_EQ(pcie_pool_destroy(pool), 10);
}
