// What is to be tidied up when the user stops the program (SIGINT, SIGTERM, SIGHUP) or stops reading it (SIGPIPE):
// half-written files go, the line of the progress bar is cleared, the user is told (SIGPIPE: not), and the program ends
// by the signal, which a shell shows as 128 and its number (130 for Ctrl-C).
#pragma once

#include <stdbool.h>

void cli_interrupt_init(void);

// What is lost if the program is stopped now, for the user: a static text, NULL for nothing.
void cli_interrupt_loss_set(const char *text);
#define CLI_LOSS_OF_SCENARIO "the scenario that was running leaves no results"

// A trace, and for each series and node a waveform and its scratch file.
#define CLI_INTERRUPT_SLOTS 1025

// In a child: signals end it at once, and what its parent registered is not its own to remove.
void cli_interrupt_child(void);
// Ends a child without its parent's cleaning up. Does not return.
void cli_interrupt_leave(int status);

// Registers a file that is being written; NULL: none. The path must stay valid until it is taken back.
void cli_interrupt_file_set(unsigned slot, const char *path);

// A progress bar stands in the last line of standard error.
void cli_interrupt_line_set(bool shown);

// Between hold and release a signal waits; for the moment in which the results are written.
void cli_interrupt_hold(void);
void cli_interrupt_release(void);
