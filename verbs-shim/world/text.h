// Whether code may be overwritten. Private to the folder.
//
// Only what a file holds and the program cannot write to: code that the program makes itself it changes itself as well,
// and the permissions that it gave its memory stay as they are. Asks /proc/self/maps, by system calls alone, so that
// handlers of signals may call it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool world_text_fixed(uintptr_t at, size_t bytes);
