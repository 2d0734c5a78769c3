#include "stage.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void stage_init(struct stage *stage)
{
    const char *const sets[] = {NULL};
    const struct scn_load_options load = {.configs_dir = TCASIM_SOURCE_DIR "/configs", .sets = sets};
    struct scn_messages messages = {0};
    *stage = (struct stage){
        .options = {.library_directory = TCASIM_BINARY_DIR "/attached/lib", .wall_limit_ms = 20000, .together = true}};
    if (scn_load(TCASIM_SOURCE_DIR "/tests/attach/pair.yaml", &load, &stage->scenario, &messages) != SIM_OK) {
        FAIL("%s", messages.count > 0 ? messages.lines[0] : "pair.yaml");
        exit(1); // nothing can be tested
    }
    scn_messages_free(&messages);
}

void stage_fini(struct stage *stage)
{
    // Nothing of a run stays.
    EXPECT_TRUE(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    for (uint32_t i = 0; i < stage->count; i++) {
        (void)unlink(stage->stdout_path[i]);
        free(stage->argv[i][0]);
    }
    scn_free(stage->scenario);
}

void stage_add(struct stage *stage, uint32_t node, const char *program, ...)
{
    va_list args;
    uint32_t index = stage->count++;
    char **argv = stage->argv[index];
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
    snprintf(stage->stdout_path[index], sizeof stage->stdout_path[index], "/tmp/tcasim-test-%d-%u", (int)getpid(),
             index);
    stage->programs[index] =
        (struct attach_program){.node = node, .argv = argv, .stdout_path = stage->stdout_path[index]};
}

void stage_run(struct stage *stage)
{
    stage->options.programs = stage->programs;
    stage->options.program_count = stage->count;
    if (attach_run(stage->scenario, &stage->options, &stage->result) != SIM_OK) {
        FAIL("%s", stage->result.text);
    }
}

static uint64_t real_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void stage_run_before_limit(struct stage *stage)
{
    uint64_t began_ms = real_ms();
    stage_run(stage);
    EXPECT_TRUE(real_ms() - began_ms < stage->options.wall_limit_ms / 2);
}

char *stage_output(const struct stage *stage, uint32_t program)
{
    char *text = calloc(1, 1 << 20);
    FILE *file = fopen(stage->stdout_path[program], "r");
    if (file != NULL && text != NULL) {
        (void)fread(text, 1, (1 << 20) - 1, file);
        fclose(file);
    }
    return text;
}
