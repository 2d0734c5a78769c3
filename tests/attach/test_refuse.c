// Programs that cannot be attached are refused with a reason, before anything is started.
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/attach_fixture.h"
#include "verbs-shim/attach/protocol.h"

static void expect_refused(const void *head, size_t bytes, mode_t mode, const char *reason)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/tcasim-refused-%d", (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(write(fd, head, bytes), bytes);
    EXPECT_EQ(fchmod(fd, mode), 0);
    close(fd);
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 0, path, NULL);
    fixture.options.programs = fixture.programs;
    fixture.options.program_count = 1;
    EXPECT_EQ(attach_run(fixture.scenario, &fixture.options, &fixture.result), SIM_ERR_UNSUPPORTED);
    EXPECT_CONTAINS(fixture.result.text, path);
    EXPECT_CONTAINS(fixture.result.text, reason);
    attach_fixture_fini(&fixture);
    (void)unlink(path);
}

static Elf64_Ehdr header_make(void)
{
    Elf64_Ehdr header = {.e_machine = EM_X86_64, .e_phoff = sizeof header, .e_phentsize = sizeof(Elf64_Phdr)};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    return header;
}

TEST(AttachedRefusal, NamesStaticPrograms)
{
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr part;
    } file = {header_make(), {.p_type = PT_LOAD}};
    file.header.e_phnum = 1;
    expect_refused(&file, sizeof file, 0700, "statically linked");
}

TEST(AttachedRefusal, NamesProgramsOf32Bits)
{
    Elf64_Ehdr header = header_make();
    header.e_ident[EI_CLASS] = ELFCLASS32;
    expect_refused(&header, sizeof header, 0700, "no 64-bit program");
}

TEST(AttachedRefusal, NamesProgramsWithTheRightsOfAnother)
{
    const char script[] = "#!/bin/sh\n";
    expect_refused(script, sizeof script - 1, S_ISUID | 0700, "set-uid");
}

static void file_make(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "w");
    ASSERT_NOT_NULL(file);
    (void)fwrite(data, bytes, 1, file);
    fclose(file);
    EXPECT_EQ(chmod(path, 0700), 0);
}

// A script whose interpreter is a script, and so on: so many of them before the program.
static void expect_found_behind(unsigned scripts)
{
    char paths[4][64], script[128];
    const Elf64_Ehdr header = header_make();
    for (unsigned i = 0; i < scripts; i++) {
        snprintf(paths[i], sizeof paths[i], "/tmp/tcasim-interpreter-%d-%u", (int)getpid(), i);
        if (i == 0) {
            file_make(paths[i], &header, sizeof header);
        } else {
            snprintf(script, sizeof script, "#!%s\n", paths[i - 1]);
            file_make(paths[i], script, strlen(script));
        }
    }
    snprintf(script, sizeof script, "#! %s -x\n", paths[scripts - 1]);
    expect_refused(script, strlen(script), 0700, "statically linked");
    for (unsigned i = 0; i < scripts; i++) {
        (void)unlink(paths[i]);
    }
}

// As many levels as execve(2) allows.
TEST(AttachedRefusal, LooksAtTheInterpretersOfScripts)
{
    for (unsigned scripts = 1; scripts <= 4; scripts++) {
        TEST_TRACE("%u scripts", scripts);
        expect_found_behind(scripts);
    }
}

static void expect_stranger_refused(size_t message_bytes)
{
    struct attach_fixture fixture;
    char bytes[16];
    snprintf(bytes, sizeof bytes, "%zu", message_bytes);
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 0, "stranger", bytes, NULL);
    attach_fixture_run(&fixture);
    char *text = attach_fixture_output(&fixture, 0);
    EXPECT_STREQ(text, "0 " ATTACH_OTHER_BUILD "\n");
    free(text);
    attach_fixture_fini(&fixture);
}

TEST(AttachedRefusal, NamesDebuggersUnlessTheRunIsFunctional)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 0, "/nowhere/gdb", NULL);
    fixture.options.programs = fixture.programs;
    fixture.options.program_count = 1;
    EXPECT_EQ(attach_run(fixture.scenario, &fixture.options, &fixture.result), SIM_ERR_UNSUPPORTED);
    EXPECT_CONTAINS(fixture.result.text, "--functional");
    fixture.options.functional = true;
    EXPECT_NE(attach_run(fixture.scenario, &fixture.options, &fixture.result), SIM_ERR_UNSUPPORTED);
    attach_fixture_fini(&fixture);
}

TEST(AttachedRefusal, TellsALibraryOfAnotherBuildWhatItIs)
{
    expect_stranger_refused(sizeof(struct attach_hello));
    expect_stranger_refused(16);
    expect_stranger_refused(sizeof(struct attach_hello) + 64);
}
