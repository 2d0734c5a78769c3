// Quantities as in YAML, "256 B", "1.5 us", "250 MHz", to integers and back. A quantity that is not exact is refused.
// Base units: bytes, picoseconds, megahertz, bytes per microsecond.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum scn_quantity { SCN_QUANTITY_SIZE, SCN_QUANTITY_TIME, SCN_QUANTITY_FREQUENCY, SCN_QUANTITY_RATE };

#define SCN_WHY_MAX      512
#define SCN_QUANTITY_MAX 32

// False: why describes the mistake, and begins with the text itself in quotes.
bool scn_quantity_parse(enum scn_quantity quantity, const char *text, uint64_t *value_out, char why[SCN_WHY_MAX]);

// With the largest unit that keeps it a whole number.
void scn_quantity_format(enum scn_quantity quantity, uint64_t value, char text[SCN_QUANTITY_MAX]);

// Decimal, or hexadecimal with 0x.
bool scn_integer_parse(const char *text, uint64_t *value_out, char why[SCN_WHY_MAX]);

// Also .inf and -.inf, but not .nan.
bool scn_real_parse(const char *text, double *value_out, char why[SCN_WHY_MAX]);

// "5 %": 0 or more, finite.
bool scn_percent_parse(const char *text, double *value_out, char why[SCN_WHY_MAX]);

// The shortest text that reads back as the same number.
void scn_real_format(double value, char text[SCN_QUANTITY_MAX]);
