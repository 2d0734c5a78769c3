// Included ahead of each file that holds changes by rule (rules.py): is this the change that the run is asked to make?
//
// TCASIM_MUTANT has its number. Questions that were asked are noted in the file TCASIM_MUTANTS_ASKED, a byte each, which is
// shared by all processes of a test. What runs ahead of the constructors runs without a change. A library may be
// initialised ahead of the C library (-z initfirst), so nothing of that is used.
#pragma once

enum { MUTANTS_MAX = 1 << 16 };

#pragma GCC visibility push(hidden)
__attribute__((weak)) long mutant_chosen = -1;
__attribute__((weak)) unsigned char mutants_unnoted[MUTANTS_MAX];
__attribute__((weak)) unsigned char *mutants_asked = mutants_unnoted;
__attribute__((weak)) int mutants_are_read;

static inline long mutants_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return number;
}

static inline const char *mutants_value(const char *variable, const char *name)
{
    while (*name != 0 && *variable == *name) {
        variable++;
        name++;
    }
    return *name == 0 ? variable : 0;
}

void mutants_read(int argc, char **argv, char **environment);
__attribute__((weak, constructor(101))) void mutants_read(int argc, char **argv, char **environment)
{
    enum { OPEN = 2, CLOSE = 3, MMAP = 9, READ_WRITE = 2, PROTECTION = 3, SHARED = 1 };
    const char *value;
    for (char **variable = environment; mutants_are_read == 0 && *variable != 0; variable++) {
        if ((value = mutants_value(*variable, "TCASIM_MUTANT=")) != 0) {
            for (mutant_chosen = 0; *value != 0; value++) {
                mutant_chosen = 10 * mutant_chosen + *value - '0';
            }
        } else if ((value = mutants_value(*variable, "TCASIM_MUTANTS_ASKED=")) != 0) {
            long file = mutants_call(OPEN, (long)value, READ_WRITE, 0, 0, 0, 0);
            long noted = file >= 0 ? mutants_call(MMAP, 0, MUTANTS_MAX, PROTECTION, SHARED, file, 0) : -1;
            mutants_asked = noted > 0 ? (unsigned char *)noted : mutants_unnoted;
            (void)mutants_call(CLOSE, file, 0, 0, 0, 0, 0);
        }
    }
    mutants_are_read = 1;
    (void)argc;
    (void)argv;
}
#pragma GCC visibility pop

static inline int MUTANT(long number)
{
    mutants_asked[number] = 1;
    return mutant_chosen == number;
}
