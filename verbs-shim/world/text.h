// Whether code may be overwritten. Private to the folder.
//
// Only code of a file that the program cannot write to: code that the program generates it also changes, and memory
// keeps the permissions that the program gave it. Reads /proc/self/maps, with system calls only, so that signal
// handlers may call it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool world_text_fixed(uintptr_t at, size_t bytes);
