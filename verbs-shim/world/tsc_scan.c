#include "verbs-shim/world/tsc_scan.h"

#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "verbs-shim/attach/rdtsc.h"
#include "verbs-shim/world/code_jump.h"
#include "verbs-shim/world/cpuid.h"
#include "verbs-shim/world/instruction.h"

enum { SITES_MAX = 1024, PAGE_BYTES = 4096, BREAKPOINT = 0xcc };

// One thread of the process runs at a time; the dynamic linker's lock covers what is loaded.
static struct site {
    uintptr_t at;
    unsigned bytes;
} sites[SITES_MAX];
static unsigned site_count;
static bool counter_too;

unsigned world_tsc_scan_bytes(uintptr_t at)
{
    for (unsigned i = 0; i < site_count; i++) {
        if (sites[i].at == at) {
            return *(const volatile unsigned char *)at == BREAKPOINT ? sites[i].bytes : 0;
        }
    }
    return 0;
}

bool world_tsc_scan_is_cpuid(uintptr_t at)
{
    return ((const unsigned char *)at)[1] == 0xa2; // the second byte is still there
}

// The length of an instruction that gets a breakpoint; 0: another one.
static unsigned wanted_bytes(const unsigned char *code)
{
    return world_cpuid_is(code) ? (unsigned)WORLD_CPUID_BYTES : counter_too ? rdtsc_instruction_bytes(code) : 0;
}

// --- functions ------------------------------------------------------------------------------------------------------

// The forms of addresses that linkers write on x86-64 (DW_EH_PE_*): four signed bytes, relative to their own position
// or to the table.
enum { FORM_OF_POSITION = 0x1b, FORM_COUNT = 0x03, FORM_OF_TABLE = 0x3b, VERSION = 1 };

struct unwind_table {
    unsigned char version, form_of_frames, form_of_count, form_of_entries;
    int32_t frames;
    uint32_t count;
    struct {
        int32_t function, description;
    } entries[];
};

// Its beginning and end, from the description of a function: length, position of the common part, beginning, length.
struct unwind_description {
    uint32_t bytes, common;
    int32_t begin;
    uint32_t function_bytes;
};

// The beginning of the function that contains the address; 0: there is none that is known.
static uintptr_t function_begin(const struct unwind_table *table, uintptr_t address)
{
    intptr_t wanted = (intptr_t)(address - (uintptr_t)table);
    uint32_t first = 0, end = table->count;
    while (end - first > 1) {
        uint32_t middle = first + (end - first) / 2;
        *(table->entries[middle].function <= wanted ? &first : &end) = middle;
    }
    if (table->count == 0 || table->entries[first].function > wanted) {
        return 0;
    }
    struct unwind_description description;
    uintptr_t begin = (uintptr_t)table + (uintptr_t)(intptr_t)table->entries[first].function;
    uintptr_t at = (uintptr_t)table + (uintptr_t)(intptr_t)table->entries[first].description;
    memcpy(&description, (const void *)at, sizeof description);
    uintptr_t described = at + offsetof(struct unwind_description, begin) + (uintptr_t)(intptr_t)description.begin;
    return described == begin && address - begin < description.function_bytes ? begin : 0;
}

// Assembler code often lacks unwind information, and text may hold data. There the instruction counts if it is followed
// by that which joins its two halves: six bytes that data will not have.
static bool is_joined(uintptr_t address)
{
    static const unsigned char shift[] = {0x48, 0xc1, 0xe2, 0x20}; // shl $32, %rdx
    const unsigned char *code = (const unsigned char *)address;    // NOLINT(performance-no-int-to-ptr)
    unsigned bytes = rdtsc_instruction_bytes(code);
    return bytes != 0 && memcmp(code + bytes, shift, sizeof shift) == 0;
}

static bool begins_there(uintptr_t function, uintptr_t address)
{
    uintptr_t at = function;
    if (function == 0) {
        return is_joined(address);
    }
    while (at != 0 && at < address) {
        unsigned replaced = world_tsc_scan_bytes(at);
        unsigned bytes = replaced != 0 ? replaced : world_instruction_bytes((const unsigned char *)at);
        at = bytes != 0 ? at + bytes : 0;
    }
    return at == address;
}

// --- the text of a file -----------------------------------------------------------------------------------------------

static void breakpoint_set(uintptr_t at, unsigned bytes)
{
    void *page = (void *)(at & ~(uintptr_t)(PAGE_BYTES - 1)); // NOLINT(performance-no-int-to-ptr)
    if (site_count < SITES_MAX && mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) {
        sites[site_count++] = (struct site){at, bytes};
        *(volatile unsigned char *)at = BREAKPOINT;
        (void)mprotect(page, PAGE_BYTES, PROT_READ | PROT_EXEC);
    }
}

static void text_scan(uintptr_t begin, size_t bytes, const struct unwind_table *table)
{
    const unsigned char *at = (const unsigned char *)begin, *end = at + bytes;
    const ptrdiff_t room = RDTSCP_BYTES + 4; // with what follows (is_joined)
    // Of CPUID the second byte is looked for, which is the rarer one.
    const ptrdiff_t before = counter_too ? 0 : 1;
    const int byte = counter_too ? 0x0f : 0xa2;
    while (end - at > room && (at = memchr(at + before, byte, (size_t)(end - at - room))) != NULL) {
        at -= before;
        unsigned length = wanted_bytes(at);
        if (length != 0 && begins_there(function_begin(table, (uintptr_t)at), (uintptr_t)at)) {
            breakpoint_set((uintptr_t)at, length);
        }
        at++;
    }
}

static const struct unwind_table *table_find(const struct dl_phdr_info *file)
{
    const struct unwind_table *table = NULL;
    for (unsigned i = 0; i < file->dlpi_phnum; i++) {
        if (file->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) {
            table = (const struct unwind_table *)(file->dlpi_addr + file->dlpi_phdr[i].p_vaddr);
        }
    }
    bool known = table != NULL && table->version == VERSION && table->form_of_frames == FORM_OF_POSITION &&
                 table->form_of_count == FORM_COUNT && table->form_of_entries == FORM_OF_TABLE;
    return known ? table : NULL;
}

// This library carries the instructions out itself.
static bool is_own(const struct dl_phdr_info *file)
{
    bool is = false;
    for (unsigned i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[i];
        is = is || (part->p_type == PT_LOAD && (uintptr_t)is_own - file->dlpi_addr - part->p_vaddr < part->p_memsz);
    }
    return is;
}

static bool is_scanned(uintptr_t base)
{
    enum { FILES_MAX = 512 };
    static uintptr_t bases[FILES_MAX];
    static unsigned count;
    for (unsigned i = 0; i < count; i++) {
        if (bases[i] == base) {
            return true;
        }
    }
    bases[count < FILES_MAX ? count++ : FILES_MAX - 1] = base;
    return false;
}

static int file_scan(struct dl_phdr_info *file, size_t bytes, void *unused)
{
    (void)bytes, (void)unused;
    const struct unwind_table *table = table_find(file);
    bool is_linker = file->dlpi_addr == getauxval(AT_BASE);
    bool is_vdso = table != NULL && ((uintptr_t)table ^ getauxval(AT_SYSINFO_EHDR)) < 2 * PAGE_BYTES;
    if (table == NULL || is_linker || is_vdso || is_own(file) || is_scanned((uintptr_t)table)) {
        return 0;
    }
    for (unsigned i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0 && (part->p_flags & PF_W) == 0) {
            text_scan(file->dlpi_addr + part->p_vaddr, part->p_filesz, table);
        }
    }
    return 0;
}

// --- libraries that are loaded later ----------------------------------------------------------------------------------

static void loaded(void)
{
    (void)dl_iterate_phdr(file_scan, NULL);
}

// The dynamic linker calls an empty function for debuggers when the list of files has changed (<link.h>, r_brk): it
// becomes a jump, if it is empty and has room.
static void linker_ask(void)
{
    enum { RETURN = 0xc3 };
    unsigned char *at = (unsigned char *)_r_debug.r_brk; // NOLINT(performance-no-int-to-ptr)
    bool room = at != NULL && at[0] == RETURN && (uintptr_t)at % 16 == 0;
    uintptr_t page = (uintptr_t)at & ~(uintptr_t)(PAGE_BYTES - 1);
    if (room && mprotect((void *)page, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) {
        world_code_jump(at, loaded);
        (void)mprotect((void *)page, PAGE_BYTES, PROT_READ | PROT_EXEC);
    }
}

void world_tsc_scan_start(bool counter)
{
    counter_too = counter;
    loaded();
    linker_ask();
}
