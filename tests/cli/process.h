// The built program as a child: its arguments in, its exit status and output out. No shell.
#pragma once

#include <stddef.h>

#define PROCESS_PROGRAM TCASIM_BINARY_DIR "/tcasim"

struct process {
    char directory[64]; // its own scratch directory, in which it runs; removed by process_fini
    char *output;       // standard output of the last run
    char *errors;       // standard error of the last run
    int status;         // exit status, 128 + signal if it was killed
};

void process_init(struct process *process);
void process_fini(struct process *process);

// Runs `tcasim <words>`; words are separated by blanks, and '_' stands for a blank within a word.
void process_run(struct process *process, const char *words);

// The same, but stops the program by a signal as soon as a file of that name exists (a pattern of glob(7), relative to
// the scratch directory; NULL: lets the program run).
void process_run_stopped(struct process *process, const char *words, int signal_number, const char *pattern);

// Writes a file into the scratch directory.
void process_file_write(const struct process *process, const char *name, const char *text);
// Reads a whole file; the caller frees. NULL if it does not exist.
char *process_file_read(const struct process *process, const char *name);
// The number of entries of the scratch directory.
unsigned process_entries(const struct process *process);
