#include "sim/scenario/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DECIMALS_MAX 18

struct unit_step {
    const char *name;
    uint64_t scale;
    bool written; // used when formatting
};

struct unit {
    const char *what;
    const char *example;
    const char *names;
    struct unit_step steps[9]; // ascending, ended by a NULL name
};

static const struct unit units[] = {
    [SCN_QUANTITY_SIZE] = {"a size",
                           "256 B",
                           "B, KiB, MiB, GiB, TiB, KB, MB, GB",
                           {{"B", 1, true},
                            {"KB", 1000, false},
                            {"KiB", 1ull << 10, true},
                            {"MB", 1000000, false},
                            {"MiB", 1ull << 20, true},
                            {"GB", 1000000000, false},
                            {"GiB", 1ull << 30, true},
                            {"TiB", 1ull << 40, true}}},
    [SCN_QUANTITY_TIME] = {"a time",
                           "120 ns",
                           "ps, ns, us, ms, s",
                           {{"ps", 1, true},
                            {"ns", 1000, true},
                            {"us", 1000000, true},
                            {"ms", 1000000000, true},
                            {"s", 1000000000000, true}}},
    [SCN_QUANTITY_FREQUENCY] = {"a frequency", "250 MHz", "MHz, GHz", {{"MHz", 1, true}, {"GHz", 1000, false}}},
    [SCN_QUANTITY_RATE] = {"a rate", "5 GB/s", "MB/s, GB/s", {{"MB/s", 1, true}, {"GB/s", 1000, true}}},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Reads digits up to the first other character. False: the value does not fit into 64 bits.
static bool read_digits(const char **text, uint64_t *value_out)
{
    uint64_t value = 0;
    bool fits = true;
    for (; is_digit(**text); ++*text) {
        fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_add_overflow(value, (uint64_t)(**text - '0'), &value);
    }
    *value_out = value;
    return fits;
}

struct decimal {
    uint64_t whole, fraction, fraction_scale;
};

// Moves *text to the end of the number. False: not a number, or one with too many digits.
static bool read_decimal(const char **text, struct decimal *number)
{
    if (!is_digit(**text) || !read_digits(text, &number->whole)) {
        return false;
    }
    number->fraction = 0;
    number->fraction_scale = 1;
    if (**text != '.') {
        return true;
    }
    const char *digits = ++*text;
    for (; is_digit(**text); ++*text) {
        if (*text - digits >= DECIMALS_MAX) {
            return false;
        }
        number->fraction = number->fraction * 10 + (uint64_t)(**text - '0');
        number->fraction_scale *= 10;
    }
    return *text > digits;
}

static const struct unit_step *find_step(const struct unit *unit, const char *name)
{
    for (const struct unit_step *step = unit->steps; step->name != NULL; step++) {
        if (strcmp(step->name, name) == 0) {
            return step;
        }
    }
    return NULL;
}

bool scn_quantity_parse(enum scn_quantity quantity, const char *text, uint64_t *value_out, char why[SCN_WHY_MAX])
{
    const struct unit *unit = &units[quantity];
    struct decimal number;
    const char *rest = text;
    if (!read_decimal(&rest, &number)) {
        snprintf(why, SCN_WHY_MAX, "'%.80s' is not %s such as %s", text, unit->what, unit->example);
        return false;
    }
    rest += strspn(rest, " ");
    if (*rest == '\0') {
        snprintf(why, SCN_WHY_MAX, "'%.80s' needs a unit (%s)", text, unit->names);
        return false;
    }
    const struct unit_step *step = find_step(unit, rest);
    if (step == NULL) {
        snprintf(why, SCN_WHY_MAX, "'%.80s' has no known unit (%s)", text, unit->names);
        return false;
    }
    unsigned __int128 fraction = (unsigned __int128)number.fraction * step->scale;
    if (fraction % number.fraction_scale != 0) {
        snprintf(why, SCN_WHY_MAX, "'%.80s' is not a whole number of %s", text, unit->steps[0].name);
        return false;
    }
    uint64_t value = 0;
    if (__builtin_mul_overflow(number.whole, step->scale, &value) ||
        __builtin_add_overflow(value, (uint64_t)(fraction / number.fraction_scale), &value)) {
        snprintf(why, SCN_WHY_MAX, "'%.80s' is too large", text);
        return false;
    }
    *value_out = value;
    return true;
}

void scn_quantity_format(enum scn_quantity quantity, uint64_t value, char text[SCN_QUANTITY_MAX])
{
    const struct unit_step *best = &units[quantity].steps[0];
    for (const struct unit_step *step = best; step->name != NULL; step++) {
        if (value != 0 && step->written && value % step->scale == 0) {
            best = step;
        }
    }
    snprintf(text, SCN_QUANTITY_MAX, "%" PRIu64 " %s", value / best->scale, best->name);
}

static bool read_hexadecimal(const char *text, uint64_t *value_out)
{
    size_t digits = strspn(text, "0123456789abcdefABCDEF");
    if (digits == 0 || digits > 16 || text[digits] != '\0') {
        return false;
    }
    *value_out = strtoull(text, NULL, 16);
    return true;
}

bool scn_integer_parse(const char *text, uint64_t *value_out, char why[SCN_WHY_MAX])
{
    const char *rest = text;
    uint64_t value = 0;
    bool hexadecimal = text[0] == '0' && text[1] == 'x';
    if (hexadecimal ? !read_hexadecimal(text + 2, &value) : !is_digit(text[0])) {
        snprintf(why, SCN_WHY_MAX, "'%.80s' is not a whole number", text);
        return false;
    }
    if (!hexadecimal && (!read_digits(&rest, &value) || *rest != '\0')) {
        snprintf(why, SCN_WHY_MAX, "'%.80s' is %s", text, *rest == '\0' ? "too large" : "not a whole number");
        return false;
    }
    *value_out = value;
    return true;
}

bool scn_real_parse(const char *text, double *value_out, char why[SCN_WHY_MAX])
{
    char *rest = NULL;
    double value = 0;
    if (strcmp(text, ".inf") == 0 || strcmp(text, "-.inf") == 0) {
        value = text[0] == '-' ? -INFINITY : INFINITY;
    } else {
        size_t length = strspn(text, "+-.0123456789eE");
        value = strtod(text, &rest);
        if (length == 0 || text[length] != '\0' || *rest != '\0' || !isfinite(value)) {
            snprintf(why, SCN_WHY_MAX, "'%.80s' is not a number", text);
            return false;
        }
    }
    *value_out = value;
    return true;
}

bool scn_percent_parse(const char *text, double *value_out, char why[SCN_WHY_MAX])
{
    char number[SCN_QUANTITY_MAX], ignored[SCN_WHY_MAX];
    double value = 0;
    size_t length = strspn(text, "+.0123456789eE-");
    size_t blanks = strspn(text + length, " ");
    snprintf(number, sizeof number, "%.*s", (int)length, text);
    bool form = length < sizeof number && strcmp(text + length + blanks, "%") == 0;
    if (!form || !scn_real_parse(number, &value, ignored) || isinf(value) || value < 0) {
        snprintf(why, SCN_WHY_MAX, "'%.80s' is not a percentage such as 5 %%", text);
        return false;
    }
    *value_out = value;
    return true;
}

void scn_real_format(double value, char text[SCN_QUANTITY_MAX])
{
    if (isinf(value)) {
        snprintf(text, SCN_QUANTITY_MAX, "%s", value < 0 ? "-.inf" : ".inf");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, SCN_QUANTITY_MAX, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            return;
        }
    }
}
