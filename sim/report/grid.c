#include "sim/report/grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/status.h"

#define GAP 2

struct grid {
    size_t columns;
    bool *left;
    size_t *width;
    char (*cells)[GRID_CELL_MAX];
    size_t count, room;
};

grid_t *grid_create(size_t columns)
{
    grid_t *grid = calloc(1, sizeof *grid);
    bool *left = calloc(columns, sizeof *left);
    size_t *width = calloc(columns, sizeof *width);
    if (grid == NULL || left == NULL || width == NULL) {
        sim_panic("report", "out of memory for a table");
    }
    *grid = (struct grid){.columns = columns, .left = left, .width = width};
    return grid;
}

void grid_destroy(grid_t *grid)
{
    free(grid->left);
    free(grid->width);
    free(grid->cells);
    free(grid);
}

void grid_column_left(grid_t *grid, size_t column)
{
    grid->left[column] = true;
}

// Counts characters, not bytes: the continuation bytes of UTF-8 do not count.
static size_t text_width(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return width;
}

void grid_cell_add(grid_t *grid, const char *format, ...)
{
    if (grid->count == grid->room) {
        grid->room = grid->room == 0 ? 64 : grid->room * 2;
        void *cells = realloc(grid->cells, grid->room * sizeof *grid->cells);
        if (cells == NULL) {
            sim_panic("report", "out of memory for a table");
        }
        grid->cells = cells;
    }
    char *cell = grid->cells[grid->count];
    va_list args;
    va_start(args, format);
    vsnprintf(cell, GRID_CELL_MAX, format, args);
    va_end(args);
    size_t *width = &grid->width[grid->count % grid->columns];
    size_t cell_width = text_width(cell);
    *width = cell_width > *width ? cell_width : *width;
    grid->count++;
}

size_t grid_width(const grid_t *grid)
{
    size_t width = GAP * (grid->columns - 1);
    for (size_t i = 0; i < grid->columns; i++) {
        width += grid->width[i];
    }
    return width;
}

static void row_print(const grid_t *grid, size_t row, FILE *out)
{
    size_t pending = 0; // blanks that are printed only before a text, so that no line ends with blanks
    for (size_t i = 0; i < grid->columns; i++) {
        const char *text = grid->cells[row * grid->columns + i];
        size_t fill = grid->width[i] - text_width(text);
        pending += grid->left[i] ? 0 : fill;
        if (text[0] != '\0') {
            fprintf(out, "%*s%s", (int)pending, "", text);
            pending = 0;
        }
        pending += GAP + (grid->left[i] ? fill : 0);
    }
    fputc('\n', out);
}

void grid_print(const grid_t *grid, FILE *out)
{
    for (size_t row = 0; row < grid->count / grid->columns; row++) {
        row_print(grid, row, out);
        if (row == 0) {
            for (size_t i = 0; i < grid_width(grid); i++) {
                fputc('-', out);
            }
            fputc('\n', out);
        }
    }
}
