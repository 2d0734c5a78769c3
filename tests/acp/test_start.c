// How programs are started: acprun's options, and the arguments that the library takes from a program's.
#include <errno.h>

#include "crew.h"
#include "verbs-shim/acp/acprun.h"

static char **arguments_copy(const char *const *from, char *to[16])
{
    for (unsigned i = 0; i < 16; i++) {
        to[i] = (char *)(uintptr_t)from[i];
    }
    return to;
}

TEST(AcpStart, OptionsOfAcprunEndAtTwoDashes)
{
    static const char *const given[16] = {"acprun", "-n", "2", "--", "-v", "input"};
    struct acprun_options options;
    char *argv[16];
    acprun_options_read(6, arguments_copy(given, argv), &options);
    EXPECT_EQ(options.ranks, 2);
    EXPECT_FALSE(options.verbose); // it is the program's
    EXPECT_STREQ(options.program[0], "-v");
    EXPECT_STREQ(options.program[1], "input");
    EXPECT_NULL(options.program[2]);
}

TEST(AcpStart, OptionsOfAcprunEndAtTheProgram)
{
    static const char *const given[16] = {"acprun", "-v", "-n", "2", "program", "-v"};
    struct acprun_options options;
    char *argv[16];
    acprun_options_read(6, arguments_copy(given, argv), &options);
    EXPECT_TRUE(options.verbose);
    EXPECT_STREQ(options.program[0], "program");
    EXPECT_STREQ(options.program[1], "-v");
    EXPECT_NULL(options.program[2]);
}

// C17 5.1.2.2.1: argv[argc] is a null pointer.
TEST(AcpStart, AProgramHasItsOwnArgumentsAndNoMore)
{
    static const char *const given[16] = {"program", "--acp-myrank", "1", "-x", "--acp-nprocs", "2", "input"};
    struct acp_boot boot;
    char *all[16], **argv = arguments_copy(given, all);
    int argc = 7;
    EXPECT_EQ((uint64_t)acp_boot_from_arguments(&argc, &argv, &boot), (uint64_t)-ENOENT); // without acprun's address
    EXPECT_EQ(argc, 3);
    EXPECT_STREQ(argv[0], "program");
    EXPECT_STREQ(argv[1], "-x");
    EXPECT_STREQ(argv[2], "input");
    EXPECT_NULL(argv[3]);
}
