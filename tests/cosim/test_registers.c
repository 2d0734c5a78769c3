// The register file and the internal memory through BAR 0.
#include <string.h>

#include "tests/cosim/chip.h"

enum { SCRATCH = PEACH2_CHIP_BASE + PEACH2_CHIP_SCRATCH, MEMORY_BYTES = 32768 };

TEST(Registers, NameTheChip)
{
    struct chip *chip = chip_create(NULL);
    EXPECT_EQ(chip_get32(chip, PEACH2_CHIP_BASE + PEACH2_CHIP_ID), PEACH2_CHIP_ID_RESET);
    EXPECT_EQ(chip_get32(chip, PEACH2_CHIP_BASE + PEACH2_CHIP_VERSION), PEACH2_CHIP_VERSION_RESET);
    chip_destroy(chip);
}

TEST(Registers, HonourByteEnables)
{
    struct chip *chip = chip_create(NULL);
    const uint8_t part[2] = {0xaa, 0xbb};
    chip_set32(chip, SCRATCH, 0x11223344);
    chip_write(chip, PORT_N, BAR_REGISTERS, SCRATCH + 1, sizeof part, part);
    EXPECT_EQ(chip_get32(chip, SCRATCH), 0x11bbaa44);
    chip_destroy(chip);
}

TEST(Registers, ReadSingleBytes)
{
    struct chip *chip = chip_create(NULL);
    chip_set32(chip, SCRATCH, 0x11223344);
    for (uint32_t i = 0; i < 4; i++) {
        uint8_t byte = 0;
        chip_read(chip, BAR_REGISTERS, SCRATCH + i, 1, &byte);
        EXPECT_EQ(byte, 0x44 - 0x11 * i);
    }
    chip_destroy(chip);
}

// All writable registers, in one write of many DWs and in one read of as many.
TEST(Registers, TakeAndGiveSeveralDwordsAtOnce)
{
    struct chip *chip = chip_create(NULL);
    const uint32_t base = PEACH2_DMAC_BASE + 2 * PEACH2_DMAC_STRIDE;
    uint32_t written[13], read[13];
    for (uint32_t i = 0; i < 13; i++) {
        written[i] = 0x01010101 * (i + 1);
    }
    written[PEACH2_DMAC_CONTROL / 4] = 0x36; // every field except START
    chip_write(chip, PORT_N, BAR_REGISTERS, base, sizeof written, written);
    chip_read(chip, BAR_REGISTERS, base, sizeof read, (uint8_t *)read);
    EXPECT_MEMEQ(read, written, sizeof read);
    chip_destroy(chip);
}

TEST(Registers, KeepTheirNeighboursUnchanged)
{
    struct chip *chip = chip_create(NULL);
    for (uint32_t k = 0; k < PEACH2_ROUTE_COUNT; k++) {
        uint32_t route = PEACH2_ROUTE_BASE + k * PEACH2_ROUTE_STRIDE;
        chip_set64(chip, route + PEACH2_ROUTE_MASK, UINT64_C(0x1111111111111111) * (3 * k + 1));
        chip_set64(chip, route + PEACH2_ROUTE_LOWER, UINT64_C(0x1111111111111111) * (3 * k + 2));
        chip_set64(chip, route + PEACH2_ROUTE_UPPER, UINT64_C(0x1111111111111111) * (3 * k + 3));
    }
    for (uint32_t k = 0; k < PEACH2_ROUTE_COUNT; k++) {
        uint64_t read[3];
        chip_read(chip, BAR_REGISTERS, PEACH2_ROUTE_BASE + k * PEACH2_ROUTE_STRIDE, sizeof read, (uint8_t *)read);
        for (uint32_t i = 0; i < 3; i++) {
            EXPECT_EQ(read[i], (UINT64_C(0x1111111111111111) * (3 * k + i + 1)) & UINT64_C(0x7ffffff000));
        }
    }
    chip_destroy(chip);
}

TEST(Registers, TakeAccessesBackToBack)
{
    enum { COUNT = 40 };
    struct chip *chip = chip_create(NULL);
    for (uint32_t i = 0; i < COUNT; i++) {
        chip_send(chip, PORT_N, BAR_REGISTERS, pcie_tlp_write(chip->pool, 1, SCRATCH, sizeof i, &i));
        chip_send(chip, PORT_N, BAR_REGISTERS, pcie_tlp_write(chip->pool, 1, PEACH2_MEMORY_BASE + 4 * i + 1, 2, "ab"));
        chip_send(chip, PORT_N, BAR_REGISTERS, pcie_tlp_read(chip->pool, 1, (uint8_t)i, SCRATCH, 4));
    }
    chip_run(chip);
    for (uint32_t i = 0; i < COUNT; i++) {
        pcie_tlp_t *tlp = chip_next(chip, PORT_N);
        ASSERT_NOT_NULL(tlp);
        EXPECT_EQ(tlp->tag, i);
        EXPECT_MEMEQ(pcie_tlp_data(tlp), &i, sizeof i);
    }
    chip_destroy(chip);
}

TEST(Registers, IgnoreWritesToWhatIsReadOnly)
{
    struct chip *chip = chip_create(NULL);
    chip_set32(chip, PEACH2_CHIP_BASE + PEACH2_CHIP_ID, 0);
    EXPECT_EQ(chip_get32(chip, PEACH2_CHIP_BASE + PEACH2_CHIP_ID), PEACH2_CHIP_ID_RESET);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_REFUSED_WRITES), 0);
    chip_destroy(chip);
}

TEST(Registers, RefuseAndCountWritesBeyondTheMap)
{
    struct chip *chip = chip_create(NULL);
    chip_set32(chip, 0x0f00, 1);  // no register there
    chip_set32(chip, 0x1000, 1);  // after the register file
    chip_set32(chip, 0x18000, 1); // after the memory
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_REFUSED_WRITES), 3);
    chip_destroy(chip);
}

TEST(Registers, CountARefusedWriteOnlyOnce)
{
    struct chip *chip = chip_create(NULL);
    chip_set32(chip, 0x0f00, 1); // no register there
    for (uint32_t i = 0; i < 3; i++) {
        chip_set32(chip, SCRATCH, i);
    }
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_REFUSED_WRITES), 1);
    chip_destroy(chip);
}

// A write of the field is a pulse; the other fields of CONTROL are kept.
TEST(Registers, ReadAFieldThatIsOnlyWrittenAsZero)
{
    struct chip *chip = chip_create(NULL);
    const uint32_t control = PEACH2_DMAC_BASE + PEACH2_DMAC_CONTROL, kept = PEACH2_DMAC_CONTROL_NOTIFY_REMOTE_MASK;
    chip_set32(chip, control, PEACH2_DMAC_CONTROL_START_MASK | kept);
    EXPECT_EQ(chip_get32(chip, control), kept);
    chip_destroy(chip);
}

static void expect_unsupported(struct chip *chip, unsigned port, unsigned bar, uint64_t address, uint32_t bytes)
{
    chip_send(chip, port, bar, pcie_tlp_read(chip->pool, 0x77, 0x55, address, bytes));
    chip_run(chip);
    pcie_tlp_t *tlp = chip_next(chip, port);
    ASSERT_NOT_NULL(tlp);
    EXPECT_EQ(tlp->kind, PCIE_TLP_CPL);
    EXPECT_EQ(tlp->cpl_status, PCIE_CPL_UR);
    EXPECT_EQ(tlp->requester, 0x77);
    EXPECT_EQ(tlp->tag, 0x55);
    EXPECT_EQ(tlp->completer, REQUESTER_CHIP);
    EXPECT_EQ(tlp->byte_count, bytes);
    EXPECT_EQ(tlp->lower_address, address & 0x7f);
    EXPECT_EQ(chip_left(chip), 0);
}

TEST(Registers, AnswerReadsBeyondTheMapWithUnsupportedRequest)
{
    struct chip *chip = chip_create(NULL);
    expect_unsupported(chip, PORT_N, BAR_REGISTERS, 0x0f00, 4);
    expect_unsupported(chip, PORT_N, BAR_REGISTERS, 0x1004, 8);
    expect_unsupported(chip, PORT_N, BAR_REGISTERS, 0x18000, 64);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_UNSUPPORTED_READS), 3);
    chip_destroy(chip);
}

TEST(Registers, AnswerReadsOfUpTo16DwordsAndRefuseLongerOnes)
{
    struct chip *chip = chip_create(NULL);
    uint8_t data[64];
    chip_read(chip, BAR_REGISTERS, PEACH2_DMAC_BASE, sizeof data, data);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_UNSUPPORTED_READS), 0);
    expect_unsupported(chip, PORT_N, BAR_REGISTERS, PEACH2_DMAC_BASE, 68);
    chip_destroy(chip);
}

TEST(Registers, AnswerReadsFromOtherBoardsAndOfOtherNodesWithUnsupportedRequest)
{
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    expect_unsupported(chip, PORT_E, 0, chip_window(OWN_NODE, BLOCK_BOARD, 0), 4);
    expect_unsupported(chip, PORT_W, 0, chip_window(OWN_NODE, BLOCK_HOST, 0x100), 128);
    expect_unsupported(chip, PORT_S, 0, 0x123, 1);
    expect_unsupported(chip, PORT_N, BAR_WINDOW, chip_window(3, BLOCK_HOST, 0), 4);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_UNSUPPORTED_READS), 4);
    chip_destroy(chip);
}

TEST(Registers, AreReachedThroughTheWindowFromTheOwnHost)
{
    struct chip *chip = chip_create(NULL);
    uint32_t value = 0xcafe, read = 0;
    chip_join(chip);
    chip_write(chip, PORT_N, BAR_WINDOW, chip_window(OWN_NODE, BLOCK_BOARD, SCRATCH), 4, &value);
    chip_read(chip, BAR_WINDOW, chip_window(OWN_NODE, BLOCK_BOARD, SCRATCH), 4, (uint8_t *)&read);
    EXPECT_EQ(read, value);
    chip_destroy(chip);
}

TEST(Registers, RefuseAndCountWritesFromOtherBoards)
{
    struct chip *chip = chip_create(NULL);
    const uint32_t value = 0xbad;
    chip_join(chip);
    for (unsigned port = PORT_E; port <= PORT_S; port++) {
        chip_write(chip, port, 0, chip_window(OWN_NODE, BLOCK_BOARD, SCRATCH), 4, &value);
    }
    EXPECT_EQ(chip_get32(chip, SCRATCH), 0);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_REFUSED_WRITES), 3);
    chip_destroy(chip);
}

static void memory_random(const struct cosim_peach2_config *config, uint64_t state)
{
    struct chip *chip = chip_create(config);
    static uint8_t expected[MEMORY_BYTES], actual[PCIE_PAYLOAD_MAX];
    memset(expected, 0, sizeof expected);
    for (unsigned round = 0; round < 300; round++) {
        uint8_t data[PCIE_PAYLOAD_MAX];
        uint32_t limit = round % 2 == 0 ? 64 : PCIE_PAYLOAD_MAX;
        uint32_t offset = chip_random(&state) % MEMORY_BYTES;
        uint32_t room = 4096 - offset % 4096;
        uint32_t bytes = 1 + chip_random(&state) % (room < limit ? room : limit);
        if (chip_random(&state) % 2 == 0) {
            chip_fill(&state, data, bytes);
            memcpy(expected + offset, data, bytes);
            chip_write(chip, PORT_N, BAR_REGISTERS, PEACH2_MEMORY_BASE + offset, bytes, data);
        } else {
            chip_read(chip, BAR_REGISTERS, PEACH2_MEMORY_BASE + offset, bytes, actual);
            EXPECT_MEMEQ(actual, expected + offset, bytes);
        }
    }
    for (uint32_t offset = 0; offset < MEMORY_BYTES; offset += 4096) {
        chip_read(chip, BAR_REGISTERS, PEACH2_MEMORY_BASE + offset, 4096, actual);
        EXPECT_MEMEQ(actual, expected + offset, 4096);
    }
    EXPECT_EQ(chip_left(chip), 0);
    chip_destroy(chip);
}

TEST(Memory, HoldsWritesOfEveryLengthAndOffset)
{
    memory_random(NULL, 11);
}

TEST(Memory, AnswersInCompletionsOfTheSmallestPayloadSize)
{
    struct cosim_peach2_config config = chip_config();
    config.mps_bytes = 128;
    memory_random(&config, 12);
}

TEST(Memory, AnswersAPageInOneCompletionOfTheLargestPayloadSize)
{
    struct cosim_peach2_config config = chip_config();
    uint8_t data[4096];
    config.mps_bytes = 4096;
    struct chip *chip = chip_create(&config);
    chip_read(chip, BAR_REGISTERS, PEACH2_MEMORY_BASE, sizeof data, data);
    EXPECT_EQ(chip->ports[PORT_N].count, 1);
    chip_destroy(chip);
}

TEST(Memory, SplitsCompletionsAtMultiplesOfThePayloadSize)
{
    struct chip *chip = chip_create(NULL);
    uint8_t data[600];
    chip_read(chip, BAR_REGISTERS, PEACH2_MEMORY_BASE + 200, sizeof data, data);
    ASSERT_EQ(chip->ports[PORT_N].count, 4); // 56, 256, 256, 32
    EXPECT_EQ(chip->ports[PORT_N].left[0].tlp->dwords, 14);
    EXPECT_EQ(chip->ports[PORT_N].left[1].tlp->dwords, 64);
    EXPECT_EQ(chip->ports[PORT_N].left[3].tlp->dwords, 8);
    chip_destroy(chip);
}

TEST(Memory, TakesWritesFromOtherBoards)
{
    struct chip *chip = chip_create(NULL);
    const uint8_t data[5] = {9, 8, 7, 6, 5};
    uint8_t read[7];
    chip_join(chip);
    chip_write(chip, PORT_W, 0, chip_window(OWN_NODE, BLOCK_BOARD, PEACH2_MEMORY_BASE + 0x103), sizeof data, data);
    chip_read(chip, BAR_REGISTERS, PEACH2_MEMORY_BASE + 0x102, sizeof read, read);
    EXPECT_MEMEQ(read, ((uint8_t[]){0, 9, 8, 7, 6, 5, 0}), sizeof read);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_REFUSED_WRITES), 0);
    chip_destroy(chip);
}
