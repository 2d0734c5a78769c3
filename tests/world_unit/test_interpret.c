// The interpreter of instructions, beside the processor.
#include <string.h>

#include "interpret_subjects.h"
#include "tests/shim/test.h"
#include "verbs-shim/world/interpret.h"

enum { STACK_WORDS = 1024, INSTRUCTIONS = 100000, CASES = 300 };
static const uintptr_t end = 0x1000; // where the function returns to

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
    static uint64_t stack[STACK_WORDS];
    memset(stack, 0xa5, sizeof stack);
    stack[STACK_WORDS - 9] = end;
    const unsigned saved = 0xf000 | 1u << INTERPRET_RBX | 1u << INTERPRET_RBP; // of the caller
    struct interpret_state state = {.rip = (uintptr_t)subject->function};
    state.known = (uint16_t)(saved | 1u << INTERPRET_RDI | 1u << INTERPRET_RSI | 1u << INTERPRET_RSP);
    state.registers[INTERPRET_RDI] = a;
    state.registers[INTERPRET_RSI] = b;
    state.registers[INTERPRET_RSP] = (uintptr_t)&stack[STACK_WORDS - 9];
    unsigned left = INSTRUCTIONS;
    interpret_begin();
    enum interpret_stop stop = interpret_run(&state, &end, 1, &left);
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
