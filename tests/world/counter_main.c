// One instruction reads the time stamp counter again and again, and another path jumps to the instruction after it.
// Prints the second and the last step between two readings, and the first byte of the instruction in the end, and that of data
// which look like such an instruction.
#include <stdint.h>
#include <stdio.h>

enum { READS = 200 };

extern const unsigned char counter_site[];
uint64_t disturbed; // bits that changed in the carry flag, r11, xmm7 and the red zone

// With left_out the counter is not read, and the result is 7.
uint64_t reading(uint64_t left_out, uint64_t pattern);
__asm__(".text\n"
        ".globl reading\n"
        "reading:\n"
        "    .cfi_startproc\n"
        "    movq %rsi, %xmm7\n"
        "    mov %rsi, %r11\n"
        "    mov %rsi, -8(%rsp)\n"
        "    mov $7, %eax\n"
        "    xor %edx, %edx\n"
        "    mov %rdi, %rcx\n"
        "    stc\n"
        "    jrcxz counter_site\n"
        "    jmp 1f\n"
        ".globl counter_site\n"
        "counter_site:\n"
        "    rdtsc\n"
        "1:  mov %rdx, %r10\n"
        "    sbb %r8, %r8\n"
        "    not %r8\n"
        "    shl $32, %r10\n"
        "    or %r10, %rax\n"
        "    xor %rsi, %r11\n"
        "    or %r11, %r8\n"
        "    movq %xmm7, %r9\n"
        "    xor %rsi, %r9\n"
        "    or %r9, %r8\n"
        "    xor -8(%rsp), %rsi\n"
        "    or %rsi, %r8\n"
        "    or %r8, disturbed(%rip)\n"
        "    ret\n"
        "    .cfi_endproc\n");

// rdtsc; shl $32, %rdx: as the compilers of a program at work keep it, which will write it somewhere.
static const volatile unsigned char template_of_code[] = {0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20};

int main(void)
{
    uint64_t before = 0;
    unsigned wrong = 0;
    for (unsigned i = 0; i < READS; i++) {
        uint64_t value = reading(0, UINT64_C(0x123456789abcdef));
        if (i == 1 || i == READS - 1) {
            printf("step %llu\n", (unsigned long long)(value - before));
        }
        before = value;
        wrong += reading(1, UINT64_C(0xfedcba987654321)) != 7;
    }
    printf("wrong %u\ndisturbed %llu\nopcode %u\ndata %u\n", wrong, (unsigned long long)disturbed, counter_site[0],
           template_of_code[0]);
    return 0;
}
