// What is cleaned up when the user stops the program (SIGINT, SIGTERM, SIGHUP) or stops reading its output (SIGPIPE):
// half-written files are removed, the progress bar is cleared, a message is printed (not for SIGPIPE), and the program
// ends by the signal, which a shell shows as 128 plus its number (130 for Ctrl-C).
#pragma once

#include <stdbool.h>

void cli_interrupt_init(void);

// What is lost if the program is stopped now, for the message: a static text, NULL for nothing.
void cli_interrupt_loss_set(const char *text);

// A slot for a trace, and for a waveform and its scratch file of each series and node.
#define CLI_INTERRUPT_SLOTS 1025

// In a child: signals end it at once. It does not remove the files that its parent registered.
void cli_interrupt_child(void);
// Ends a child without its parent's clean-up. Does not return.
void cli_interrupt_leave(int status);

// Registers a file that is being written; NULL: none. The path must stay valid until the slot is reset.
void cli_interrupt_file_set(unsigned slot, const char *path);

// A progress bar is in the last line of standard error.
void cli_interrupt_line_set(bool shown);

// Between hold and release a signal is delayed; used while the results are written.
void cli_interrupt_hold(void);
void cli_interrupt_release(void);
// Between hold and release: sleeps, until a signal arrives. Returns it, or 0. The caller tidies up, raises it and
// releases it.
int cli_interrupt_wait(unsigned milliseconds);
