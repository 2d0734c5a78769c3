// The copy of the program's memory: words that were read or written.
#include "verbs-shim/world/interpret_internal.h"
#include "verbs-shim/world/interpret_vary.h"

#include <string.h>

enum { SLOTS = 2 * INTERPRET_WORDS_MAX, WORD_BYTES = 8 };

// Of one interpretation.
struct memory {
    struct interpret_word words[INTERPRET_WORDS_MAX];
    struct interpret_halves halves[INTERPRET_WORDS_MAX]; // of the words, if interpret_vary is on
    struct {
        uint16_t generation, word; // of interpret_begin; 0: free
    } slots[SLOTS];
    uint16_t generation;
    unsigned count;
    struct interpret_word *last; // that was looked for; NULL: none
    uint64_t lowest_stack;
    bool failed; // no room, or memory that cannot be read
};

// One thread of the process runs at a time.
static struct memory memories[INTERPRET_COPIES], *memory = &memories[0];

void interpret_select(unsigned copy)
{
    memory = &memories[copy];
}

void interpret_begin(void)
{
    if (++memory->generation == 0) {
        memset(memory->slots, 0, sizeof memory->slots);
        memory->generation = 1;
    }
    memory->count = 0;
    memory->last = NULL;
    memory->failed = false;
    memory->lowest_stack = UINT64_MAX;
}

void interpret_stack_note(uint64_t stack)
{
    memory->lowest_stack = stack < memory->lowest_stack ? stack : memory->lowest_stack;
}

uint64_t interpret_lowest_stack(void)
{
    return memory->lowest_stack;
}

void interpret_rebase(void)
{
    for (unsigned i = 0; i < memory->count; i++) {
        memory->words[i].since[INTERPRET_BASE] = (struct interpret_since){.value = memory->words[i].now};
    }
}

bool interpret_memory_failed(void)
{
    return memory->failed;
}

const struct interpret_word *interpret_words(unsigned *count_out)
{
    *count_out = memory->count;
    return memory->words;
}

// --- reading what may not be there ------------------------------------------------------------------------------------
// A fault at `interpret_peek_load` or `interpret_poke_store` goes on at `interpret_peek_failed` (interpret_fault).

extern const char interpret_peek_load[] __attribute__((visibility("hidden")));
extern const char interpret_peek_failed[] __attribute__((visibility("hidden")));
extern const char interpret_poke_store[] __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".globl interpret_peek\n"
        ".hidden interpret_peek\n"
        ".type interpret_peek, @function\n"
        "interpret_peek:\n"
        "    .cfi_startproc\n"
        ".globl interpret_peek_load\n"
        ".hidden interpret_peek_load\n"
        "interpret_peek_load:\n"
        "    mov (%rdi), %rax\n"
        "    mov %rax, (%rsi)\n"
        "    mov $1, %eax\n"
        "    ret\n"
        ".globl interpret_peek_failed\n"
        ".hidden interpret_peek_failed\n"
        "interpret_peek_failed:\n"
        "    xor %eax, %eax\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size interpret_peek, .-interpret_peek\n"
        ".globl interpret_poke\n"
        ".hidden interpret_poke\n"
        ".type interpret_poke, @function\n"
        "interpret_poke:\n"
        "    .cfi_startproc\n"
        ".globl interpret_poke_store\n"
        ".hidden interpret_poke_store\n"
        "interpret_poke_store:\n"
        "    mov %rsi, (%rdi)\n"
        "    mov $1, %eax\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size interpret_poke, .-interpret_poke\n");

bool interpret_fault(greg_t *registers)
{
    bool peeked = (uintptr_t)registers[REG_RIP] == (uintptr_t)interpret_peek_load ||
                  (uintptr_t)registers[REG_RIP] == (uintptr_t)interpret_poke_store;
    registers[REG_RIP] = peeked ? (greg_t)(uintptr_t)interpret_peek_failed : registers[REG_RIP];
    return peeked;
}

// --- words ------------------------------------------------------------------------------------------------------------

static struct interpret_word *word_at(uint64_t address)
{
    static struct interpret_word none;
    if (memory->last != NULL && memory->last->address == address) {
        return memory->last;
    }
    uint32_t slot = (uint32_t)(address / WORD_BYTES * UINT64_C(0x9e3779b97f4a7c15) >> 40) % SLOTS;
    while (memory->slots[slot].generation == memory->generation) {
        struct interpret_word *word = &memory->words[memory->slots[slot].word];
        if (word->address == address) {
            return memory->last = word;
        }
        slot = (slot + 1) % SLOTS;
    }
    uint64_t value;
    if (memory->count == INTERPRET_WORDS_MAX || !interpret_peek(address, &value)) {
        memory->failed = true;
        none = (struct interpret_word){.address = address};
        return &none;
    }
    memory->slots[slot].generation = memory->generation;
    memory->slots[slot].word = (uint16_t)memory->count;
    memory->halves[memory->count] = (struct interpret_halves){0};
    struct interpret_word *word = &memory->words[memory->count++];
    *word = (struct interpret_word){.address = address, .now = value, .since = {{.value = value}, {.value = value}}};
    return memory->last = word;
}

struct interpret_halves *interpret_memory_halves(uint64_t address)
{
    static struct interpret_halves none;
    const struct interpret_word *word = word_at(address);
    if (memory->failed) {
        none = (struct interpret_halves){0};
        return &none;
    }
    return &memory->halves[word - memory->words];
}

bool interpret_was_read(uint64_t address)
{
    return word_at(address)->since[INTERPRET_BEGINNING].read != 0;
}

// The part of a word that an access to `bytes` bytes at this offset touches.
static uint8_t mask_of(unsigned offset, unsigned bytes)
{
    return (uint8_t)(((1u << bytes) - 1) << offset);
}

static void read_note(struct interpret_word *word, uint8_t bytes)
{
    word->whole = word->whole || bytes == INTERPRET_BYTES_ALL;
    for (unsigned i = 0; i < INTERPRET_POINTS; i++) {
        word->since[i].read |= (uint8_t)(bytes & ~word->since[i].written);
    }
}

static void written_note(struct interpret_word *word, uint8_t bytes)
{
    for (unsigned i = 0; i < INTERPRET_POINTS; i++) {
        word->since[i].written |= bytes;
    }
}

uint64_t interpret_load(uint64_t address, unsigned bytes)
{
    unsigned offset = (unsigned)(address % WORD_BYTES), first = WORD_BYTES - offset;
    first = first < bytes ? first : bytes;
    struct interpret_word *word = word_at(address - offset);
    read_note(word, mask_of(offset, first));
    uint64_t value = word->now >> 8 * offset;
    if (first < bytes) {
        word = word_at(address - offset + WORD_BYTES);
        read_note(word, mask_of(0, bytes - first));
        value = (value & (UINT64_MAX >> 8 * (WORD_BYTES - first))) | word->now << 8 * first;
    }
    return bytes == WORD_BYTES ? value : value & ((UINT64_C(1) << 8 * bytes) - 1);
}

uint64_t interpret_now(uint64_t address)
{
    return word_at(address)->now;
}

void interpret_change(uint64_t address, uint64_t value)
{
    word_at(address)->now = value;
}

void interpret_preset(uint64_t address, uint64_t value, uint64_t mask)
{
    struct interpret_word *word = word_at(address);
    word->now = (word->now & ~mask) | (value & mask);
    for (unsigned i = 0; i < INTERPRET_POINTS; i++) {
        word->since[i].value = word->now;
    }
}

void interpret_store(uint64_t address, unsigned bytes, uint64_t value)
{
    unsigned offset = (unsigned)(address % WORD_BYTES), first = WORD_BYTES - offset;
    first = first < bytes ? first : bytes;
    uint64_t low = first == WORD_BYTES ? UINT64_MAX : (UINT64_C(1) << 8 * first) - 1;
    struct interpret_word *word = word_at(address - offset);
    word->now = (word->now & ~(low << 8 * offset)) | (value & low) << 8 * offset;
    written_note(word, mask_of(offset, first));
    if (first < bytes) {
        uint64_t high = (UINT64_C(1) << 8 * (bytes - first)) - 1;
        word = word_at(address - offset + WORD_BYTES);
        word->now = (word->now & ~high) | (value >> 8 * first & high);
        written_note(word, mask_of(0, bytes - first));
    }
}
