// Arrays that grow.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Makes room for one more element. array: the address of the pointer to the elements, of whatever type; *room: for how
// many it has memory, 0 at first. false: there is no memory, and the array is as it was.
bool grow_array(void *array, size_t count, size_t *room, size_t bytes);
