// Code that the program generates, in memory that it still writes to: one function reads the time stamp counter many
// times; the other polls a word that a timer's handler sets. Ends with 0 if neither was changed.
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

enum { POLL_AT = 32, SCRATCH_AT = 100, PAGE_BYTES = 4096 };

static const unsigned char counter_code[] = {0x0f, 0x31,              // rdtsc
                                             0x48, 0xc1, 0xe2, 0x20,  // shl $32,%rdx
                                             0x48, 0x09, 0xd0, 0xc3}; // or %rdx,%rax; ret
static const unsigned char poll_code[] = {0x83, 0x3f, 0x00,           // cmpl $0,(%rdi)
                                          0x74, 0xfb, 0xc3};          // je; ret
static volatile uint32_t word;

static void on_alarm(int number)
{
    (void)number;
    word = 1;
}

int main(void)
{
    unsigned char *code =
        mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, counter_code, sizeof counter_code);
    memcpy(code + POLL_AT, poll_code, sizeof poll_code);
    uint64_t (*counter)(void);
    void (*poll)(volatile uint32_t *);
    const void *counter_at = code, *poll_at = code + POLL_AT;
    memcpy(&counter, &counter_at, sizeof counter);
    memcpy(&poll, &poll_at, sizeof poll);
    for (unsigned i = 0; i < 200; i++) {
        (void)counter();
        code[SCRATCH_AT] = (unsigned char)i;
    }
    (void)signal(SIGALRM, on_alarm);
    for (unsigned i = 0; i < 3; i++) {
        const struct itimerval soon = {.it_value.tv_usec = 5000};
        word = 0;
        (void)setitimer(ITIMER_REAL, &soon, NULL);
        poll(&word);
        code[SCRATCH_AT] = (unsigned char)i;
    }
    return memcmp(code, counter_code, sizeof counter_code) != 0 ||
           memcmp(code + POLL_AT, poll_code, sizeof poll_code) != 0;
}
