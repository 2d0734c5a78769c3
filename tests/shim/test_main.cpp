// The bridge from the C tests to GoogleTest, and the tests' main.
#include "tests/shim/test.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "sim/kernel/sim.h"
#include "tests/shim/trace.h"

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
        test_traces_drop();
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

extern "C" unsigned test_failures_of(void (*body)(void *arg), void *arg, char *text, size_t text_bytes)
{
    testing::TestPartResultArray failures;
    {
        testing::ScopedFakeTestPartResultReporter reporter(
            testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &failures);
        body(arg);
    }
    std::string messages;
    for (int i = 0; i < failures.size(); i++) {
        messages += std::string(failures.GetTestPartResult(i).message()) + "\n";
    }
    snprintf(text, text_bytes, "%s", messages.c_str());
    return static_cast<unsigned>(failures.size());
}

int main(int argc, char **argv)
{
    return sim_main(argc, argv, run_all);
}
