// Finds the innermost functions of a program's thread, by name, for messages. The thread is stopped meanwhile.
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "sim/attach/internal.h"
#include "verbs-shim/attach/kernel_call.h"

enum { FRAMES = 4, FRAMES_MAX = 64, NAME_BYTES = 96 };

struct frames {
    char *text;
    size_t room;
    unsigned count, seen;
    bool left;                // the frames of the run's own and the system's libraries are passed
    char entered[NAME_BYTES]; // the function of these libraries that the program called
};

// Libraries through which a program reaches the kernel. Much inside of them has no name.
static bool is_system(const char *file)
{
    return strncmp(file, "libc.so", 7) == 0 || strncmp(file, "libpthread.so", 13) == 0 ||
           strncmp(file, "ld-linux", 8) == 0 || strncmp(file, "linux-vdso", 10) == 0 || file[0] == '[';
}

// Libraries between a program and the simulator: their functions mean nothing to the program's author.
static bool is_own(const char *file)
{
    return strncmp(file, "libtcasim", 9) == 0 || strncmp(file, "libibverbs.so", 13) == 0 ||
           strncmp(file, "libtca", 6) == 0 || strncmp(file, "libcudart.so", 12) == 0 ||
           strncmp(file, "librdmacm.so", 12) == 0 || strncmp(file, "libacp.so", 9) == 0;
}

// Without the end that marks the function by which programs enter a library (verbs-shim/dropin/environment.c).
static size_t name_length(const char *name)
{
    static const char end[] = "_entry";
    size_t length = strnlen(name, 40), own = sizeof end - 1;
    return length > own && strcmp(name + length - own, end) == 0 ? length - own : length;
}

// The functions that the header's inline functions call have other names.
static void entered_print(struct frames *frames, const char *symbol, const char *file)
{
    bool renamed = strncmp(symbol, "ibverbs_", 8) == 0;
    const char *name = renamed ? symbol + 8 : symbol;
    snprintf(frames->entered, sizeof frames->entered, "%s%.*s (%.40s)", renamed ? "ibv_" : "", (int)name_length(name),
             name, file);
}

static void frame_print(struct frames *frames, const char *symbol, const char *file)
{
    size_t used = strlen(frames->text);
    snprintf(frames->text + used, frames->room - used, "%s%s (%s)", frames->count == 0 ? "" : ", called by ", symbol,
             file);
    frames->count++;
}

// Only symbol tables of the files themselves: no search for separate debug files, which might ask servers.
static int no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
                        const char *link, GElf_Word checksum, char **path)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)checksum, (void)path;
    return -1;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

// Much of libibverbs is inline: a program's author looks for the line that calls it.
static bool is_header(const char *source)
{
    return strcmp(last_part(source), "verbs.h") == 0;
}

// The location of an inlined call in a unit.
static const char *call_of(Dwarf_Die *unit, Dwarf_Die *scope, int *line_out)
{
    Dwarf_Attribute attribute;
    Dwarf_Word line = 0, file = 0;
    Dwarf_Files *files;
    size_t count;
    if (dwarf_formudata(dwarf_attr(scope, DW_AT_call_line, &attribute), &line) != 0 ||
        dwarf_formudata(dwarf_attr(scope, DW_AT_call_file, &attribute), &file) != 0 ||
        dwarf_getsrcfiles(unit, &files, &count) != 0) {
        return NULL;
    }
    *line_out = (int)line;
    return dwarf_filesrc(files, file, NULL, NULL);
}

// The innermost line that belongs to the program.
static const char *inlined_by(Dwfl_Module *module, Dwarf_Addr pc, const char *source, int *line)
{
    Dwarf_Addr bias;
    Dwarf_Die *unit = dwfl_module_addrdie(module, pc, &bias), *scopes = NULL;
    int count = unit != NULL ? dwarf_getscopes(unit, pc - bias, &scopes) : 0;
    for (int i = 0; i < count && is_header(source); i++) {
        const char *caller =
            dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine ? call_of(unit, &scopes[i], line) : NULL;
        source = caller != NULL ? caller : source;
    }
    free(scopes);
    return source;
}

// "a.c:12" if the file has line numbers (-g), else the file's name. false: the address does not belong to the program.
static bool source_of(Dwfl_Module *module, Dwarf_Addr pc, const char *file, char *text, size_t room)
{
    Dwfl_Line *found = module != NULL ? dwfl_module_getsrc(module, pc) : NULL;
    int line = 0;
    const char *source = found != NULL ? dwfl_lineinfo(found, NULL, &line, NULL, NULL, NULL) : NULL;
    if (source == NULL) {
        snprintf(text, room, "%.60s", file);
        return true;
    }
    source = is_header(source) ? inlined_by(module, pc, source, &line) : source;
    snprintf(text, room, "%.60s:%d", last_part(source), line);
    return !is_header(source);
}

// Adds the frame of an address; frames come from the innermost on. false: there are enough frames.
static bool address_add(struct frames *frames, Dwfl_Module *module, Dwarf_Addr pc)
{
    const char *symbol = module != NULL ? dwfl_module_addrname(module, pc) : NULL;
    const char *path = module != NULL ? dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL) : NULL;
    const char *file = last_part(path != NULL ? path : "unknown memory");
    char source[96];
    bool named = symbol != NULL,
         world = strncmp(file, "libtcasim", 9) == 0 && strncmp(file, "libtcasim-check", 15) != 0;
    symbol = named ? symbol : "?";
    if (!frames->left && (is_own(file) || is_system(file))) {
        if (named && !world) { // interposed functions have names that a program does not know
            entered_print(frames, symbol, file);
        }
        return true;
    }
    if (!frames->left && frames->entered[0] != '\0') {
        snprintf(frames->text, frames->room, "%s", frames->entered);
        frames->count++;
    }
    frames->left = true;
    if (is_own(file) || is_system(file)) { // they called the program: the start of a thread, qsort
        return true;
    }
    if (source_of(module, pc, file, source, sizeof source)) {
        frame_print(frames, symbol, source);
    }
    return strcmp(symbol, "main") != 0 && frames->count < FRAMES;
}

static int frame_add(Dwfl_Frame *frame, void *arg)
{
    struct frames *frames = arg;
    Dwarf_Addr pc;
    bool interrupted;
    if (frames->count >= FRAMES || frames->seen++ == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, &interrupted)) {
        return DWARF_CB_ABORT;
    }
    pc -= !interrupted; // a return address is after its call
    Dwfl_Module *module = dwfl_addrmodule(dwfl_thread_dwfl(dwfl_frame_thread(frame)), pc);
    return address_add(frames, module, pc) ? DWARF_CB_OK : DWARF_CB_ABORT;
}

// --- the thread's state ----------------------------------------------------------------------------------------------

struct stopped {
    pid_t pid, tid;
    int signal; // to be delivered when the thread goes on
    struct user_regs_struct registers;
};

static bool memory_word(pid_t pid, uint64_t address, uint64_t *word_out)
{
    const struct iovec to = {word_out, sizeof *word_out}, from = {(void *)(uintptr_t)address, sizeof *word_out};
    return process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)sizeof *word_out;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word_out, void *arg)
{
    const struct stopped *stopped = arg;
    uint64_t word = 0;
    (void)dwfl;
    bool there = memory_word(stopped->pid, address, &word);
    *word_out = word;
    return there;
}

// There is one thread.
static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
    struct stopped *stopped = arg;
    (void)dwfl;
    if (*thread_arg != NULL) {
        return 0;
    }
    *thread_arg = stopped;
    return stopped->tid;
}

// In the order of DWARF for x86-64.
static bool registers_set(Dwfl_Thread *thread, void *arg)
{
    const struct user_regs_struct *r = &((const struct stopped *)arg)->registers;
    const Dwarf_Word words[] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
                                r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip};
    return dwfl_thread_state_registers(thread, 0, sizeof words / sizeof words[0], words);
}

// The gate of the shim's own calls has no frame: its caller's address is on top of the stack.
static void gate_leave(struct stopped *stopped)
{
    uint64_t back;
    if (stopped->registers.rip - KERNEL_GATE < KERNEL_GATE_BYTES &&
        memory_word(stopped->pid, stopped->registers.rsp, &back)) {
        stopped->registers.rip = back;
        stopped->registers.rsp += sizeof back;
    }
}

static bool stop(struct stopped *stopped)
{
    int status;
    if (ptrace(PTRACE_SEIZE, stopped->tid, NULL, NULL) != 0) {
        return false;
    }
    bool good = ptrace(PTRACE_INTERRUPT, stopped->tid, NULL, NULL) == 0 &&
                waitpid(stopped->tid, &status, __WALL) == stopped->tid && WIFSTOPPED(status) &&
                ptrace(PTRACE_GETREGS, stopped->tid, NULL, &stopped->registers) == 0;
    if (good) {
        gate_leave(stopped);
        // The thread may have stopped for a signal, which must be delivered.
        stopped->signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
    } else {
        (void)ptrace(PTRACE_DETACH, stopped->tid, NULL, NULL);
    }
    return good;
}

// The number comes from the program. A thread that sleeps in the kernel without end cannot be stopped.
static bool can_stop(pid_t pid, pid_t tid)
{
    char state = attach_state(pid, tid);
    return state == 'R' || state == 'S' || state == 'T';
}

struct asked {
    struct attach_reach *reach;
    pid_t tid;
    const uint64_t *addresses;
    unsigned count;
};

static void thread_locate(void *ctx, char *text, size_t room)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf, .find_debuginfo = no_debuginfo};
    static const Dwfl_Thread_Callbacks threads = {
        .next_thread = next_thread, .memory_read = memory_read, .set_initial_registers = registers_set};
    const struct asked *asked = ctx;
    struct frames frames = {.text = text, .room = room};
    struct stopped stopped = {.pid = asked->reach->pid, .tid = asked->tid};
    Dwfl *dwfl = dwfl_begin(&callbacks);
    if (dwfl != NULL && can_stop(stopped.pid, stopped.tid) && stop(&stopped)) {
        if (!attach_over(asked->reach->pidfd) && dwfl_linux_proc_report(dwfl, stopped.pid) == 0 &&
            dwfl_report_end(dwfl, NULL, NULL) == 0 && dwfl_attach_state(dwfl, NULL, stopped.pid, &threads, &stopped)) {
            (void)dwfl_getthread_frames(dwfl, stopped.tid, frame_add, &frames);
        }
        (void)ptrace(PTRACE_DETACH, stopped.tid, NULL, (void *)(uintptr_t)stopped.signal);
    }
    dwfl_end(dwfl);
    text[frames.count != 0 ? strlen(text) : 0] = '\0';
}

bool attach_where(struct attach_reach *reach, pid_t tid, char *text, size_t room)
{
    struct asked asked = {.reach = reach, .tid = tid};
    bool good = attach_aside(thread_locate, &asked, text, room);
    observe_text_clean(text, room);
    return good && text[0] != '\0';
}

static void addresses_locate(void *ctx, char *text, size_t room)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf, .find_debuginfo = no_debuginfo};
    const struct asked *asked = ctx;
    struct frames frames = {.text = text, .room = room};
    Dwfl *dwfl = dwfl_begin(&callbacks);
    if (dwfl != NULL && dwfl_linux_proc_report(dwfl, asked->reach->pid) == 0 &&
        dwfl_report_end(dwfl, NULL, NULL) == 0) {
        bool more = true;
        for (unsigned i = 0; i < asked->count && asked->addresses[i] != 0 && more; i++) {
            more = address_add(&frames, dwfl_addrmodule(dwfl, asked->addresses[i] - 1), asked->addresses[i] - 1);
        }
    }
    dwfl_end(dwfl);
    text[frames.count != 0 ? strlen(text) : 0] = '\0';
}

bool attach_symbols(void *ctx, void *tag, const uint64_t *addresses, unsigned count, char *text, size_t room)
{
    struct attach_process *process = tag;
    struct asked asked = {.reach = &process->reach, .addresses = addresses, .count = count};
    (void)ctx;
    text[0] = '\0';
    bool good = attach_reach_lives(&process->reach) && attach_aside(addresses_locate, &asked, text, room);
    observe_text_clean(text, room);
    return good && text[0] != '\0';
}
