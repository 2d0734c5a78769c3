// The environment of a program that is started by another one (environment.c).
#pragma once

#include <stddef.h>

struct world_environment {
    char *const *list; // as execve takes it
    size_t bytes;      // of memory that it needs; 0: it is the caller's own
};

void world_environment_start(void); // notes what this program has got
// The environment, with what attaches a program to the run: kept until world_environment_end, or a successful exec. If there is
// no memory it is as it was. NULL counts as empty.
struct world_environment world_environment_begin(char *const *environment);
void world_environment_end(const struct world_environment *environment);
