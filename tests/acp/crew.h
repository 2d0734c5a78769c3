// Ranks of ACP on simulated nodes: a test gives them a program, and they meet outside the fabric.
#pragma once

#include "sim/platform/machine.h"
#include "sim/platform/mailbox.h"
#include "tests/shim/test.h"
#include "verbs-shim/acp/acp.h"
#include "verbs-shim/acp/acp_memory.h"
#include "verbs-shim/acp/boot.h"

#define CREW_RANKS_MAX 256

struct crew;

struct crew_rank {
    struct crew *crew;
    uint32_t place; // its rank to begin with
    bool ended;     // its program did
};

struct crew {
    struct scn_scenario *scenario;
    plat_machine_t *machine;
    uint32_t ranks;
    void (*program)(struct crew_rank *rank);
    void *arg; // the test's
    bool connect_all;
    bool same_rank; // all say that they are rank 0: acp_init is expected to fail
    const char *device;
    struct plat_mailbox mailbox;
    struct crew_rank members[CREW_RANKS_MAX];
    char failure[512]; // what the library said when it gave up; "": nothing
};

enum crew_device { CREW_IBSIM0, CREW_TCA0 };

// So many ranks on as many nodes, 16 at most; more are further processes of them (ibsim0 only).
void crew_init(struct crew *crew, enum crew_device device, uint32_t ranks);
// Each rank's program between acp_init and acp_finalize, until all have ended. Expects that nothing is left.
void crew_run(struct crew *crew, void (*program)(struct crew_rank *rank));
// The same where the library gives up: its message has this in it.
void crew_run_failing(struct crew *crew, void (*program)(struct crew_rank *rank), const char *text);
void crew_fini(struct crew *crew);
// All of it: a crew that runs the program well, or to that failure.
void crew_do(enum crew_device device, uint32_t ranks, void (*program)(struct crew_rank *rank), void *arg);
void crew_do_failing(uint32_t ranks, void (*program)(struct crew_rank *rank), const char *text);

// For programs: what the calling thread waits, in simulated time; the time.
void crew_sleep(const struct crew_rank *rank, uint64_t ns);
uint64_t crew_now_ps(const struct crew_rank *rank);
// Of ranks' starter memory.
acp_ga_t crew_at(int rank, uint64_t offset);
void *crew_own(uint64_t offset);
