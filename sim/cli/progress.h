// The progress bar: on standard error, only on a terminal, and only once a run has lasted a second.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cli_progress {
    bool wanted;
    bool shown;
    uint64_t start_ms, drawn_ms; // of the real machine's clock, which reaches nothing but this bar
};

void cli_progress_init(struct cli_progress *progress, bool wanted);
// permille of the whole are done; label names what is being done.
void cli_progress_update(struct cli_progress *progress, unsigned permille, const char *label);
// Clears the line.
void cli_progress_fini(struct cli_progress *progress);

// The bar as it is drawn into a line of so many columns, for any width. Exposed for tests.
void cli_progress_line(char *line, unsigned size, unsigned columns, unsigned permille, const char *label);
