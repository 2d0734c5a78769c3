// What the EXPECT and ASSERT macros check, and what their failures print.
#include "tests/shim/test.h"

#include <cstdio>
#include <cstring>
#include <string>

namespace
{

std::string printed(const test_value &value)
{
    char text[64];
    const auto bits = static_cast<unsigned long long>(value.bits);
    switch (value.kind) {
    case TEST_SIGNED:
        if (static_cast<int64_t>(value.bits) < 0) {
            snprintf(text, sizeof text, "%lld", static_cast<long long>(value.bits));
            return text;
        }
        [[fallthrough]];
    case TEST_UNSIGNED:
        snprintf(text, sizeof text, "%llu (0x%llx)", bits, bits);
        return text;
    case TEST_REAL:
        snprintf(text, sizeof text, "%.17g", value.real);
        return text;
    case TEST_POINTER:
        if (bits == 0) {
            return "NULL";
        }
        snprintf(text, sizeof text, "0x%llx", bits);
        return text;
    }
    return "?";
}

std::string quoted(const char *text)
{
    return text != nullptr ? "\"" + std::string(text) + "\"" : "NULL";
}

bool is_negative(const test_value &value)
{
    return value.kind == TEST_SIGNED && static_cast<int64_t>(value.bits) < 0;
}

double as_real(const test_value &value)
{
    if (value.kind == TEST_REAL) {
        return value.real;
    }
    return is_negative(value) ? static_cast<double>(static_cast<int64_t>(value.bits)) : static_cast<double>(value.bits);
}

bool is_equal(const test_value &left, const test_value &right)
{
    if (left.kind == TEST_REAL || right.kind == TEST_REAL) {
        return as_real(left) == as_real(right);
    }
    return left.bits == right.bits;
}

bool is_less(const test_value &left, const test_value &right)
{
    if (left.kind == TEST_REAL || right.kind == TEST_REAL) {
        return as_real(left) < as_real(right);
    }
    if (is_negative(left) != is_negative(right)) {
        return is_negative(left);
    }
    return left.bits < right.bits; // of two negative numbers as well
}

bool holds(test_relation relation, const test_value &left, const test_value &right)
{
    switch (relation) {
    case TEST_EQ:
        return is_equal(left, right);
    case TEST_NE:
        return !is_equal(left, right);
    case TEST_LT:
        return is_less(left, right);
    case TEST_LE:
        return is_less(left, right) || (is_equal(left, right) && !is_less(right, left));
    case TEST_GT:
        return is_less(right, left);
    case TEST_GE:
        return is_less(right, left) || (is_equal(left, right) && !is_less(left, right));
    }
    return false;
}

} // namespace

extern "C" bool test_check_true(bool value, const char *text, const char *file, int line)
{
    if (!value) {
        test_fail(file, line, "does not hold: %s", text);
    }
    return value;
}

extern "C" bool test_check(test_relation relation, test_value left, test_value right, const char *text,
                           const char *file, int line)
{
    if (holds(relation, left, right)) {
        return true;
    }
    if (relation == TEST_EQ) {
        test_fail(file, line, "%s\n  actual   %s\n  expected %s", text, printed(left).c_str(), printed(right).c_str());
    } else {
        test_fail(file, line, "%s\n  left     %s\n  right    %s", text, printed(left).c_str(), printed(right).c_str());
    }
    return false;
}

extern "C" bool test_check_between(int64_t actual, int64_t low, int64_t high, const char *text, const char *file,
                                   int line)
{
    if (actual >= low && actual <= high) {
        return true;
    }
    test_fail(file, line, "%s is %lld, not within %lld .. %lld", text, (long long)actual, (long long)low,
              (long long)high);
    return false;
}

extern "C" bool test_check_null(const volatile void *actual, const char *text, const char *file, int line)
{
    if (actual == nullptr) {
        return true;
    }
    test_fail(file, line, "%s is %s, not NULL", text, printed(test_value_pointer(actual)).c_str());
    return false;
}

extern "C" bool test_check_not_null(const volatile void *actual, const char *text, const char *file, int line)
{
    if (actual != nullptr) {
        return true;
    }
    test_fail(file, line, "%s is NULL", text);
    return false;
}

extern "C" bool test_check_str(const char *actual, const char *expected, const char *text, const char *file, int line)
{
    if (actual != nullptr && expected != nullptr && strcmp(actual, expected) == 0) {
        return true;
    }
    test_fail(file, line, "%s\n  actual   %s\n  expected %s", text, quoted(actual).c_str(), quoted(expected).c_str());
    return false;
}

extern "C" bool test_check_other_str(const char *actual, const char *other, const char *text, const char *file,
                                     int line)
{
    if (actual != nullptr && other != nullptr && strcmp(actual, other) != 0) {
        return true;
    }
    test_fail(file, line, "%s\n  actual   %s\n  not      %s", text, quoted(actual).c_str(), quoted(other).c_str());
    return false;
}

extern "C" bool test_check_contains(const char *actual, const char *part, const char *text, const char *file, int line)
{
    if (actual != nullptr && part != nullptr && strstr(actual, part) != nullptr) {
        return true;
    }
    test_fail(file, line, "%s\n  actual   %s\n  lacks    %s", text, quoted(actual).c_str(), quoted(part).c_str());
    return false;
}

extern "C" bool test_check_lacks(const char *actual, const char *part, const char *text, const char *file, int line)
{
    if (actual != nullptr && part != nullptr && strstr(actual, part) == nullptr) {
        return true;
    }
    test_fail(file, line, "%s\n  actual   %s\n  contains %s", text, quoted(actual).c_str(), quoted(part).c_str());
    return false;
}

extern "C" bool test_check_mem(const void *actual, const void *expected, size_t size, const char *text,
                               const char *file, int line)
{
    if (actual == nullptr || expected == nullptr) {
        test_fail(file, line, "%s: the %s bytes are at NULL", text, actual == nullptr ? "actual" : "expected");
        return false;
    }
    const auto *a = static_cast<const unsigned char *>(actual);
    const auto *e = static_cast<const unsigned char *>(expected);
    for (size_t i = 0; i < size; i++) {
        if (a[i] != e[i]) {
            test_fail(file, line, "%s differs at byte %zu of %zu: actual %02x, expected %02x", text, i, size, a[i],
                      e[i]);
            return false;
        }
    }
    return true;
}
