#include "sim/report/grow.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 64 };

bool grow_array(void *array, size_t count, size_t *room, size_t bytes)
{
    if (count < *room) {
        return true;
    }
    size_t more = *room == 0 ? ROOM_FIRST : 2 * *room;
    void *elements;
    memcpy(&elements, array, sizeof elements); // the pointer has a type of its own
    void *larger = realloc(elements, more * bytes);
    if (larger == NULL) {
        return false;
    }
    memcpy(array, &larger, sizeof larger);
    *room = more;
    return true;
}
