// Ranks of ACP on simulated nodes: a test gives them a program; they exchange their start-up data outside the fabric.
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
    uint32_t number; // its initial rank
    bool ended;      // its program has ended
};

struct crew {
    struct scn_scenario *scenario;
    plat_machine_t *machine;
    uint32_t ranks;
    void (*program)(struct crew_rank *rank);
    void *arg; // set by the test
    bool connect_all;
    bool same_rank; // all claim rank 0: acp_init must fail
    const char *device;
    struct plat_mailbox mailbox;
    struct crew_rank members[CREW_RANKS_MAX];
    char failure[512]; // the library's message when it failed; "": none
};

enum crew_device { CREW_IBSIM0, CREW_TCA0 };

// So many ranks on as many nodes, 16 at most; further ranks are more processes on these nodes (ibsim0 only).
void crew_init(struct crew *crew, enum crew_device device, uint32_t ranks);
// Runs each rank's program between acp_init and acp_finalize, until all have ended. Expects that nothing is left.
void crew_run(struct crew *crew, void (*program)(struct crew_rank *rank));
// The same for a library failure, whose message contains this text.
void crew_run_failing(struct crew *crew, void (*program)(struct crew_rank *rank), const char *text);
void crew_fini(struct crew *crew);
// The whole test: the program succeeds, or fails with that message.
void crew_do(enum crew_device device, uint32_t ranks, void (*program)(struct crew_rank *rank), void *arg);
void crew_do_failing(uint32_t ranks, void (*program)(struct crew_rank *rank), const char *text);

// For programs: waits in simulated time; returns the time.
void crew_sleep(const struct crew_rank *rank, uint64_t ns);
uint64_t crew_now_ps(const struct crew_rank *rank);
// Addresses in ranks' starter memory.
acp_ga_t crew_at(int rank, uint64_t offset);
void *crew_own(uint64_t offset);
