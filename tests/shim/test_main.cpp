// The bridge from the C tests to GoogleTest, and the tests' main.
#include "tests/shim/test.h"

#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "sim/kernel/sim.h"

namespace
{

test_case *first_test = nullptr;
test_case **last_link = &first_test;

class CTest : public testing::Test
{
public:
    explicit CTest(void (*body)()) : body_(body)
    {
    }
    void TestBody() override
    {
        body_();
    }

private:
    void (*body_)();
};

int run_all(int argc, char **argv)
{
    testing::InitGoogleTest(&argc, argv);
    for (test_case *test = first_test; test != nullptr; test = test->next) {
        auto body = test->body;
        testing::RegisterTest(test->suite, test->name, nullptr, nullptr, test->file, test->line,
                              [body]() -> CTest * { return new CTest(body); });
    }
    return RUN_ALL_TESTS();
}

} // namespace

extern "C" void test_register(test_case *test)
{
    *last_link = test;
    last_link = &test->next;
}

extern "C" void test_fail(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ADD_FAILURE_AT(file, line) << text;
}

extern "C" bool test_check_true(bool value, const char *text, const char *file, int line)
{
    if (!value) {
        test_fail(file, line, "does not hold: %s", text);
    }
    return value;
}

extern "C" bool test_check_eq(uint64_t actual, uint64_t expected, const char *text, const char *file, int line)
{
    if (actual == expected) {
        return true;
    }
    test_fail(file, line, "%s\n  actual   %llu (0x%llx)\n  expected %llu (0x%llx)", text,
              (unsigned long long)actual, (unsigned long long)actual, (unsigned long long)expected,
              (unsigned long long)expected);
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

extern "C" bool test_check_str(const char *actual, const char *expected, const char *text, const char *file, int line)
{
    if (actual != nullptr && strcmp(actual, expected) == 0) {
        return true;
    }
    test_fail(file, line, "%s\n  actual   \"%s\"\n  expected \"%s\"", text, actual ? actual : "(null)", expected);
    return false;
}

extern "C" bool test_check_contains(const char *actual, const char *part, const char *text, const char *file,
                                    int line)
{
    if (actual != nullptr && strstr(actual, part) != nullptr) {
        return true;
    }
    test_fail(file, line, "%s\n  actual   \"%s\"\n  lacks    \"%s\"", text, actual ? actual : "(null)", part);
    return false;
}

extern "C" bool test_check_mem(const void *actual, const void *expected, size_t size, const char *text,
                               const char *file, int line)
{
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

int main(int argc, char **argv)
{
    return sim_main(argc, argv, run_all);
}
