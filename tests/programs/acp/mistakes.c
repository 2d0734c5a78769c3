// mistakes WHAT: a program of three ranks on ACP whose rank 1 makes a mistake.
#include <acp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void rank_one(const char *what)
{
    if (strcmp(what, "exit") == 0) {
        exit(7);
    } else if (strcmp(what, "quiet") == 0 || strcmp(what, "sync") == 0) {
        exit(0); // without acp_finalize
    } else if (strcmp(what, "segv") == 0) {
        raise(SIGSEGV);
    } else if (strcmp(what, "abort") == 0) {
        acp_abort("rank 1 has had enough");
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "never") == 0) {
        return 0; // does not use ACP at all
    }
    if (strcmp(what, "early") == 0) {
        for (int i = 1; i + 1 < argc; i++) {
            if (strcmp(argv[i], "--acp-myrank") == 0 && strcmp(argv[i + 1], "1") == 0) {
                return 0; // before acp_init
            }
        }
    }
    if (acp_init(strcmp(what, "null") == 0 ? NULL : &argc, &argv) != 0) {
        return 1;
    }
    int rank = acp_rank();
    acp_ga_t own = acp_query_starter_ga(rank);
    acp_sync();
    if (rank == 1) {
        rank_one(what);
    }
    if (strcmp(what, "quiet") == 0 && rank == 0) {
        usleep(1000);
    }
    if (rank == 0 && strcmp(what, "sync") != 0) { // a copy to the rank that has ended
        acp_complete(acp_copy(acp_query_starter_ga(1) + 8, own, 8, ACP_HANDLE_NULL));
        printf("the copy is complete\n");
    }
    if (strcmp(what, "apart") != 0 || rank != 0) {
        acp_sync();
    }
    acp_finalize();
    return 0;
}
