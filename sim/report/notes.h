// The paragraphs of a document that explain published rows: those that begin with ids in bold, "**H15, +50 %.** ...".
// Private to the room.
#pragma once

#include <stdio.h>

// {"H15":["text", ...], ...}; {} without a document.
void notes_write(const char *path, FILE *out);
