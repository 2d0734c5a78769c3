#include "sim/report/grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/status.h"
#include "sim/kernel/text.h"
#include "sim/report/grow.h"

enum { GAP = 2, TEXT_WIDTH_MIN = 8 };

struct cell {
    char text[GRID_CELL_MAX];
    enum sim_colour colour;
};

struct grid {
    size_t columns;
    bool *left;
    size_t *width;
    struct cell *cells;
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
    if (!grow_array(&grid->cells, grid->count, &grid->room, sizeof *grid->cells)) {
        sim_panic("report", "out of memory for a table");
    }
    struct cell *cell = &grid->cells[grid->count];
    va_list args;
    va_start(args, format);
    vsnprintf(cell->text, GRID_CELL_MAX, format, args);
    va_end(args);
    cell->colour = SIM_COLOUR_PLAIN;
    size_t *width = &grid->width[grid->count % grid->columns];
    size_t cell_width = text_width(cell->text);
    *width = cell_width > *width ? cell_width : *width;
    grid->count++;
}

void grid_cell_colour(grid_t *grid, enum sim_colour colour)
{
    grid->cells[grid->count - 1].colour = colour;
}

static size_t line_width(const grid_t *grid, const size_t *width)
{
    size_t sum = GAP * (grid->columns - 1);
    for (size_t i = 0; i < grid->columns; i++) {
        sum += width[i];
    }
    return sum;
}

size_t grid_width(const grid_t *grid)
{
    return line_width(grid, grid->width);
}

// Takes from the widest columns of texts until a line fits.
static void narrow(const grid_t *grid, size_t columns, size_t *width)
{
    for (size_t over = line_width(grid, width); over > columns; over--) {
        size_t widest = grid->columns;
        for (size_t i = 0; i < grid->columns; i++) {
            bool text = grid->left[i] && width[i] > TEXT_WIDTH_MIN;
            widest = text && (widest == grid->columns || width[i] > width[widest]) ? i : widest;
        }
        if (widest == grid->columns) {
            return; // numbers are not cut
        }
        width[widest]--;
    }
}

// The text, or what fits of it and a sign that it goes on.
static void text_print(const struct cell *cell, size_t width, FILE *out)
{
    const char *colour = cell->colour != SIM_COLOUR_PLAIN ? sim_terminal_colour(out, cell->colour) : "";
    size_t characters = 0, bytes = 0;
    bool cut = text_width(cell->text) > width;
    for (size_t length; cell->text[bytes] != '\0' && (!cut || characters + 1 < width); characters++) {
        length = sim_text_character(cell->text + bytes);
        bytes += length > 0 ? length : 1;
    }
    fprintf(out, "%s%.*s%s%s", colour, (int)bytes, cell->text, cut ? "…" : "",
            colour[0] != '\0' ? sim_terminal_colour(out, SIM_COLOUR_PLAIN) : "");
}

static void row_print(const grid_t *grid, size_t row, const size_t *width, FILE *out)
{
    size_t pending = 0; // blanks that are printed only before a text, so that no line ends with blanks
    for (size_t i = 0; i < grid->columns; i++) {
        const struct cell *cell = &grid->cells[row * grid->columns + i];
        size_t own = text_width(cell->text), fill = own < width[i] ? width[i] - own : 0;
        pending += grid->left[i] ? 0 : fill;
        if (cell->text[0] != '\0') {
            fprintf(out, "%*s", (int)pending, "");
            text_print(cell, width[i], out);
            pending = 0;
        }
        pending += GAP + (grid->left[i] ? fill : 0);
    }
    fputc('\n', out);
}

void grid_print(const grid_t *grid, FILE *out)
{
    size_t *width = calloc(grid->columns, sizeof *width), columns = sim_terminal_columns(out);
    if (width == NULL) {
        sim_panic("report", "out of memory for a table");
    }
    memcpy(width, grid->width, grid->columns * sizeof *width);
    if (columns > 0) {
        narrow(grid, columns, width);
    }
    for (size_t row = 0; row < grid->count / grid->columns; row++) {
        row_print(grid, row, width, out);
        for (size_t i = 0; row == 0 && i < line_width(grid, width); i++) {
            fputc('-', out);
        }
        fputs(row == 0 ? "\n" : "", out);
    }
    free(width);
}
