// Where a program's thread is: its innermost functions, by name. For messages; the thread is stopped for that moment.
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <string.h>

#include "sim/attach/internal.h"

enum { FRAMES = 4, FRAMES_MAX = 64, NAME_BYTES = 96 };

struct frames {
    char *text;
    size_t room;
    unsigned count, seen;
    bool left;               // what is behind the run's own libraries
    char entered[NAME_BYTES]; // the function of theirs that the program called
};

// Those that stand between a program and the simulator: what is in them says nothing to the program's author.
static bool is_own(const char *file)
{
    return strncmp(file, "libtcasim-", 10) == 0 || strncmp(file, "libibverbs.so", 13) == 0 ||
           strncmp(file, "libtca", 6) == 0 || strncmp(file, "libcudart.so", 12) == 0 ||
           strncmp(file, "librdmacm.so", 12) == 0 || strncmp(file, "libacp.so", 9) == 0;
}

static void frame_print(struct frames *frames, const char *symbol, const char *file)
{
    size_t used = strlen(frames->text);
    snprintf(frames->text + used, frames->room - used, "%s%s (%s)", frames->count == 0 ? "" : ", called by ", symbol,
             file);
    frames->count++;
}

// Symbol tables of the files themselves only: no search for what distributions keep apart, which may ask servers.
static int no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
                        const char *link, GElf_Word checksum, char **path)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)checksum, (void)path;
    return -1;
}

static int frame_add(Dwfl_Frame *frame, void *arg)
{
    struct frames *frames = arg;
    Dwarf_Addr pc;
    bool interrupted;
    if (frames->count >= FRAMES || frames->seen++ == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, &interrupted)) {
        return DWARF_CB_ABORT;
    }
    pc -= !interrupted; // a return address is behind its call
    Dwfl_Module *module = dwfl_addrmodule(dwfl_thread_dwfl(dwfl_frame_thread(frame)), pc);
    const char *symbol = module != NULL ? dwfl_module_addrname(module, pc) : NULL;
    const char *path = module != NULL ? dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL) : NULL;
    const char *file = path != NULL ? path : "unknown memory", *slash = strrchr(file, '/');
    file = slash != NULL ? slash + 1 : file;
    symbol = symbol != NULL ? symbol : "?";
    if (!frames->left && is_own(file)) {
        snprintf(frames->entered, sizeof frames->entered, "%.40s (%.40s)", symbol, file);
        return DWARF_CB_OK;
    }
    if (!frames->left && frames->entered[0] != '\0') {
        snprintf(frames->text, frames->room, "%s", frames->entered);
        frames->count++;
    }
    frames->left = true;
    frame_print(frames, symbol, file);
    return DWARF_CB_OK;
}

bool attach_where(pid_t pid, pid_t tid, char *text, size_t room)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf, .find_debuginfo = no_debuginfo};
    struct frames frames = {.text = text, .room = room};
    Dwfl *dwfl = dwfl_begin(&callbacks);
    text[0] = '\0';
    if (dwfl != NULL && dwfl_linux_proc_report(dwfl, pid) == 0 && dwfl_report_end(dwfl, NULL, NULL) == 0 &&
        dwfl_linux_proc_attach(dwfl, pid, false) == 0) {
        (void)dwfl_getthread_frames(dwfl, tid, frame_add, &frames);
    }
    dwfl_end(dwfl);
    for (char *at = text; *at != '\0'; at++) { // the program's own words
        *at = *at >= ' ' && *at < 0x7f ? *at : '?';
    }
    return frames.count != 0;
}
