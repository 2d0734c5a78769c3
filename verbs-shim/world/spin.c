// Programs that poll memory without any call, as ib_write_lat does: they wait for a write by a device, but nothing
// shows the simulator that they wait.
//
// A thread that has used processor time without an attach call is checked: it is single-stepped. If all registers have
// the values that they had at the same instruction before, and everything in between only read memory, compared and
// jumped, then the loop repeats this until another thread or a device writes what it reads. The thread then waits for a
// device to write one of these words. How soon this is noticed depends on the real machine; the results do not, as the
// thread runs in no simulated time. A loop that does anything else is ignored.
//
// The jump that closes such a loop is overwritten by a breakpoint, so that the loop is recognised at once when the
// program enters it again. There an iteration counts as empty if all registers have the values of the previous
// iteration. The words are then computed from the registers; if the loop changes registers that its addresses use, it
// is stepped once more.
//
// Leaves out: loops that write memory (spin_loop.c) or use vector registers.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "verbs-shim/world/instruction.h"
#include "verbs-shim/world/interpret_internal.h"
#include "verbs-shim/world/text.h"
#include "verbs-shim/world/tsc_jump.h"
#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/attach/real_time.h"
#include "verbs-shim/world/world.h"

enum {
    STEPS_MAX = 256,
    TRAP_FLAG = 0x100,
    BREAKPOINT = 0xcc,
    JUMPS_MAX = 32,
    READS_MAX = ATTACH_RANGES_MAX,
    PAGE_BYTES = 4096,
    REGISTERS = REG_EFL + 1 // including the instruction pointer and the flags
};

// What an iteration of a loop reads.
struct reads {
    uintptr_t instructions[READS_MAX]; // the instructions that read memory
    unsigned count;                    // more than READS_MAX: not all are known
    unsigned address_registers, written_registers;
};

struct spin {
    int timer; // the kernel's identifier
    bool has_timer, stepping;
    unsigned steps;
    greg_t first[REGISTERS];
    unsigned calls;
    uintptr_t before;                      // address of the last instruction that was stepped
    uintptr_t closing;                     // address of the loop's jump backwards; 0: none seen
    struct reads reads;                    // so far
    struct attach_range ranges[READS_MAX]; // of the instructions in `reads`
    greg_t at_jump[REGISTERS];             // at the last breakpoint
    unsigned jump_calls;
};

static __thread struct spin spin;

// --- the jump that closes a loop ------------------------------------------------------------------------------------

struct jump {
    uintptr_t at; // 0: unused entry
    uintptr_t target, next;
    unsigned condition; // as in the instruction; ALWAYS
    bool broken;        // its breakpoint is set; false: it must not be
    struct reads reads; // reads of its loop
};

enum { ALWAYS = 16 };

static struct jump jumps[JUMPS_MAX];

static bool jump_decode(uintptr_t at, struct jump *jump_out)
{
    const unsigned char *code = (const unsigned char *)at;
    bool is_near = (code[0] == 0x0f && (code[1] & 0xf0) == 0x80) || code[0] == 0xe9;
    bool is_short = (code[0] & 0xf0) == 0x70 || code[0] == 0xeb;
    if (!is_near && !is_short) {
        return false;
    }
    bool always = code[0] == 0xe9 || code[0] == 0xeb;
    unsigned bytes = is_short ? 2 : always ? 5 : 6;
    int32_t distance = (int8_t)code[1];
    if (is_near) {
        memcpy(&distance, code + bytes - 4, sizeof distance);
    }
    *jump_out = (struct jump){.at = at,
                              .next = at + bytes,
                              .target = at + bytes + (uintptr_t)(intptr_t)distance,
                              .condition = always ? ALWAYS : code[is_near] & 0xf};
    return true;
}

static bool jump_taken(const struct jump *jump, greg_t flags)
{
    return jump->condition == ALWAYS || interpret_condition((uint32_t)flags, jump->condition);
}

// A jump at which the process is. If other code was mapped there, the breakpoint was removed together with the earlier
// code.
static const struct jump *jump_find(uintptr_t at)
{
    for (unsigned i = 0; i < JUMPS_MAX && jumps[i].at != 0; i++) {
        if (jumps[i].at == at) {
            return jumps[i].broken && *(const volatile unsigned char *)at == BREAKPOINT ? &jumps[i] : NULL;
        }
    }
    return NULL;
}

// Only one thread of the process runs. If the code must not be written (text.h; checked once for each jump) or cannot
// be, the loop is found by stepping each time.
static void jump_break(uintptr_t at, const struct reads *reads)
{
    unsigned index = 0;
    struct jump jump;
    while (index < JUMPS_MAX && jumps[index].at != 0 && jumps[index].at != at) {
        index++;
    }
    if (index == JUMPS_MAX || (jumps[index].at == at && !jumps[index].broken) || !jump_decode(at, &jump)) {
        return;
    }
    jump.reads = *reads;
    jumps[index] = jump;
    void *page = (void *)(at & ~(uintptr_t)(PAGE_BYTES - 1));
    if (world_text_fixed(at, jump.next - at) && mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) {
        *(volatile unsigned char *)at = BREAKPOINT;
        jumps[index].broken = true;
        (void)mprotect(page, PAGE_BYTES, PROT_READ | PROT_EXEC);
    }
}

// --- checking a thread ----------------------------------------------------------------------------------------------

// us: a constant of real_time.h, of the thread's processor time.
static void check_after(unsigned us)
{
    uint64_t ns = 1000 * attach_real_time(attach_environment()->real_percent, us);
    const struct itimerspec once = {.it_value.tv_nsec = (long)ns};
    if (spin.has_timer) {
        (void)kernel_call(SYS_timer_settime, spin.timer, 0, (long)(uintptr_t)&once, 0, 0, 0);
    }
}

static void stop_stepping(greg_t *registers, unsigned next_us)
{
    registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    spin.stepping = false;
    check_after(next_us);
}

static bool same(const greg_t *registers, const greg_t *before)
{
    for (unsigned i = 0; i < REGISTERS; i++) {
        greg_t mask = i == REG_EFL ? ~(greg_t)TRAP_FLAG : ~(greg_t)0;
        if ((registers[i] & mask) != (before[i] & mask)) {
            return false;
        }
    }
    return true;
}

static void wait_for_write(const struct reads *reads)
{
    if (attach_poll_words(spin.ranges, reads->count <= READS_MAX ? reads->count : 0) != ATTACH_WOKEN_DEADLINE) {
        attach_progress(); // else it was one of many polls (--every-poll)
    }
}

static void start_stepping(greg_t *registers)
{
    world_spin_shared_end();
    spin.stepping = true;
    spin.steps = 0;
    spin.closing = 0;
    spin.before = (uintptr_t)registers[REG_RIP];
    spin.reads = (struct reads){0};
    memcpy(spin.first, registers, sizeof spin.first);
    registers[REG_EFL] |= TRAP_FLAG;
}

// Notes the next instruction. false: the loop does more than wait.
static bool note(const greg_t *registers)
{
    uintptr_t at = (uintptr_t)registers[REG_RIP];
    struct world_instruction instruction;
    struct reads *reads = &spin.reads;
    if (jump_find(at) != NULL) { // its breakpoint hides the instruction
        return true;
    }
    if (!world_instruction_decode((const unsigned char *)at, registers, &instruction)) {
        return false;
    }
    reads->written_registers |= instruction.written_registers;
    reads->address_registers |= instruction.address_registers;
    if (instruction.bytes != 0 && reads->count < READS_MAX) {
        reads->instructions[reads->count] = at;
        spin.ranges[reads->count] = (struct attach_range){(const void *)instruction.address, instruction.bytes};
    }
    reads->count += instruction.bytes != 0;
    return true;
}

// The loop does more than read, or this cannot be shown.
static void not_proved(greg_t *registers)
{
    stop_stepping(registers, ATTACH_REAL_SPIN_LOOK_RARELY_US);
    if (world_spin_loop_begin(registers)) {
        registers[REG_EFL] |= TRAP_FLAG;
    } else {
        (void)world_spin_shared_begin();
    }
}

void world_spin_check_later(void)
{
    check_after(ATTACH_REAL_SPIN_LOOK_RARELY_US);
}

// Called after each instruction.
static void step(greg_t *registers)
{
    uintptr_t at = (uintptr_t)registers[REG_RIP];
    spin.closing = at <= spin.before ? spin.before : spin.closing;
    spin.before = at;
    if (same(registers, spin.first)) {
        stop_stepping(registers, ATTACH_REAL_SPIN_LOOK_US);
        if (spin.closing != 0) {
            jump_break(spin.closing, &spin.reads);
        }
        wait_for_write(&spin.reads);
    } else if (++spin.steps > STEPS_MAX || !note(registers)) {
        not_proved(registers);
    }
}

// An iteration of the loop was empty, and so are the next ones until something is written.
static void iteration_empty(greg_t *registers, const struct jump *jump)
{
    const struct reads *reads = &jump->reads;
    if (reads->count <= READS_MAX && (reads->address_registers & reads->written_registers) != 0) {
        start_stepping(registers);
        (void)note(registers);
        return;
    }
    for (unsigned i = 0; i < reads->count && i < READS_MAX; i++) {
        struct world_instruction instruction = {0};
        (void)world_instruction_decode((const unsigned char *)reads->instructions[i], registers, &instruction);
        spin.ranges[i] = (struct attach_range){(const void *)instruction.address, instruction.bytes};
    }
    wait_for_write(reads);
}

// At the breakpoint of a loop that was found before: does what the overwritten jump does.
static void breakpoint_step(greg_t *registers, const struct jump *jump)
{
    bool taken = jump_taken(jump, registers[REG_EFL]);
    registers[REG_RIP] = (greg_t)(taken ? jump->target : jump->next);
    if (spin.stepping) {
        step(registers);
    } else if (taken) {
        if (attach_calls() == spin.jump_calls && same(registers, spin.at_jump)) {
            iteration_empty(registers, jump);
        }
        spin.jump_calls = attach_calls();
        memcpy(spin.at_jump, registers, sizeof spin.at_jump);
    }
}

// On the way to where a loop waits (spin_loop.c).
static bool loop_step(greg_t *registers)
{
    enum world_spin_seek seek = world_spin_loop_stepped(registers);
    if (seek == WORLD_SPIN_OVER) {
        stop_stepping(registers, ATTACH_REAL_SPIN_LOOK_US);
    }
    return seek != WORLD_SPIN_NONE;
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const struct jump *jump = info->si_code == SI_KERNEL ? jump_find((uintptr_t)registers[REG_RIP] - 1) : NULL;
    uintptr_t behind = info->si_code == SI_KERNEL ? world_tsc_jump_behind((uintptr_t)registers[REG_RIP] - 1) : 0;
    if (jump != NULL) {
        breakpoint_step(registers, jump);
    } else if (info->si_code == SI_KERNEL && world_tsc_breakpoint(registers)) {
        // the program goes on
    } else if (behind != 0) {
        registers[REG_RIP] = (greg_t)behind;
    } else if (world_spin_shared_stepped(registers)) {
        // the thread goes on
    } else if (spin.stepping) {
        step(registers);
    } else if (info->si_code == TRAP_TRACE && loop_step(registers)) {
        // the thread goes on
    } else if (info->si_code == TRAP_TRACE) {
        registers[REG_EFL] &= ~(greg_t)TRAP_FLAG; // of a thread that was created while its creator was stepped
    } else {
        world_signal_pass(number, info, context);
    }
    errno = saved;
}

// The thread has used this much processor time. If it has made an attach call meanwhile, it does not spin.
static void on_timer(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    unsigned calls = attach_calls();
    if (calls != spin.calls || attach_window_learns() || world_shared_busy() || world_lookahead_runs() ||
        world_spin_loop_busy(registers)) {
        spin.calls = calls;
        check_after(ATTACH_REAL_SPIN_LOOK_US);
        return;
    }
    if (world_spin_shared_follows()) {
        check_after(ATTACH_REAL_SPIN_LOOK_RARELY_US);
        return;
    }
    start_stepping(registers);
    if (!note(registers)) {
        not_proved(registers);
    }
}

int world_spin_signal(void)
{
    return SIGRTMAX - 3;
}

void world_spin_start(void)
{
    attach_own_signal(world_spin_signal());
    world_signal_take(world_spin_signal(), on_timer, SA_RESTART);
    world_signal_take(SIGTRAP, on_trap, 0);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = world_spin_signal()};
    event._sigev_un._tid = world_real_tid();
    spin = (struct spin){0};
    spin.has_timer = kernel_call(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, (long)(uintptr_t)&event,
                                 (long)(uintptr_t)&spin.timer, 0, 0, 0) == 0;
    check_after(ATTACH_REAL_SPIN_LOOK_US);
}

void world_spin_end(void)
{
    if (spin.has_timer) {
        spin.has_timer = false;
        (void)kernel_call(SYS_timer_delete, spin.timer, 0, 0, 0, 0, 0);
    }
}
