// pair.c as a program: prints its times. TCASIM_ATTACH says where.
#include <stdlib.h>
#include <unistd.h>

#include "pair.h"
#include "verbs-shim/attach/attach.h"

static void wait_for_the_other(void)
{
    (void)usleep(300000);
}

int main(int argc, char **argv)
{
    static struct pair pair;
    struct backend_process *process = backend_current();
    if (process == NULL) {
        return 3;
    }
    pair_ready = attach_mode() == ATTACH_FUNCTIONAL ? wait_for_the_other : NULL;
    pair_run(process, attach_place()->node_index, argc > 1 ? (unsigned)atoi(argv[1]) : 10, &pair);
    for (unsigned i = 0; i < pair.count && i < PAIR_STAMPS_MAX; i++) {
        printf("%llu\n", (unsigned long long)pair.stamps[i]);
    }
    if (pair.error != 0) {
        fprintf(stderr, "pair: %d\n", pair.error);
    }
    return pair.error != 0;
}
