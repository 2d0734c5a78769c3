#include "sim/scenario/names.h"

#include <stdint.h>
#include <string.h>

#define NAME_LENGTH_MAX 80

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

size_t scn_names_distance(const char *a, const char *b)
{
    size_t length_a = strlen(a), length_b = strlen(b);
    if (length_a > NAME_LENGTH_MAX || length_b > NAME_LENGTH_MAX) {
        return SIZE_MAX;
    }
    size_t row[NAME_LENGTH_MAX + 1];
    for (size_t j = 0; j <= length_b; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= length_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length_b; j++) {
            size_t above = row[j];
            row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[length_b];
}

void scn_nearest_init(struct scn_nearest *nearest, const char *wanted)
{
    nearest->wanted = wanted;
    nearest->name = NULL;
    // A third of the letters may be wrong, but at least one: a more distant suggestion would be confusing.
    nearest->distance = strlen(wanted) / 3 + 1;
    if (nearest->distance < 2) {
        nearest->distance = 2;
    }
}

void scn_nearest_offer(struct scn_nearest *nearest, const char *candidate)
{
    size_t wanted = strlen(nearest->wanted), length = strlen(candidate);
    if ((wanted > length ? wanted - length : length - wanted) > nearest->distance) {
        return; // as many letters are missing
    }
    size_t distance = scn_names_distance(nearest->wanted, candidate);
    if (distance < nearest->distance && distance < length) {
        nearest->distance = distance;
        nearest->name = candidate;
    } else if (distance == nearest->distance && nearest->name != NULL && strcmp(nearest->name, candidate) != 0) {
        nearest->name = NULL; // two are equally near: a guess would be wrong half of the time
    }
}

bool scn_name_is_plain(const char *name, bool dots)
{
    if (name[0] == '\0' || name[0] == '.') {
        return false;
    }
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    for (const char *c = name; *c != '\0'; c++) {
        if (strchr(letters, *c) == NULL && !(dots && *c == '.')) {
            return false;
        }
    }
    return true;
}
