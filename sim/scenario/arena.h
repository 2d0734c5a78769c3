// Memory that is freed all at once: everything that one load allocates. It is zeroed, and parts are never freed.
// Running out of memory ends the program (a file has at most SCN_FILE_BYTES_MAX).
#pragma once

#include <stdarg.h>
#include <stddef.h>

struct scn_arena_block;
struct scn_arena {
    struct scn_arena_block *blocks;
};

void *scn_arena_alloc(struct scn_arena *arena, size_t size);
char *scn_arena_copy(struct scn_arena *arena, const char *text, size_t length);
__attribute__((format(printf, 2, 3))) char *scn_arena_format(struct scn_arena *arena, const char *format, ...);
char *scn_arena_vformat(struct scn_arena *arena, const char *format, va_list args);
void scn_arena_fini(struct scn_arena *arena);
