// The interpreter of instructions, beside the processor.
#include "interpret_call.h"
#include "interpret_subjects.h"
#include "tests/shim/test.h"

enum { CASES = 300 };

static uint64_t random_next(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t random_operand(void)
{
    uint64_t value = random_next();
    unsigned shape = (unsigned)(random_next() % 6);
    return shape == 0   ? value % 16
           : shape == 1 ? (uint64_t)(int64_t)(int8_t)value
           : shape == 2 ? value & 0xffffffff
                        : value;
}

static enum interpret_stop interpret(const struct interpret_subject *subject, uint64_t a, uint64_t b,
                                     uint64_t *result_out)
{
    struct interpret_state state;
    interpret_begin();
    enum interpret_stop stop = interpret_call((uintptr_t)subject->function, a, b, &state);
    *result_out = state.registers[INTERPRET_RAX];
    return stop;
}

static void compare(const struct interpret_subject *subjects)
{
    for (const struct interpret_subject *subject = subjects; subject->name != NULL; subject++) {
        TEST_TRACE("%s", subject->name);
        for (unsigned i = 0; i < CASES; i++) {
            uint64_t a = random_operand(), b = random_operand(), result;
            enum interpret_stop stop = interpret(subject, a, b, &result);
            EXPECT_EQ(stop, INTERPRET_AT);
            if (stop != INTERPRET_AT) {
                EXPECT_STREQ(interpret_reason(), "");
                break;
            }
            uint64_t real = subject->function(a, b);
            EXPECT_EQ(result, real);
            if (result != real) {
                break;
            }
        }
    }
}

TEST(Interpret, DoesWhatTheProcessorDoesInCodeThatIsNotOptimised)
{
    compare(interpret_subjects_plain);
}

TEST(Interpret, DoesWhatTheProcessorDoesInOptimisedCode)
{
    compare(interpret_subjects_optimised);
}
