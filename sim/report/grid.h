// A table of texts for the terminal, its columns aligned. Private to the room.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/kernel/terminal.h"

#define GRID_CELL_MAX 96

typedef struct grid grid_t;

grid_t *grid_create(size_t columns);
void grid_destroy(grid_t *grid);

// Cells fill row by row; a text that is too long is cut. Columns are right-aligned unless set otherwise.
__attribute__((format(printf, 2, 3))) void grid_cell_add(grid_t *grid, const char *format, ...);
void grid_column_left(grid_t *grid, size_t column);
void grid_cell_colour(grid_t *grid, enum sim_colour colour); // of the cell added last

// The number of characters in the longest line of grid_print.
size_t grid_width(const grid_t *grid);
// The first row is the head and is underlined. On a terminal, left-aligned columns are cut until a line fits.
void grid_print(const grid_t *grid, FILE *out);
