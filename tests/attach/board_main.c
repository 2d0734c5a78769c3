// "board hold" keeps the node's board for 10 ms; "board ask" claims it and reads a register, after 1 ms and after 20
// ms.
#include <stdio.h>
#include <string.h>

#include "verbs-shim/attach/attach.h"

#define MS UINT64_C(1000000000)

static void ask(struct backend *backend)
{
    uint64_t value;
    int claim = backend_board_claim(backend);
    printf("%d %d\n", claim, backend->ops->read(backend->ctx, BACKEND_BAR_REGISTERS, 0, 4, &value));
}

int main(int argc, char **argv)
{
    struct backend_process *process = backend_current();
    if (process == NULL || argc < 2) {
        return 3;
    }
    if (strcmp(argv[1], "hold") == 0) {
        int claim = backend_board_claim(&process->backend);
        (void)attach_wait(0, attach_now_ps() + 10 * MS);
        return claim;
    }
    (void)attach_wait(0, attach_now_ps() + MS);
    ask(&process->backend);
    (void)attach_wait(0, attach_now_ps() + 20 * MS);
    ask(&process->backend);
    return 0;
}
