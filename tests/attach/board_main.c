// "board hold" keeps the node's board for 10 ms, and ends with it; "board close" claims it twice, releases it at once, and
// again after 10 ms, and goes on for 30 ms; "board child" has a child that asks for the board of its parent; "board ask"
// claims it twice and reads a register, after 1 ms and after 20 ms.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs-shim/attach/attach.h"

#define MS UINT64_C(1000000000)

// The value of a read without an answer is all ones.
static void ask(struct backend *backend)
{
    uint64_t value = 0;
    int claim = backend_board_claim(backend), again = backend_board_claim(backend);
    int status = backend->ops->read(backend->ctx, BACKEND_BAR_REGISTERS, 0, 4, &value);
    printf("%d %d %d %d\n", claim, again, status, value == UINT64_MAX);
}

static int close_late(struct backend *backend)
{
    int first = backend_board_claim(backend), second = backend_board_claim(backend);
    backend_board_release(backend);
    (void)attach_wait(0, attach_now_ps() + 10 * MS);
    backend_board_release(backend);
    (void)attach_wait(0, attach_now_ps() + 30 * MS);
    return first != 0 || second != 0;
}

static int child_ask(struct backend *backend)
{
    int claim = backend_board_claim(backend), status;
    pid_t child = fork();
    if (child == 0) {
        attach_forked();
        ask(&backend_current()->backend);
        exit(0);
    }
    (void)attach_fork_parent(child);
    while (waitpid(child, &status, WNOHANG) == 0) {
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
    }
    return claim;
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
    if (strcmp(argv[1], "close") == 0) {
        return close_late(&process->backend);
    }
    if (strcmp(argv[1], "child") == 0) {
        return child_ask(&process->backend);
    }
    (void)attach_wait(0, attach_now_ps() + MS);
    ask(&process->backend);
    (void)attach_wait(0, attach_now_ps() + 20 * MS);
    ask(&process->backend);
    return 0;
}
