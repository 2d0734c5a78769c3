// Layouts in memory as the generated header packs them; values from docs/decisions/0005-whole-board.md.
#include "rtl/peach2_regs.h"
#include "tests/shim/test.h"

// Bits 191:176 hold bits 15:0 of the pitch, bits 235:232 its bits 19:16.
TEST(Descriptor, HoldsTheSourcePitchInTwoParts)
{
    const struct peach2_descriptor written = {.source_pitch = 0xabcde};
    uint64_t words[PEACH2_DESCRIPTOR_WORDS];
    peach2_descriptor_pack(&written, words);
    EXPECT_EQ(words[0], 0);
    EXPECT_EQ(words[1], 0);
    EXPECT_EQ(words[2], UINT64_C(0xbcde) << 48);
    EXPECT_EQ(words[3], UINT64_C(0xa) << 40);
    const struct peach2_descriptor read = peach2_descriptor_unpack(words);
    EXPECT_EQ(read.source_pitch, 0xabcde);
    EXPECT_EQ(read.width, 0);
    EXPECT_EQ(read.next, 0);
    EXPECT_EQ(read.destination_pitch, 0);
}
