// Included ahead of each file that holds changes by rule (rules.py): is this the change that the run is asked to make?
//
// TCASIM_MUTANT has its number. Questions that were asked are noted in the file TCASIM_MUTANTS_ASKED, a byte each, which is
// shared by all processes of a test. What runs ahead of the constructors runs without a change.
#pragma once

enum { MUTANTS_MAX = 1 << 16 };

char *getenv(const char *name);
long atol(const char *text);
int open(const char *path, int flags, ...);
int close(int descriptor);
void *mmap(void *where, unsigned long bytes, int protection, int flags, int descriptor, long offset);

#pragma GCC visibility push(hidden)
__attribute__((weak)) long mutant_chosen = -1;
__attribute__((weak)) unsigned char mutants_unnoted[MUTANTS_MAX];
__attribute__((weak)) unsigned char *mutants_asked = mutants_unnoted;
__attribute__((weak)) int mutants_are_read;

__attribute__((weak, constructor(101))) void mutants_read(void)
{
    const char *chosen = mutants_are_read++ == 0 ? getenv("TCASIM_MUTANT") : 0;
    const char *path = mutants_are_read == 1 ? getenv("TCASIM_MUTANTS_ASKED") : 0;
    mutant_chosen = chosen ? atol(chosen) : mutant_chosen;
    const int descriptor = path ? open(path, 2) : -1;
    if (descriptor >= 0) {
        void *noted = mmap(0, MUTANTS_MAX, 3, 1, descriptor, 0);
        mutants_asked = noted == (void *)-1 ? mutants_unnoted : noted;
        (void)close(descriptor);
    }
}
#pragma GCC visibility pop

static inline int MUTANT(long number)
{
    mutants_asked[number] = 1;
    return mutant_chosen == number;
}
