#include "verbs-shim/world/tsc_jump.h"

#include <cpuid.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "verbs-shim/attach/rdtsc.h"
#include "verbs-shim/world/instruction.h"
#include "verbs-shim/world/text.h"

enum {
    SITES_MAX = 256,
    READS_BEFORE = 8, // an instruction that rarely runs is not moved
    REGIONS_MAX = 8,
    JUMP_BYTES = 5,
    PAGE_BYTES = 4096,
    BREAKPOINT = 0xcc,
    STUB_BYTES = 64,
    MOVED_AT = 19,             // offset in a stub
    REGION_BYTES = 2 * 0x10000 // half of it contains any two bytes of the jump's distance
};

// One thread of the process runs at a time, and no code in here gives the run token back.
static struct site {
    uintptr_t at;
    unsigned reads;
    unsigned char *stub; // NULL: none yet
} sites[SITES_MAX];
static unsigned char *regions[REGIONS_MAX]; // of stubs

// --- the way in -----------------------------------------------------------------------------------------------------
// As for a signal handler of the kernel, all registers of the program are saved: flags, general and vector registers
// (XSAVE: Intel 64 SDM volume 1, chapter 13). The result is in rdx:rax.

__attribute__((used)) static uint64_t state_bytes; // all enabled state, with the header

__asm__(".text\n"
        ".globl world_tsc_entry\n"
        ".hidden world_tsc_entry\n"
        ".type world_tsc_entry, @function\n"
        "world_tsc_entry:\n"
        "    pushfq\n"
        "    push %rcx\n    push %rsi\n    push %rdi\n    push %r8\n    push %r9\n    push %r10\n    push %r11\n"
        "    push %rbx\n"
        "    mov %rsp, %rbx\n"
        "    cld\n"
        "    sub state_bytes(%rip), %rsp\n"
        "    and $-64, %rsp\n"
        "    lea 512(%rsp), %rdi\n" // the header must be zero
        "    xor %eax, %eax\n"
        "    mov $8, %ecx\n"
        "    rep stosq\n"
        "    mov $-1, %eax\n"
        "    mov $-1, %edx\n"
        "    xsave64 (%rsp)\n"
        "    mov 72(%rbx), %rdi\n" // the return address
        "    call world_tsc_now\n"
        "    mov %rax, %rcx\n"
        "    mov $-1, %eax\n"
        "    mov $-1, %edx\n"
        "    xrstor64 (%rsp)\n"
        "    mov %rbx, %rsp\n"
        "    mov %ecx, %eax\n"
        "    shr $32, %rcx\n"
        "    mov %ecx, %edx\n"
        "    pop %rbx\n"
        "    pop %r11\n    pop %r10\n    pop %r9\n    pop %r8\n    pop %rdi\n    pop %rsi\n    pop %rcx\n"
        "    popfq\n"
        "    ret\n"
        ".size world_tsc_entry, .-world_tsc_entry\n");

// --- making a jump --------------------------------------------------------------------------------------------------

// Memory that a jump at this address reaches.
static unsigned char *region_near(uintptr_t at)
{
    const uintptr_t step = 16u << 20, reach = 1u << 30;
    uintptr_t base = at & ~(uintptr_t)0xffff;
    for (uintptr_t distance = step; distance < reach; distance += step) {
        const uintptr_t wanted[] = {base - distance, base + distance};
        for (unsigned i = 0; i < 2; i++) {
            void *found = mmap((void *)wanted[i], REGION_BYTES, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (found == (void *)wanted[i]) {
                return found;
            }
            if (found != MAP_FAILED) { // an older kernel may map elsewhere
                munmap(found, REGION_BYTES);
            }
        }
    }
    return NULL;
}

// A stub address for which the second byte of the jump's distance is a breakpoint. NULL: it is in use, or too far away.
static unsigned char *stub_address(uintptr_t at, unsigned char *region)
{
    uintptr_t behind = at + JUMP_BYTES, base = (uintptr_t)region;
    unsigned char *stub = region + ((behind + BREAKPOINT * 0x100u - base) & 0xffff);
    intptr_t distance = (intptr_t)((uintptr_t)stub - behind);
    if (distance > INT32_MAX || distance < INT32_MIN) {
        return NULL;
    }
    for (unsigned i = 0; i < SITES_MAX; i++) {
        if (sites[i].stub != NULL && sites[i].stub + STUB_BYTES > stub && stub + STUB_BYTES > sites[i].stub) {
            return NULL;
        }
    }
    return stub;
}

// In the first region that has a place for it, or in a new one.
static unsigned char *stub_find(uintptr_t at, unsigned char **region_out)
{
    unsigned char *stub = NULL;
    for (unsigned i = 0; i < REGIONS_MAX && stub == NULL; i++) {
        regions[i] = regions[i] != NULL ? regions[i] : region_near(at);
        stub = regions[i] != NULL ? stub_address(at, regions[i]) : NULL;
        *region_out = regions[i];
    }
    return stub;
}

static void stub_write(unsigned char *stub, uintptr_t at, unsigned moved_bytes)
{
    // lea -128(%rsp), %rsp (the red zone); call *entry; lea 128(%rsp), %rsp; the moved instruction; jmp *back
    unsigned char code[STUB_BYTES] = {0x48, 0x8d, 0x64, 0x24, 0x80, 0xff, 0x15, STUB_BYTES - 16 - 11,
                                      0,    0,    0,    0x48, 0x8d, 0xa4, 0x24, 0x80};
    unsigned end = MOVED_AT + moved_bytes;
    memcpy(code + MOVED_AT, (const void *)(at + RDTSC_BYTES), moved_bytes);
    code[end] = 0xff;
    code[end + 1] = 0x25;
    code[end + 2] = (unsigned char)(STUB_BYTES - 8 - end - 6);
    const uintptr_t entry = (uintptr_t)world_tsc_entry, back = at + RDTSC_BYTES + moved_bytes;
    memcpy(code + STUB_BYTES - 16, &entry, 8);
    memcpy(code + STUB_BYTES - 8, &back, 8);
    memcpy(stub, code, sizeof code);
}

static bool jump_write(uintptr_t at, const unsigned char *stub)
{
    unsigned char jump[JUMP_BYTES] = {0xe9};
    int32_t distance = (int32_t)((intptr_t)stub - (intptr_t)(at + JUMP_BYTES));
    memcpy(jump + 1, &distance, sizeof distance);
    uintptr_t page = at & ~(uintptr_t)(PAGE_BYTES - 1);
    size_t bytes = at + JUMP_BYTES - page;
    if (mprotect((void *)page, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        return false;
    }
    memcpy((void *)at, jump, sizeof jump);
    (void)mprotect((void *)page, bytes, PROT_READ | PROT_EXEC);
    return true;
}

static void jump_make(struct site *site)
{
    unsigned moved_bytes = world_instruction_movable_bytes((const unsigned char *)(site->at + RDTSC_BYTES)), a, c, d;
    unsigned int bytes = 0;
    if (moved_bytes + RDTSC_BYTES < JUMP_BYTES || !world_text_fixed(site->at, RDTSC_BYTES + moved_bytes) ||
        __get_cpuid_count(0xd, 0, &a, &bytes, &c, &d) == 0) {
        return;
    }
    state_bytes = bytes;
    unsigned char *region, *stub = stub_find(site->at, &region);
    if (stub == NULL || mprotect(region, REGION_BYTES, PROT_READ | PROT_WRITE) != 0) {
        return;
    }
    stub_write(stub, site->at, moved_bytes);
    if (mprotect(region, REGION_BYTES, PROT_READ | PROT_EXEC) == 0 && jump_write(site->at, stub)) {
        site->stub = stub;
    }
}

// --- for the handlers -----------------------------------------------------------------------------------------------

uintptr_t world_tsc_jump_note(uintptr_t at)
{
    struct site *site = NULL;
    for (unsigned i = 0; i < SITES_MAX && site == NULL; i++) {
        if (sites[i].at == at || sites[i].at == 0) {
            site = &sites[i];
            site->at = at;
        }
    }
    if (site != NULL && ++site->reads == READS_BEFORE) {
        int saved = errno;
        jump_make(site);
        errno = saved;
    }
    bool moved = site != NULL && site->stub != NULL && *(const unsigned char *)at == 0xe9;
    return moved ? (uintptr_t)site->stub + MOVED_AT : at + RDTSC_BYTES;
}

uintptr_t world_tsc_jump_behind(uintptr_t at)
{
    for (unsigned i = 0; i < SITES_MAX && sites[i].at != 0; i++) {
        if (sites[i].stub != NULL && at == sites[i].at + RDTSC_BYTES && *(const unsigned char *)sites[i].at == 0xe9) {
            return (uintptr_t)sites[i].stub + MOVED_AT;
        }
    }
    return 0;
}
