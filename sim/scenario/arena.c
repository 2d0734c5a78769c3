#include "sim/scenario/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/status.h"

struct scn_arena_block {
    struct scn_arena_block *next;
    max_align_t data[];
};

void *scn_arena_alloc(struct scn_arena *arena, size_t size)
{
    struct scn_arena_block *block = calloc(1, sizeof *block + size);
    if (block == NULL) {
        sim_panic("scenario", "no memory for %zu bytes", size);
    }
    block->next = arena->blocks;
    arena->blocks = block;
    return block->data;
}

char *scn_arena_copy(struct scn_arena *arena, const char *text, size_t length)
{
    char *copy = scn_arena_alloc(arena, length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *scn_arena_vformat(struct scn_arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = scn_arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

char *scn_arena_format(struct scn_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = scn_arena_vformat(arena, format, args);
    va_end(args);
    return text;
}

void scn_arena_fini(struct scn_arena *arena)
{
    while (arena->blocks != NULL) {
        struct scn_arena_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
}
