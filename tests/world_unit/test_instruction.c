// The operands that instructions of polling loops read and change. The bytes come from the GNU assembler; their source
// is the comment on the line.
#include "tests/shim/test.h"
#include "verbs-shim/world/instruction.h"

enum { A = 1, C = 2, D = 4, B = 8, SP = 16, BP = 32, SI = 64, DI = 128, R8 = 256, R9 = 512, R10 = 1024, R11 = 2048, R12 = 4096 };
enum { R13 = 8192, R14 = 16384 };

static const struct row {
    const char *text;
    unsigned char code[12];
    unsigned bytes;
    uintptr_t address; // register n has the value n << 12; relative addresses are without that of the code
    unsigned address_registers, written;
} rows[] = {
    {"movzbl 0(%rbp),%eax", {0x0f, 0xb6, 0x45, 0x00}, 1, 0x5000, BP, A},
    {"cmpl $3,0x1f4(%r14)", {0x41, 0x83, 0xbe, 0xf4, 1, 0, 0, 3}, 4, 0xe1f4, R14, 0},
    {"mov -8(%rbp),%rax", {0x48, 0x8b, 0x45, 0xf8}, 8, 0x4ff8, BP, A},
    {"mov (%r9,%rcx,8),%r12", {0x4d, 0x8b, 0x24, 0xc9}, 8, 0x11000, R9 | C, R12},
    {"cmpb $0,(%r12)", {0x41, 0x80, 0x3c, 0x24, 0}, 1, 0xc000, R12, 0},
    {"testl $1,4(%rsp)", {0xf7, 0x44, 0x24, 4, 1, 0, 0, 0}, 4, 0x4004, SP, 0},
    {"movswl 2(%r13,%r13,1),%ecx", {0x43, 0x0f, 0xbf, 0x4c, 0x2d, 2}, 2, 0x1a002, R13, C},
    {"movslq 0x80(%rdi),%rsi", {0x48, 0x63, 0xb7, 0x80, 0, 0, 0}, 4, 0x7080, DI, SI},
    {"mov 0x1000(,%rbx,4),%edx", {0x8b, 0x14, 0x9d, 0, 0x10, 0, 0}, 4, 0xd000, B, D},
    {"mov (%rsi),%ah", {0x8a, 0x26}, 1, 0x6000, SI, A},
    {"mov (%rsi),%sil", {0x40, 0x8a, 0x36}, 1, 0x6000, SI, SI},
    {"cmovne (%rdx),%rdi", {0x48, 0x0f, 0x45, 0x3a}, 8, 0x2000, D, DI},
    {"cmp %ah,%bl", {0x38, 0xe3}, 0, 0, 0, 0},
    {"lea 8(%rsi,%rdx,2),%rdi", {0x48, 0x8d, 0x7c, 0x56, 8}, 0, 0, 0, DI},
    {"add $1,%r10", {0x49, 0x83, 0xc2, 1}, 0, 0, 0, R10},
    {"sub %rax,%r11", {0x49, 0x29, 0xc3}, 0, 0, 0, R11},
    {"sete %al", {0x0f, 0x94, 0xc0}, 0, 0, 0, A},
    {"mov $5,%r9d", {0x41, 0xb9, 5, 0, 0, 0}, 0, 0, 0, R9},
    {"or (%rdx),%cl", {0x0a, 0x0a}, 1, 0x2000, D, C},
    {"or %dl,%al", {0x08, 0xd0}, 0, 0, 0, A},
    {"and $0x1000,%eax", {0x25, 0, 0x10, 0, 0}, 0, 0, 0, A},
    {"shl $3,%rdx", {0x48, 0xc1, 0xe2, 3}, 0, 0, 0, D},
    {"movzbl (%rdi),%esi", {0x0f, 0xb6, 0x37}, 1, 0x7000, DI, SI},
    {"movsbl (%rdx),%edi", {0x0f, 0xbe, 0x3a}, 1, 0x2000, D, DI},
    {"movzwl (%rdi),%esi", {0x0f, 0xb7, 0x37}, 2, 0x7000, DI, SI},
    {"sete %ah", {0x0f, 0x94, 0xc4}, 0, 0, 0, A},
    {"pause", {0xf3, 0x90}, 0, 0, 0, 0},
    {"jne", {0x75, 0xfe}, 0, 0, 0, 0},
    {"xchg %eax,%r8d", {0x41, 0x90}, 0, 0, 0, A | R8},
    {"bt %ecx,%edx", {0x0f, 0xa3, 0xca}, 0, 0, 0, 0},
    {"bswap %eax", {0x0f, 0xc8}, 0, 0, 0, A},
    {"not %rbx", {0x48, 0xf7, 0xd3}, 0, 0, 0, B},
    {"imul (%rsi),%rax", {0x48, 0x0f, 0xaf, 0x06}, 8, 0x6000, SI, A},
    {"movbe (%rdi),%eax", {0x0f, 0x38, 0xf0, 0x07}, 4, 0x7000, DI, A},
    {"movabs 0x1122334455667788,%al", {0xa0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}, 1, 0x1122334455667788, 0, A},
};

// Each of the sixteen registers n has the value n << 12.
static const greg_t *registers_fill(gregset_t registers)
{
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    for (int i = 0; i < 16; i++) {
        registers[order[i]] = (greg_t)i << 12;
    }
    return registers;
}

TEST(Instruction, TellsWhatIsReadAndWhichRegistersTheAddressIsMadeOfAndWhichAreChanged)
{
    gregset_t registers;
    (void)registers_fill(registers);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        struct world_instruction instruction = {0};
        EXPECT_STREQ(world_instruction_decode(row->code, registers, &instruction) ? row->text : "unknown", row->text);
        EXPECT_EQ(instruction.bytes, row->bytes);
        EXPECT_EQ(instruction.address, row->address);
        EXPECT_EQ(instruction.address_registers, row->address_registers);
        EXPECT_EQ(instruction.written_registers, row->written);
    }
}

TEST(Instruction, AnAddressBesideTheCodeCountsFromTheNextInstruction)
{
    static const unsigned char with_byte[] = {0x83, 0x3d, 0x10, 0, 0, 0, 3};             // cmpl $3,0x10(%rip)
    static const unsigned char with_word[] = {0x66, 0x81, 0x3d, 0, 0, 0, 0, 0x34, 0x12}; // cmpw $0x1234,(%rip)
    static const unsigned char with_nothing[] = {0x48, 0x8b, 0x05, 0xf0, 255, 255, 255}; // mov -0x10(%rip),%rax
    gregset_t registers;
    struct world_instruction instruction;
    (void)registers_fill(registers);
    EXPECT_TRUE(world_instruction_decode(with_byte, registers, &instruction));
    EXPECT_EQ(instruction.address, (uintptr_t)with_byte + 7 + 0x10);
    EXPECT_TRUE(world_instruction_decode(with_word, registers, &instruction));
    EXPECT_EQ(instruction.address, (uintptr_t)with_word + 9);
    EXPECT_EQ(instruction.bytes, 2);
    EXPECT_TRUE(world_instruction_decode(with_nothing, registers, &instruction));
    EXPECT_EQ(instruction.address, (uintptr_t)with_nothing + 7 - 0x10);
    EXPECT_EQ(instruction.address_registers, 0);
}

TEST(Instruction, OfOnesThatDoMoreNothingIsKnown)
{
    static const unsigned char codes[][8] = {
        {0x48, 0x89, 0x02},             // mov %rax,(%rdx)
        {0x83, 0x02, 0x01},             // addl $1,(%rdx)
        {0x50},                         // push %rax
        {0x64, 0x48, 0x8b, 0x04, 0x25}, // mov %fs:...,%rax
        {0x0f, 0x94, 0x02},             // sete (%rdx)
        {0xf3, 0x0f, 0x7e, 0x02},       // movq (%rdx),%xmm0
        {0xff, 0xd0},                   // call *%rax
        {0xff, 0x00},                   // incl (%rax)
        {0x48, 0x87, 0x02},             // xchg %rax,(%rdx)
        {0x0f, 0x31},                   // rdtsc
        {0x0f, 0xa2},                   // cpuid
        {0x0f, 0x05},                   // syscall
        {0xc3},                         // ret
        {0xa5},                         // movsl
        {0xf0, 0x0f, 0xb1, 0x0a},       // lock cmpxchg %ecx,(%rdx)
        {0x67, 0x8b, 0x06},             // mov (%esi),%eax: the upper half of the register is no part of the address
    };
    gregset_t registers;
    struct world_instruction instruction;
    (void)registers_fill(registers);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        EXPECT_FALSE(world_instruction_decode(codes[i], registers, &instruction));
    }
}

TEST(Instruction, MayBeMovedWhereItDoesTheSameElsewhere)
{
    static const struct {
        unsigned char code[12];
        unsigned bytes;
    } moved[] = {
        {{0x48, 0xc1, 0xe2, 0x20}, 4},             // shl $32,%rdx
        {{0x48, 0x09, 0xd0}, 3},                   // or %rdx,%rax
        {{0x89, 0xd2}, 2},                         // mov %edx,%edx
        {{0x48, 0x89, 0x44, 0x24, 8}, 5},          // mov %rax,8(%rsp)
        {{0x48, 0x2b, 0x84, 0xcb, 0, 1, 0, 0}, 8}, // sub 0x100(%rbx,%rcx,8),%rax
        {{0x41, 0xb9, 5, 0, 0, 0}, 6},             // mov $5,%r9d
        {{0x48, 0x03, 0x05, 0, 0, 0, 0}, 0},       // add 0(%rip),%rax
        {{0x48, 0x8d, 0x05, 0, 0, 0, 0}, 0},       // lea 0(%rip),%rax
        {{0x75, 0xfe}, 0},                         // jne
        {{0xeb, 0xfe}, 0},                         // jmp
        {{0xff, 0xe0}, 0},                         // jmp *%rax
        {{0xe8, 0, 0, 0, 0}, 0},                   // call
        {{0xc3}, 0},                               // ret
        {{0x0f, 0x31}, 0},                         // rdtsc
        {{0x06}, 0},                               // no instruction of this mode
    };
    for (size_t i = 0; i < sizeof moved / sizeof moved[0]; i++) {
        EXPECT_EQ(world_instruction_movable_bytes(moved[i].code), moved[i].bytes);
    }
}
