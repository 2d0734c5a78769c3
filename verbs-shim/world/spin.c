// Programs that poll memory without any call, as ib_write_lat does: a device's write is what they wait for, but nothing
// tells the simulator that they wait.
//
// A thread that has used processor time without a crossing is looked at: it is stepped an instruction at a time. When
// all registers are what they were at the same instruction before, and everything in between only read memory,
// compared and jumped, then the loop goes on like this until somebody else writes memory: it waits for the devices.
// How soon that is noticed depends on the real machine; what follows from it does not, as the thread runs in no
// simulated time. Where the loop does anything else it is left alone.
//
// The jump that closes a loop found like this is overwritten by a breakpoint, so that the loop is known at once when
// the program comes back to it. There a turn counts as vain when all registers are what they were at the turn before.
//
// Leaves out: loops that write memory or use vector registers; those need a call in them.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "verbs-shim/world/world.h"

enum {
    LOOK_EVERY_US = 100,
    LOOK_RARELY_US = 10000, // after a look that found no loop
    STEPS_MAX = 256,
    TRAP_FLAG = 0x100,
    BREAKPOINT = 0xcc,
    JUMPS_MAX = 32,
    PAGE_BYTES = 4096,
    REGISTERS = REG_EFL + 1 // with the instruction pointer and the flags
};

struct spin {
    timer_t timer;
    bool has_timer, stepping;
    unsigned steps;
    greg_t first[REGISTERS];
    unsigned crossings;
    uintptr_t before;       // address of the instruction that was stepped over last
    uintptr_t closing;      // of the loop's jump backwards; 0: none seen
    greg_t turn[REGISTERS]; // at the last breakpoint
    unsigned turn_crossings;
};

static __thread struct spin spin;

// --- what an instruction may do
// ---------------------------------------------------------------------------------------

// Only reads memory, compares, computes in registers, jumps. mod 3 of the ModRM byte: both operands are registers.
static bool two_byte_is_harmless(const unsigned char *code)
{
    unsigned char op = code[0];
    bool registers = (code[1] & 0xc0) == 0xc0;
    return (op >= 0x80 && op <= 0x8f) ||                           // jcc
           (op >= 0x40 && op <= 0x4f) ||                           // cmovcc
           op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf || // movzx, movsx
           op == 0x1e || op == 0x1f ||                             // nop, endbr64
           (op >= 0x90 && op <= 0x9f && registers) ||              // setcc
           (op == 0xae && code[1] == 0xe8);                        // lfence
}

static bool is_harmless(const unsigned char *code)
{
    while (*code == 0x66 || *code == 0xf2 || *code == 0xf3 || *code == 0x2e || *code == 0x3e) {
        code++;
    }
    if ((*code & 0xf0) == 0x40) { // REX
        code++;
    }
    unsigned char op = code[0];
    if (op == 0x0f) {
        return two_byte_is_harmless(code + 1);
    }
    bool registers = (code[1] & 0xc0) == 0xc0;
    unsigned char extension = (code[1] >> 3) & 7;
    switch (op) {
    case 0x8a:
    case 0x8b:
    case 0x8d:
    case 0x63: // mov to a register, lea, movsxd
    case 0x38:
    case 0x39:
    case 0x3a:
    case 0x3b:
    case 0x3c:
    case 0x3d: // cmp
    case 0x84:
    case 0x85:
    case 0xa8:
    case 0xa9: // test
    case 0x03:
    case 0x0b:
    case 0x23:
    case 0x2b:
    case 0x33: // to a register: add, or, and, sub, xor
    case 0xeb:
    case 0xe9:
    case 0x90: // jmp, nop and pause
        return true;
    case 0x88:
    case 0x89:
    case 0x01:
    case 0x09:
    case 0x21:
    case 0x29:
    case 0x31: // to a register or memory
    case 0xc1:
    case 0xd1:
    case 0xd3: // shifts
        return registers;
    case 0x80:
    case 0x81:
    case 0x83:
        return registers || extension == 7; // cmp
    case 0xf6:
    case 0xf7:
        return extension <= 1; // test
    case 0xff:
        return registers && extension <= 1; // inc, dec
    default:
        return (op >= 0x70 && op <= 0x7f) || (op >= 0xb8 && op <= 0xbf); // jcc; mov of a constant
    }
}

// --- the jump that closes a loop
// --------------------------------------------------------------------------------------

struct jump {
    uintptr_t at; // 0: not in use
    uintptr_t target, next;
    unsigned condition; // as in the instruction; ALWAYS
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

// The sixteen conditions: eight, and their opposites.
static bool jump_taken(const struct jump *jump, greg_t flags)
{
    bool carry = flags & 1, parity = flags & 4, zero = flags & 0x40, sign = flags & 0x80, overflow = flags & 0x800;
    const bool conditions[] = {
        overflow, carry, zero, carry || zero, sign, parity, sign != overflow, zero || sign != overflow};
    return jump->condition == ALWAYS || conditions[jump->condition >> 1] != ((jump->condition & 1) != 0);
}

static const struct jump *jump_find(uintptr_t at)
{
    for (unsigned i = 0; i < JUMPS_MAX && jumps[i].at != 0; i++) {
        if (jumps[i].at == at) {
            return &jumps[i];
        }
    }
    return NULL;
}

// Only one thread of the process runs. Where the code cannot be written the loop is found by stepping each time.
static void jump_break(uintptr_t at)
{
    unsigned place = 0;
    struct jump jump;
    while (place < JUMPS_MAX && jumps[place].at != 0 && jumps[place].at != at) {
        place++;
    }
    void *page = (void *)(at & ~(uintptr_t)(PAGE_BYTES - 1));
    if (place == JUMPS_MAX || jumps[place].at == at || !jump_decode(at, &jump) ||
        mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        return;
    }
    jumps[place] = jump;
    *(volatile unsigned char *)at = BREAKPOINT;
    (void)mprotect(page, PAGE_BYTES, PROT_READ | PROT_EXEC);
}

// --- looking
// ----------------------------------------------------------------------------------------------------------

static void look_after(unsigned microseconds)
{
    const struct itimerspec once = {.it_value.tv_nsec = microseconds * 1000L};
    (void)syscall(SYS_timer_settime, spin.timer, 0, &once, NULL);
}

static void stop_stepping(greg_t *registers, unsigned look_again_us)
{
    registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    spin.stepping = false;
    look_after(look_again_us);
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

static void wait_for_write(void)
{
    (void)attach_vain(ATTACH_WAIT_MEMORY | ATTACH_WAIT_OUTSIDE);
    attach_look();
}

// After each instruction.
static void step(greg_t *registers)
{
    uintptr_t at = (uintptr_t)registers[REG_RIP];
    spin.closing = at <= spin.before ? spin.before : spin.closing;
    spin.before = at;
    if (same(registers, spin.first)) {
        stop_stepping(registers, LOOK_EVERY_US);
        if (spin.closing != 0) {
            jump_break(spin.closing);
        }
        wait_for_write();
    } else if (++spin.steps > STEPS_MAX || !is_harmless((const unsigned char *)at)) {
        stop_stepping(registers, LOOK_RARELY_US);
    }
}

// At the jump of a loop that was found before: does what the jump does.
static void turn(greg_t *registers, const struct jump *jump)
{
    bool taken = jump_taken(jump, registers[REG_EFL]);
    registers[REG_RIP] = (greg_t)(taken ? jump->target : jump->next);
    if (!taken) {
        return;
    }
    if (attach_crossings() == spin.turn_crossings && same(registers, spin.turn)) {
        wait_for_write();
    }
    spin.turn_crossings = attach_crossings();
    memcpy(spin.turn, registers, sizeof spin.turn);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const struct jump *jump = info->si_code == SI_KERNEL ? jump_find((uintptr_t)registers[REG_RIP] - 1) : NULL;
    if (jump != NULL) {
        if (spin.stepping) {
            stop_stepping(registers, LOOK_RARELY_US);
        }
        turn(registers, jump);
    } else if (spin.stepping) {
        step(registers);
    } else if (info->si_code == TRAP_TRACE) {
        registers[REG_EFL] &= ~(greg_t)TRAP_FLAG; // of a thread that another one's stepping made
    } else {
        world_signal_pass(number, info, context);
    }
    errno = saved;
}

// The thread has used so much time of the processor. A crossing in between says that it does not spin.
static void on_look(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    unsigned crossings = attach_crossings();
    if (crossings != spin.crossings || !is_harmless((const unsigned char *)registers[REG_RIP])) {
        look_after(crossings != spin.crossings ? LOOK_EVERY_US : LOOK_RARELY_US);
        spin.crossings = crossings;
        return;
    }
    spin.stepping = true;
    spin.steps = 0;
    spin.closing = 0;
    spin.before = (uintptr_t)registers[REG_RIP];
    memcpy(spin.first, registers, sizeof spin.first);
    registers[REG_EFL] |= TRAP_FLAG;
}

static int look_signal(void)
{
    return SIGRTMAX - 3;
}

void world_spin_start(void)
{
    attach_own_signal(look_signal());
    world_signal_take(look_signal(), on_look, SA_RESTART);
    world_signal_take(SIGTRAP, on_trap, 0);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = look_signal()};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    int id;
    spin = (struct spin){0};
    if (syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &id) == 0) {
        spin.timer = (timer_t)(uintptr_t)id;
        look_after(LOOK_EVERY_US);
    }
}
