#include "verbs-shim/world/tsc_rewrite.h"

#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/attach/rdtsc.h"
#include "verbs-shim/world/instruction.h"
#include "verbs-shim/world/maps.h"

enum {
    HALT = 0xf4, // a general protection fault outside of the kernel, always
    NO_OPERATION = 0x90,
    READS_MAX = 8192, // places in the table; a power of two
    FILES_MAX = 1024,
    PAGE_BYTES = 4096,
    LINE_BYTES = 128,
    BUFFER_BYTES = 4096,
    // Decoding that begins in the middle of an instruction meets the true ones after a few, or something that is no
    // instruction. It is begun at each of these distances before the instruction in question. Of what is decoded up to
    // there, most must arrive at it: in Debian 12's libraries and programs three quarters and more, and none where the
    // bytes are a part of something else.
    NEAREST = 16,
    FARTHEST = 79
};

static struct {
    bool on;
    uintptr_t linker; // where it reports what it has mapped; 0: unknown
    struct {
        uintptr_t at; // 0: unused place
        unsigned bytes;
    } reads[READS_MAX];
    unsigned count;
    struct {
        uintptr_t begin, end;
        bool here; // in the list of mappings that is being read
    } files[FILES_MAX];
    unsigned file_count;
} rewritten;

// --- what was overwritten -------------------------------------------------------------------------------------------

static unsigned place_of(uintptr_t at)
{
    unsigned place = (unsigned)(at * UINT64_C(0x9e3779b97f4a7c15) >> 40) % READS_MAX;
    while (rewritten.reads[place].at != 0 && rewritten.reads[place].at != at) {
        place = (place + 1) % READS_MAX;
    }
    return place;
}

unsigned world_tsc_rewritten_bytes(uintptr_t at)
{
    return rewritten.on && *(const volatile unsigned char *)at == HALT ? rewritten.reads[place_of(at)].bytes : 0;
}

// --- which bytes are instructions -----------------------------------------------------------------------------------

unsigned world_tsc_read_bytes(const unsigned char *begin, const unsigned char *end, const unsigned char *at)
{
    unsigned bytes = end - at >= RDTSCP_BYTES ? rdtsc_instruction_bytes(at) : 0, arrived = 0, missed = 0;
    for (ptrdiff_t before = NEAREST; bytes != 0 && before <= FARTHEST && at - begin >= before; before++) {
        const unsigned char *next = at - before;
        unsigned length = 1;
        while (next < at && length != 0) {
            length = world_instruction_bytes(next, (size_t)(end - next));
            next += length;
        }
        arrived += next == at;
        missed += next > at;
    }
    return arrived > missed ? bytes : 0;
}

// --- overwriting ----------------------------------------------------------------------------------------------------

static void read_overwrite(unsigned char *at, unsigned bytes)
{
    unsigned place = place_of((uintptr_t)at);
    if (rewritten.count < READS_MAX / 2) {
        rewritten.count += rewritten.reads[place].at == 0;
        rewritten.reads[place].at = (uintptr_t)at;
        rewritten.reads[place].bytes = bytes;
        at[0] = HALT;
        memset(at + 1, NO_OPERATION, bytes - 1);
    }
}

// The page, and the next one if the instruction goes on there.
static bool page_protect(const unsigned char *at, unsigned bytes, int protection)
{
    uintptr_t page = (uintptr_t)at & ~(uintptr_t)(PAGE_BYTES - 1);
    return kernel_call(SYS_mprotect, (long)page, (long)((uintptr_t)at + bytes - page), protection, 0, 0, 0) == 0;
}

static void code_overwrite(unsigned char *begin, unsigned char *end)
{
    unsigned char *at = begin;
    while (at + RDTSC_BYTES <= end && (at = memchr(at, 0x0f, (size_t)(end - at) - 1)) != NULL) {
        unsigned bytes = at[1] == 0x31 || at[1] == 0x01 ? world_tsc_read_bytes(begin, end, at) : 0;
        if (bytes != 0 && page_protect(at, bytes, PROT_READ | PROT_WRITE | PROT_EXEC)) {
            read_overwrite(at, bytes);
            (void)page_protect(at, bytes, PROT_READ | PROT_EXEC);
        }
        at++;
    }
}

// --- mapped files ---------------------------------------------------------------------------------------------------

// "BEGIN-END r-xp OFFSET DEVICE INODE PATH" with an inode.
static bool is_code_of_file(const char *line, uintptr_t *begin_out, uintptr_t *end_out)
{
    static const char rights[] = " r-xp ";
    const char *rest = world_maps_range(line, begin_out, end_out);
    if (strncmp(rest, rights, sizeof rights - 1) != 0) {
        return false;
    }
    rest += sizeof rights - 1;
    for (unsigned fields = 0; fields < 2 && rest != NULL; fields++) {
        rest = strchr(rest, ' ');
        rest = rest != NULL ? rest + 1 : NULL;
    }
    return rest != NULL && *rest >= '1' && *rest <= '9';
}

// false: it was seen before. If there are too many, all count as new.
static bool file_note(uintptr_t begin, uintptr_t end)
{
    unsigned i = 0;
    while (i < rewritten.file_count && (rewritten.files[i].begin != begin || rewritten.files[i].end != end)) {
        i++;
    }
    bool is_new = i == rewritten.file_count;
    if (i < FILES_MAX) {
        rewritten.files[i].begin = begin;
        rewritten.files[i].end = end;
        rewritten.files[i].here = true;
        rewritten.file_count += is_new;
    }
    return is_new;
}

// Another file may be mapped there later.
static void files_forget_gone(void)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < rewritten.file_count; i++) {
        if (rewritten.files[i].here) {
            rewritten.files[kept++] = rewritten.files[i];
        }
    }
    rewritten.file_count = kept;
}

// The list is read to its end first, as overwriting splits mappings for a moment.
static void files_overwrite(void)
{
    char buffer[BUFFER_BYTES], line[LINE_BYTES];
    static uintptr_t begins[FILES_MAX], ends[FILES_MAX];
    unsigned count = 0;
    struct world_maps maps;
    for (unsigned i = 0; i < rewritten.file_count; i++) {
        rewritten.files[i].here = false;
    }
    if (!world_maps_open(&maps, buffer, sizeof buffer)) {
        return;
    }
    while (count < FILES_MAX && world_maps_line(&maps, line, sizeof line)) {
        uintptr_t begin, end;
        if (is_code_of_file(line, &begin, &end) && file_note(begin, end)) {
            begins[count] = begin;
            ends[count++] = end;
        }
    }
    world_maps_close(&maps);
    files_forget_gone();
    for (unsigned i = 0; i < count; i++) {
        code_overwrite((unsigned char *)begins[i], (unsigned char *)ends[i]); // NOLINT(performance-no-int-to-ptr)
    }
}

// The function that the linker calls for debuggers does nothing.
static void linker_report(void)
{
    unsigned char *function = (unsigned char *)_r_debug.r_brk; // NOLINT(performance-no-int-to-ptr)
    if (function != NULL && page_protect(function, 1, PROT_READ | PROT_WRITE | PROT_EXEC)) {
        *(volatile unsigned char *)function = HALT;
        (void)page_protect(function, 1, PROT_READ | PROT_EXEC);
        rewritten.linker = (uintptr_t)function;
    }
}

void world_tsc_rewrite_start(void)
{
    rewritten.on = true;
    files_overwrite();
    linker_report();
}

bool world_tsc_rewrite_mapped(greg_t *registers)
{
    if (rewritten.linker == 0 || (uintptr_t)registers[REG_RIP] != rewritten.linker) {
        return false;
    }
    files_overwrite();
    registers[REG_RIP] = *(greg_t *)registers[REG_RSP]; // ret; NOLINT(performance-no-int-to-ptr)
    registers[REG_RSP] += (greg_t)sizeof(greg_t);
    return true;
}
