#include "attach_fixture.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void attach_fixture_init(struct attach_fixture *fixture)
{
    const char *const sets[] = {NULL};
    const struct scn_load_options load = {.configs_dir = TCASIM_SOURCE_DIR "/configs", .sets = sets};
    struct scn_messages messages = {0};
    *fixture = (struct attach_fixture){
        .options = {.library_directory = TCASIM_BINARY_DIR "/attached/lib", .wall_limit_ms = 20000, .together = true}};
    if (scn_load(TCASIM_SOURCE_DIR "/tests/support/pair.yaml", &load, &fixture->scenario, &messages) != SIM_OK) {
        FAIL("%s", messages.count > 0 ? messages.lines[0] : "pair.yaml");
        exit(1); // nothing can be tested
    }
    scn_messages_free(&messages);
}

void attach_fixture_fini(struct attach_fixture *fixture)
{
    // No process of a run may remain.
    EXPECT_LT(waitpid(-1, NULL, WNOHANG), 0);
    EXPECT_EQ(errno, ECHILD);
    for (uint32_t i = 0; i < fixture->count; i++) {
        (void)unlink(fixture->stdout_path[i]);
        free(fixture->argv[i][0]);
    }
    scn_free(fixture->scenario);
}

void attach_fixture_add(struct attach_fixture *fixture, uint32_t node, const char *program, ...)
{
    va_list args;
    uint32_t index = fixture->count++;
    char **argv = fixture->argv[index];
    if (asprintf(&argv[0], "%s%s", program[0] == '/' ? "" : TCASIM_BINARY_DIR "/attached/attached_", program) < 0) {
        FAIL("no memory");
    }
    va_start(args, program);
    for (unsigned i = 1; i < 8; i++) {
        argv[i] = va_arg(args, char *);
        if (argv[i] == NULL) {
            break;
        }
    }
    va_end(args);
    snprintf(fixture->stdout_path[index], sizeof fixture->stdout_path[index], "/tmp/tcasim-test-%d-%u", (int)getpid(),
             index);
    fixture->programs[index] =
        (struct attach_program){.node = node, .argv = argv, .stdout_path = fixture->stdout_path[index]};
}

void attach_fixture_run(struct attach_fixture *fixture)
{
    fixture->options.programs = fixture->programs;
    fixture->options.program_count = fixture->count;
    if (attach_run(fixture->scenario, &fixture->options, &fixture->result) != SIM_OK) {
        FAIL("%s", fixture->result.text);
    }
}

static uint64_t real_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void attach_fixture_run_before_limit(struct attach_fixture *fixture)
{
    fixture->options.wall_limit_ms = 600000; // no busy machine takes half of this for what ends by itself
    uint64_t began_ms = real_ms();
    attach_fixture_run(fixture);
    EXPECT_LT(real_ms() - began_ms, fixture->options.wall_limit_ms / 2);
}

char *attach_fixture_output(const struct attach_fixture *fixture, uint32_t program)
{
    char *text = calloc(1, 1 << 20);
    FILE *file = fopen(fixture->stdout_path[program], "r");
    if (file != NULL && text != NULL) {
        (void)fread(text, 1, (1 << 20) - 1, file);
        fclose(file);
    }
    return text;
}
