// An operand of a comparison in a test, with its kind, so that a failure prints what was compared: signed and unsigned
// integers (bool, enumerations and characters among them), floating point, and pointers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum test_kind { TEST_SIGNED, TEST_UNSIGNED, TEST_REAL, TEST_POINTER };

struct test_value {
    enum test_kind kind;
    uint64_t bits; // of all kinds but TEST_REAL; signed numbers as 64 bits
    double real;
};

static inline struct test_value test_value_signed(int64_t value)
{
    struct test_value result = {TEST_SIGNED, (uint64_t)value, 0};
    return result;
}

static inline struct test_value test_value_unsigned(uint64_t value)
{
    struct test_value result = {TEST_UNSIGNED, value, 0};
    return result;
}

static inline struct test_value test_value_real(double value)
{
    struct test_value result = {TEST_REAL, 0, value};
    return result;
}

static inline struct test_value test_value_pointer(const volatile void *value)
{
    struct test_value result = {TEST_POINTER, (uint64_t)(uintptr_t)value, 0};
    return result;
}

#ifndef __cplusplus

// The conditional promotes: a bool, a character, a short and a bit-field of few bits are an int. The value itself is
// evaluated once, by the call.
#define TEST_VALUE(value)                                                                                              \
    _Generic(1 ? (value) : 0, float                                                                                    \
             : test_value_real, double                                                                                 \
             : test_value_real, int                                                                                    \
             : test_value_signed, long                                                                                 \
             : test_value_signed, long long                                                                            \
             : test_value_signed, unsigned                                                                             \
             : test_value_unsigned, unsigned long                                                                      \
             : test_value_unsigned, unsigned long long                                                                 \
             : test_value_unsigned, default                                                                            \
             : test_value_pointer)(value)

#endif
