#include "sim/scenario/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_MAX 64

// The parts of the open groups, from the whole on; of each what comes before its last atom, and that atom.
struct counting {
    uint64_t before[GROUPS_MAX], last[GROUPS_MAX];
    unsigned depth;
};

static uint64_t capped(uint64_t parts)
{
    return parts > SCN_PATTERN_PARTS_MAX ? SCN_PATTERN_PARTS_MAX + 1 : parts;
}

static void atom_add(struct counting *counting, uint64_t parts)
{
    uint64_t *before = &counting->before[counting->depth], *last = &counting->last[counting->depth];
    *before = capped(*before + *last);
    *last = parts;
}

static void atom_repeat(struct counting *counting, uint64_t times)
{
    uint64_t *last = &counting->last[counting->depth];
    *last = capped(*last * (times < SCN_PATTERN_PARTS_MAX ? times : SCN_PATTERN_PARTS_MAX));
}

static void group_close(struct counting *counting)
{
    uint64_t inside = capped(counting->before[counting->depth] + counting->last[counting->depth] + 1);
    counting->depth--;
    atom_add(counting, inside);
}

// Behind "[": behind its end.
static const char *bracket_skip(const char *at)
{
    at += *at == '^' ? 1 : 0;
    at += *at == ']' ? 1 : 0;
    while (*at != '\0' && *at != ']') {
        if (*at == '[' && at[1] != '\0' && strchr(":.=", at[1]) != NULL) {
            const char close[] = {at[1], ']', '\0'}, *end = strstr(at + 2, close);
            at = end != NULL ? end + 1 : at;
        }
        at++;
    }
    return *at == ']' ? at + 1 : at;
}

// Behind "{": the number of copies that it asks for; behind its end.
static const char *interval_read(const char *at, uint64_t *times_out)
{
    char *end;
    unsigned long least = strtoul(at, &end, 10), most = least;
    if (*end == ',') {
        most = strtoul(end + 1, &end, 10);
    }
    *times_out = (most > least ? most : least) + 1;
    return *end == '}' ? end + 1 : end;
}

// The parts when repetitions are written out. why: set for what is refused at once.
static uint64_t parts_count(const char *text, char why[SCN_WHY_MAX])
{
    struct counting counting = {0};
    for (const char *at = text; *at != '\0';) {
        uint64_t times = 1;
        char character = *at++;
        if (character == '\\' && *at >= '1' && *at <= '9') {
            snprintf(why, SCN_WHY_MAX, "\\%c refers to a group, which no extended regular expression does", *at);
            return 0;
        }
        if (character == '(' && counting.depth + 1 == GROUPS_MAX) {
            snprintf(why, SCN_WHY_MAX, "more than %d groups, one in another", GROUPS_MAX - 1);
            return 0;
        }
        if (character == '(') {
            counting.depth++;
            counting.before[counting.depth] = counting.last[counting.depth] = 0;
        } else if (character == ')' && counting.depth > 0) {
            group_close(&counting);
        } else if (character == '+') {
            atom_repeat(&counting, 2);
        } else if (character == '{') {
            at = interval_read(at, &times);
            atom_repeat(&counting, times);
        } else if (character != '*' && character != '?') {
            at = character == '[' ? bracket_skip(at) : character == '\\' && *at != '\0' ? at + 1 : at;
            atom_add(&counting, 1);
        }
    }
    uint64_t parts = 0;
    for (unsigned i = 0; i <= counting.depth; i++) {
        parts = capped(parts + counting.before[i] + counting.last[i]);
    }
    return parts;
}

bool scn_pattern_compile(const char *text, regex_t *pattern_out, char why[SCN_WHY_MAX])
{
    why[0] = '\0';
    if (parts_count(text, why) > SCN_PATTERN_PARTS_MAX) {
        snprintf(why, SCN_WHY_MAX, "repeats its parts more than %u times", SCN_PATTERN_PARTS_MAX);
    }
    if (why[0] != '\0') {
        return false;
    }
    int error = regcomp(pattern_out, text, REG_EXTENDED);
    if (error != 0) {
        (void)regerror(error, pattern_out, why, SCN_WHY_MAX);
    }
    return error == 0;
}
