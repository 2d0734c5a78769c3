// The progress bar: on standard error, only on a terminal, and only after a run has lasted a second.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cli_progress {
    bool wanted;
    bool shown;
    uint64_t start_ms, drawn_ms; // of the real machine's clock, which affects only this bar
};

void cli_progress_init(struct cli_progress *progress, bool wanted);
// permille: the finished part of the whole; label names the current work.
void cli_progress_update(struct cli_progress *progress, unsigned permille, const char *label);
// Clears the line.
void cli_progress_fini(struct cli_progress *progress);

// The time that is left if the rest is as fast as what is finished, and the label. Exposed for tests.
void cli_progress_label(char *text, unsigned size, uint64_t elapsed_ms, unsigned permille, const char *label);
// The bar in a line of so many columns, for any width. Exposed for tests.
void cli_progress_line(char *line, unsigned size, unsigned columns, unsigned permille, const char *label);
