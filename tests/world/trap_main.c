// A program with its own handler for SIGTRAP, and a loop similar to those that poll memory: the handler is called only
// for the signal that the program raises. Ends with 0, or with the number of extra calls.
#include <signal.h>
#include <stdint.h>
#include <time.h>

static volatile sig_atomic_t calls;

static void on_trap(int number)
{
    (void)number;
    calls++;
}

int main(void)
{
    const struct sigaction action = {.sa_handler = on_trap};
    (void)sigaction(SIGTRAP, &action, NULL);
    uint64_t word = 1;
    for (unsigned i = 0; i < 50000000; i++) { // 10 ms and more: the thread is checked
        word = word * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(word));
    }
    if (calls == 0) {
        (void)raise(SIGTRAP);
        return calls == 1 ? 0 : 1;
    }
    return calls < 100 ? calls : 100;
}
