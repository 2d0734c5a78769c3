#include "sim/scenario/sum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The length of the text up to the next operator, or all of it.
static size_t operand_length(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0' && strncmp(text + length, " + ", 3) != 0 && strncmp(text + length, " - ", 3) != 0) {
        length++;
    }
    return length;
}

// "256 * NAME": leaves the name, and returns the factor; 1: there is none.
static double factor_take(char *name)
{
    char *end, *times = strstr(name, " * ");
    double factor = strtod(name, &end);
    if (times == NULL || end != times || !isfinite(factor)) {
        return 1;
    }
    memmove(name, times + 3, strlen(times + 3) + 1);
    return factor;
}

bool scn_sum_next(const char **cursor, struct scn_term *term)
{
    const char *text = *cursor;
    char *end;
    if (text[0] == '\0') {
        return false;
    }
    bool is_operator = text[0] == ' ' && (text[1] == '+' || text[1] == '-') && text[2] == ' ';
    *term = (struct scn_term){.minus = is_operator && text[1] == '-'};
    text += is_operator ? 3 : 0;
    size_t length = operand_length(text);
    snprintf(term->name, sizeof term->name, "%.*s", (int)length, text);
    double factor = factor_take(term->name), number = strtod(term->name, &end);
    term->is_number = term->name[0] != '\0' && *end == '\0' && isfinite(number);
    term->number = term->is_number ? factor * number : factor;
    *cursor = text + length;
    return true;
}

bool scn_sum_is_valid(const char *text)
{
    struct scn_term term;
    bool valid = text[0] != '\0';
    while (scn_sum_next(&text, &term)) {
        bool counter = strchr(term.name, '.') != NULL && strpbrk(term.name, " \t+,;") == NULL;
        valid = valid && (term.is_number || counter);
    }
    return valid;
}

bool scn_pattern_fits(const char *pattern, const char *text)
{
    const char *star = NULL, *after = NULL; // the last star, and where what stands for it ends
    while (*text != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            after = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++after; // one more character for the star
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

bool scn_term_matches(const struct scn_term *term, const char *name)
{
    return scn_pattern_fits(term->name, name);
}
