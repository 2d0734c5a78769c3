// System calls in which a program waits, from any code: the C library's, another library's, the program's. A seccomp
// filter makes them fault (SIGSYS), and the handler carries them out in simulated time.
//
// The filter lets calls from the shim's gate pass (kernel_call.h). The gate has the same address in every program,
// because filters stay active over fork and execve. What a new program's dynamic linker does before the shim has
// started is no wait; its reads of the first bytes of a library, which look like one, pass as well.
//
// seccomp(2), and linux/filter.h of the kernel: the filter is a program of the classic BPF machine.
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/world.h"

// Linux 5.16; Debian 12's headers have it, others may not.
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#define X32_BIT 0x40000000u // __X32_SYSCALL_BIT of asm/unistd.h
// siginfo_t.si_code, SYS_SECCOMP of asm-generic/siginfo.h.
#define FAULT_OF_FILTER 1
// glibc first reads this much of a library (elf/dl-load.c).
#define ELF_FIRST_BYTES 832

#define WORD(field, index)          ((unsigned)(offsetof(struct seccomp_data, field) + sizeof(uint32_t) * (index)))
#define LOAD(field, index)          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, WORD(field, index))
#define GIVE(what)                  BPF_STMT(BPF_RET | BPF_K, (what))
#define SKIP_UNLESS(value, skipped) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skipped))
#define SKIP_IF(value, skipped)     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (skipped), 0)

// The number is loaded: a call that always faults, or depending on an argument.
#define CALL_ALWAYS(number) SKIP_UNLESS(number, 1), GIVE(SECCOMP_RET_TRAP),
#define CALL_UNLESS(number, argument, value)                                                                           \
    SKIP_UNLESS(number, 4), LOAD(args[argument], 0), SKIP_IF(value, 1), GIVE(SECCOMP_RET_TRAP), LOAD(nr, 0),
#define CALL_BUT_OF_LINKER(number) CALL_UNLESS(number, 2, ELF_FIRST_BYTES)
#define CALL_BUT_TO_STDERR(number) CALL_UNLESS(number, 0, STDERR_FILENO) // the linker's last message
// The C library draws a word for malloc, perhaps before the shim has started, and for names of temporary files, which
// other runs then do not use.
#define CALL_BUT_OF_LIBRARY(number)                                                                                    \
    SKIP_UNLESS(number, 6), LOAD(args[1], 0), SKIP_UNLESS(sizeof(uint64_t), 2), LOAD(args[2], 0),                      \
        SKIP_IF(GRND_NONBLOCK, 1), GIVE(SECCOMP_RET_TRAP), LOAD(nr, 0),
#define CALL_TO_LOCK(number)                                                                                           \
    SKIP_UNLESS(number, 7), LOAD(args[1], 0), SKIP_IF(F_SETLK, 3), SKIP_IF(F_SETLKW, 2), SKIP_IF(F_OFD_SETLK, 1),      \
        SKIP_UNLESS(F_OFD_SETLKW, 1), GIVE(SECCOMP_RET_TRAP), LOAD(nr, 0),

static const struct sock_filter filter[] = {
    LOAD(arch, 0),
    SKIP_IF(AUDIT_ARCH_X86_64, 1),
    GIVE(SECCOMP_RET_ERRNO | ENOSYS), // int 0x80 of i386: it would reach the machine's clocks
    LOAD(instruction_pointer, 1),
    SKIP_UNLESS((unsigned)(KERNEL_GATE >> 32), 3),
    LOAD(instruction_pointer, 0),
    SKIP_UNLESS((unsigned)(KERNEL_GATE + 2), 1), // after the instruction
    GIVE(SECCOMP_RET_ALLOW),
    LOAD(nr, 0),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1), // the same calls by their numbers of x32
    GIVE(SECCOMP_RET_ERRNO | ENOSYS),
#define FUNCTION(name, version, policy, number)
#define CALL(name, function, trap, policy) trap(SYS_##name)
#include "verbs-shim/world/calls.def"
#undef CALL
    GIVE(SECCOMP_RET_ALLOW),
};

static const struct call {
    long number;
    long (*carry_out)(const long *arguments);
} calls[] = {
#define CALL(name, function, trap, policy) {SYS_##name, function},
#include "verbs-shim/world/calls.def"
#undef CALL
#undef FUNCTION
};

long world_result(long result)
{
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

// The signal of pthread_cancel comes when the thread is given the run token again, at the end of an attach call. The type
// is that which the C library's own functions set for the time of a system call.
long world_carry_out(long (*call)(const long *arguments), const long *arguments)
{
    int before;
    attach_window_close();
    (void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    long result = call(arguments);
    (void)pthread_setcanceltype(before, NULL);
    return world_result(result);
}

long world_call_refused(const long *arguments)
{
    (void)arguments;
    return -ENOSYS;
}

unsigned world_interrupts(bool restarts)
{
    return restarts ? attach_interrupts_ending() : attach_interrupts();
}

bool world_call(long number, const long *arguments, long *result_out)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (calls[i].number == number) {
            bool timed = world_timed(); // not asked for other calls: a child of fork would attach
            *result_out = timed ? calls[i].carry_out(arguments) : 0;
            return timed;
        }
    }
    return false;
}

static volatile sig_atomic_t probing;

static void on_call(int signal_number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (probing) {
        probing = false;
        return;
    }
    if (info->si_code != FAULT_OF_FILTER) {
        world_signal_pass(signal_number, info, context);
        return;
    }
    int saved = errno;
    attach_window_close();
    const long arguments[WORLD_CALL_WORDS] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                                              registers[REG_R10], registers[REG_R8],  registers[REG_R9],
                                              registers[REG_RIP]};
    long result;
    if (!world_call(info->si_syscall, arguments, &result)) {
        result = kernel_call(info->si_syscall, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                             arguments[5]);
    }
    registers[REG_RAX] = result;
    errno = saved;
}

// Is the filter active already, from the parent or the previous program? A futex wake-up without waiters shows it.
static bool filtered(void)
{
    static uint32_t word;
    long result = SYS_futex;
    register long fourth __asm__("r10") = 0;
    probing = true;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(&word), "S"((long)FUTEX_WAKE), "d"(0L), "r"(fourth)
                     : "rcx", "r11", "memory");
    bool trapped = !probing;
    probing = false;
    return trapped;
}

static void give_up(void)
{
    static const char text[] =
        "tcasim: this program cannot be attached: the machine does not let it have a seccomp filter "
        "(seccomp(2)), and its waits would not be seen\n";
    (void)kernel_call(SYS_write, STDERR_FILENO, (long)(uintptr_t)text, sizeof text - 1, 0, 0, 0);
    (void)kernel_call(SYS_exit_group, 2, 0, 0, 0, 0, 0);
}

void world_trap_unblock(void)
{
    const uint64_t own = UINT64_C(1) << (SIGSYS - 1);
    (void)kernel_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)(uintptr_t)&own, 0, sizeof own, 0, 0);
}

void world_trap_start(void)
{
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], (struct sock_filter *)filter};
    world_signal_take(SIGSYS, on_call, SA_NODEFER);
    world_trap_unblock(); // the previous program may have blocked it
    if (!filtered() && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                        kernel_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                                    (long)(uintptr_t)&program, 0, 0, 0) != 0)) {
        give_up();
    }
}
