// A process whose children allocate all objects of the HCA, one child after the other, and are killed while they have
// them.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/hca/hca_driver.h"

static int child_run(void)
{
    const struct backend *backend = &backend_current()->backend;
    hca_context_t *context;
    hca_pd_t *pd;
    hca_cq_t *cq;
    hca_qp_t *qp;
    hca_mr_t *mr;
    static unsigned char memory[100000];
    int error = hca_open(backend, &context);
    error = error != 0 ? error : hca_pd_create(context, &pd);
    error = error != 0 ? error : hca_cq_create(context, 100, NULL, &cq);
    error = error != 0 ? error : hca_mr_register(pd, memory, sizeof memory, HCA_LOCAL_WRITE, &mr);
    struct hca_qp_create create = {.send_cq = cq, .receive_cq = cq, .send_entries = 64, .receive_entries = 64};
    for (unsigned i = 0; i < 10 && error == 0; i++) {
        error = hca_qp_create(pd, &create, &qp);
    }
    return error;
}

static int status_of(pid_t child)
{
    int status;
    while (waitpid(child, &status, WNOHANG) == 0) {
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 0); i++) {
        pid_t child = fork();
        if (child == 0) {
            attach_forked();
            int error = child_run();
            if (error != 0) {
                fprintf(stderr, "family: %s\n", strerror(-error));
            }
            (void)raise(error == 0 ? SIGKILL : SIGABRT);
        }
        attach_fork_parent(child);
        int status = status_of(child);
        if (status != 128 + SIGKILL) {
            printf("child %d: %d\n", i, status);
            return 1;
        }
    }
    printf("%llu\n", (unsigned long long)attach_now_ps());
    return 0;
}
