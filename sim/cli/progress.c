#include "sim/cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/cli/interrupt.h"
#include "sim/kernel/terminal.h"

#define QUIET_MS  1000
#define REDRAW_MS 100
#define BAR_MAX   40
#define LINE_SIZE 256

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void cli_progress_init(struct cli_progress *progress, bool wanted)
{
    const char *terminal = getenv("TERM");
    bool able = terminal != NULL && strcmp(terminal, "dumb") != 0 && isatty(STDERR_FILENO) == 1;
    *progress = (struct cli_progress){.wanted = wanted && able, .start_ms = now_ms()};
}

void cli_progress_line(char *line, unsigned size, unsigned columns, unsigned permille, const char *label)
{
    char bar[BAR_MAX + 1];
    line[0] = '\0';
    // "100 % [" and "] " and the label; parts that do not fit are left out, the label first.
    if (columns < 6) {
        return;
    }
    unsigned percent = permille > 1000 ? 100 : permille / 10;
    if (columns < 24) {
        snprintf(line, size, "%3u %%", percent);
        return;
    }
    unsigned length = columns / 2 < BAR_MAX ? columns / 2 : BAR_MAX;
    memset(bar, '.', length);
    memset(bar, '#', length * percent / 100);
    bar[length] = '\0';
    int room = (int)columns - (int)length - 10; // one column stays free, because a full line would wrap
    snprintf(line, size, "%3u %% [%s] %.*s", percent, bar, room > 0 ? room : 0, label);
}

void cli_progress_label(char *text, unsigned size, uint64_t elapsed_ms, unsigned permille, const char *label)
{
    uint64_t left_s = permille > 0 && permille < 1000 ? elapsed_ms * (1000 - permille) / permille / 1000 + 1 : 0;
    if (left_s == 0) {
        snprintf(text, size, "%s", label);
    } else if (left_s < 100) {
        snprintf(text, size, "%u s left  %s", (unsigned)left_s, label);
    } else if (left_s < 6000) {
        snprintf(text, size, "%u min left  %s", (unsigned)(left_s + 59) / 60, label);
    } else {
        snprintf(text, size, "%u h left  %s", (unsigned)(left_s + 3599) / 3600, label);
    }
}

void cli_progress_update(struct cli_progress *progress, unsigned permille, const char *label)
{
    if (!progress->wanted) {
        return;
    }
    uint64_t now = now_ms();
    if (now - progress->start_ms < QUIET_MS || now - progress->drawn_ms < REDRAW_MS) {
        return;
    }
    char line[LINE_SIZE], text[LINE_SIZE];
    cli_progress_label(text, sizeof text, now - progress->start_ms, permille, label);
    cli_progress_line(line, sizeof line, sim_terminal_columns(stderr), permille, text);
    cli_interrupt_line_set(true);
    progress->shown = true;
    progress->drawn_ms = now;
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
}

void cli_progress_fini(struct cli_progress *progress)
{
    if (progress->shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        cli_interrupt_line_set(false);
        progress->shown = false;
    }
}
