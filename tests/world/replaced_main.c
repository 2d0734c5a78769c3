// A loop that polls a word is in code of a file. Then other code is mapped at its address, with a loop that counts in
// memory and waits for nothing. Ends with 0 if that loop took no simulated time, and with 1 if it took a millisecond.
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, JUMP_AT = 3, BREAKPOINT = 0xcc };

static const unsigned char poll_code[] = {0x83, 0x3f, 0x00,                    // cmpl $0,(%rdi)
                                          0x74, 0xfb, 0xc3};                   // je; ret
static const unsigned char count_code[] = {0x0f, 0x1f, 0x00,                   // nop
                                           0x83, 0x07, 0x01,                   // addl $1,(%rdi), where the jump was
                                           0x81, 0x3f, 0x00, 0x00, 0x00, 0x04, // cmpl $0x4000000,(%rdi)
                                           0x75, 0xf2, 0xc3};                  // jne; ret
static volatile uint32_t word;

static void on_alarm(int number)
{
    (void)number;
    if (word != 0) {
        _exit(1);
    }
    word = 1;
}

// The code in memory of a file, at this address; NULL: at any address.
static unsigned char *code_map(void *address, const unsigned char *code, size_t bytes)
{
    int fd = memfd_create("code", 0);
    void *at =
        ftruncate(fd, PAGE_BYTES) == 0 && write(fd, code, bytes) == (ssize_t)bytes
            ? mmap(address, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | (address != NULL ? MAP_FIXED : 0), fd, 0)
            : MAP_FAILED;
    (void)close(fd);
    return at != MAP_FAILED ? at : NULL;
}

static void call_with_alarm(const unsigned char *code)
{
    const struct itimerval soon = {.it_value.tv_usec = 1000}, never = {0};
    void (*function)(volatile uint32_t *);
    memcpy(&function, &code, sizeof function);
    (void)setitimer(ITIMER_REAL, &soon, NULL);
    function(&word);
    (void)setitimer(ITIMER_REAL, &never, NULL);
}

int main(void)
{
    (void)signal(SIGALRM, on_alarm);
    unsigned char *code = code_map(NULL, poll_code, sizeof poll_code);
    if (code == NULL) {
        return 2;
    }
    call_with_alarm(code);
    if (code[JUMP_AT] != BREAKPOINT || code_map(code, count_code, sizeof count_code) == NULL) {
        return 3;
    }
    call_with_alarm(code);
    return 0;
}
