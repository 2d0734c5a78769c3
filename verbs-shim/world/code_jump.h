// A jump over a function's first bytes. Private to the folder.
#pragma once

#include <string.h>

// movabs rax, target; jmp rax
enum { WORLD_CODE_JUMP_BYTES = 12 };

// The code must be writable, and have room for the jump.
static inline void world_code_jump(void *at, void (*target)(void))
{
    unsigned char code[WORLD_CODE_JUMP_BYTES] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    memcpy(code + 2, &target, sizeof target);
    memcpy(at, code, sizeof code);
}
