#include "interpret_call.h"

#include <string.h>

enum interpret_stop interpret_call(uintptr_t function, uint64_t rdi, uint64_t rsi, struct interpret_state *state_out)
{
    enum { STACK_WORDS = 1024, TOP = STACK_WORDS - 9, INSTRUCTIONS = 100000 };
    static uint64_t stack[STACK_WORDS];
    static const uintptr_t end = 0x1000; // where the function returns to
    const unsigned saved = 0xf000 | 1u << INTERPRET_RBX | 1u << INTERPRET_RBP;
    memset(stack, 0xa5, sizeof stack);
    stack[TOP] = end;
    *state_out = (struct interpret_state){.rip = function};
    state_out->known = (uint16_t)(saved | 1u << INTERPRET_RDI | 1u << INTERPRET_RSI | 1u << INTERPRET_RSP);
    state_out->registers[INTERPRET_RDI] = rdi;
    state_out->registers[INTERPRET_RSI] = rsi;
    state_out->registers[INTERPRET_RSP] = (uintptr_t)&stack[TOP];
    unsigned left = INSTRUCTIONS;
    return interpret_run(state_out, &end, 1, &left);
}
