// Reads of the time stamp counter in code: which bytes are one, and that they are overwritten in a mapped file.
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/test.h"
#include "verbs-shim/world/tsc_rewrite.h"

enum { PAGE_BYTES = 4096, CODE_AT = 128, HALT = 0xf4 };

// A page of `push %rbx; mov %rdi,%rbx`, with this code at CODE_AT.
static void page_fill(unsigned char *page, const unsigned char *code, size_t bytes)
{
    static const unsigned char around[] = {0x53, 0x48, 0x89, 0xfb};
    for (size_t i = 0; i < PAGE_BYTES; i++) {
        page[i] = around[i % sizeof around];
    }
    memcpy(page + CODE_AT, code, bytes);
}

static unsigned read_bytes(const unsigned char *code, size_t bytes, size_t offset)
{
    unsigned char page[PAGE_BYTES];
    page_fill(page, code, bytes);
    return world_tsc_read_bytes(page, page + sizeof page, page + CODE_AT + offset);
}

TEST(WorldTscRewrite, FindsBothInstructions)
{
    static const unsigned char reads[] = {0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x0f, 0x01, 0xf9, 0x90};
    EXPECT_EQ(read_bytes(reads, sizeof reads, 0), 2);
    EXPECT_EQ(read_bytes(reads, sizeof reads, 6), 3);
    EXPECT_EQ(read_bytes(reads, sizeof reads, 2), 0);
}

TEST(WorldTscRewrite, LeavesOtherInstructionsWithTheseBytesAlone)
{
    static const struct {
        const char *what;
        unsigned char code[12];
        size_t offset;
    } others[] = {
        {"mov $0x310f, %eax", {0xb8, 0x0f, 0x31, 0, 0, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, 1},
        {"movabs $0x310f, %rax", {0x48, 0xb8, 0x0f, 0x31, 0, 0, 0, 0, 0, 0, 0x90, 0x90}, 2},
        {"lea 0x310f(%rip), %rdi", {0x48, 0x8d, 0x3d, 0x0f, 0x31, 0, 0, 0x90, 0x90, 0x90, 0x90, 0x90}, 3},
        {"mov %rax, 0xf9010f(%rip)", {0x48, 0x89, 0x05, 0x0f, 0x01, 0xf9, 0, 0x90, 0x90, 0x90, 0x90, 0x90}, 3},
        {"xgetbv", {0x0f, 0x01, 0xd0, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, 0},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        TEST_TRACE("%s", others[i].what);
        EXPECT_EQ(read_bytes(others[i].code, sizeof others[i].code, others[i].offset), 0);
    }
}

TEST(WorldTscRewrite, ReadsNothingBehindTheEndOfTheCode)
{
    unsigned char page[PAGE_BYTES];
    static const unsigned char read[] = {0x0f, 0x31};
    page_fill(page, NULL, 0);
    memcpy(page + PAGE_BYTES - 2, read, sizeof read);
    EXPECT_EQ(world_tsc_read_bytes(page, page + PAGE_BYTES, page + PAGE_BYTES - 2), 0);
    EXPECT_EQ(world_tsc_read_bytes(page, page + PAGE_BYTES, page + PAGE_BYTES - 1), 0);
}

// In a child, since all code of the process is overwritten, and nobody handles the faults. Its status: 0, or which check
// has failed.
static int child_overwrites(void)
{
    static const unsigned char reads[] = {0x0f, 0x31, 0x0f, 0x01, 0xf9, 0xb8, 0x0f, 0x31, 0, 0, 0xc3};
    unsigned char page[PAGE_BYTES];
    char name[] = "/tmp/tcasim-test-XXXXXX";
    int fd = mkstemp(name);
    page_fill(page, reads, sizeof reads);
    bool written = fd >= 0 && unlink(name) == 0 && write(fd, page, sizeof page) == PAGE_BYTES;
    unsigned char *code = written ? mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (code == MAP_FAILED || world_tsc_rewritten_bytes((uintptr_t)code + CODE_AT) != 0) {
        return 1;
    }
    world_tsc_rewrite_start();
    static const unsigned char halts[] = {HALT, 0x90, HALT, 0x90, 0x90, 0xb8, 0x0f, 0x31, 0, 0, 0xc3};
    if (memcmp(code + CODE_AT, halts, sizeof halts) != 0) {
        return 2;
    }
    uintptr_t at = (uintptr_t)code + CODE_AT;
    bool known = world_tsc_rewritten_bytes(at) == 2 && world_tsc_rewritten_bytes(at + 2) == 3 &&
                 world_tsc_rewritten_bytes(at + 6) == 0;
    (void)signal(SIGSEGV, SIG_DFL); // not a sanitizer's
    code[0] = 0;                    // must not be possible
    return known ? 4 : 3;
}

TEST(WorldTscRewrite, OverwritesTheCodeOfMappedFilesWhichStaysProtected)
{
    pid_t child = fork();
    if (child == 0) {
        _exit(child_overwrites());
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : 0, 0);
    EXPECT_EQ(WIFSIGNALED(status) ? WTERMSIG(status) : 0, SIGSEGV);
}
