#pragma once

#include <stddef.h>
#include <stdint.h>

struct interpret_subject {
    const char *name;
    uint64_t (*function)(uint64_t a, uint64_t b);
};
// Each ends with a row of NULL.
extern const struct interpret_subject interpret_subjects_plain[], interpret_subjects_optimised[];
