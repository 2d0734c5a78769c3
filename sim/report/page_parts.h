// The parts of the page that are built into the program: page/ and D3. Private to the room.
#pragma once

#include <stddef.h>
#include <stdio.h>

extern const char page_frame[]; // page.html: text with the names of parts between two '@'

// Writes the part of that name (CSS, D3, LICENCE, SCRIPT); nothing for another name.
void page_part_write(const char *name, size_t length, FILE *out);
