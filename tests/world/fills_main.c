// Computes with shared memory, for long and without any call: each byte is one access.
#include <stdio.h>
#include <sys/mman.h>

enum { BYTES = 1 << 23 };

int main(void)
{
    volatile unsigned char *all = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) {
        return 1;
    }
    for (unsigned i = 0; i < BYTES; i++) {
        all[i] = (unsigned char)i;
    }
    printf("%u\n", all[BYTES - 1]);
    return 0;
}
