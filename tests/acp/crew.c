#include "crew.h"

#include <stdlib.h>
#include <string.h>

#include "sim/platform/backend_inproc.h"

enum { NODES = 16, BOARDS = 4 };

// Keeps only the first nodes of the file, and their cables.
static void nodes_keep(struct scn_scenario *scenario, uint32_t nodes)
{
    scenario->node_count = nodes;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
        if (scenario->ib_cables[i].from_node < nodes) {
            scenario->ib_cables[kept++] = scenario->ib_cables[i];
        }
    }
    scenario->ib_cable_count = kept;
}

void crew_init(struct crew *crew, enum crew_device device, uint32_t ranks)
{
    const struct scn_load_options options = {.configs_dir = TCASIM_SOURCE_DIR "/configs"};
    const char *file =
        device == CREW_TCA0 ? TCASIM_SOURCE_DIR "/tests/acp/boards.yaml" : TCASIM_SOURCE_DIR "/tests/acp/nodes.yaml";
    struct scn_messages messages = {0};
    char error[256] = "";
    *crew = (struct crew){.ranks = ranks, .device = device == CREW_TCA0 ? "tca0" : "ibsim0"};
    ASSERT_EQ(scn_load(file, &options, &crew->scenario, &messages), SIM_OK);
    if (device == CREW_IBSIM0) {
        nodes_keep(crew->scenario, ranks < NODES ? ranks : NODES);
    }
    if (plat_machine_create(crew->scenario, NULL, error, sizeof error, &crew->machine) != SIM_OK) {
        FAIL("%s", error);
    }
    ASSERT_TRUE(plat_mailbox_init(&crew->mailbox, plat_machine_sim(crew->machine), ranks));
}

void crew_fini(struct crew *crew)
{
    plat_machine_destroy(crew->machine);
    plat_mailbox_fini(&crew->mailbox);
    scn_free(crew->scenario);
}

// --- start-up of ranks ----------------------------------------------------------------------------------------------

static int boot_gather(void *ctx, const void *mine, void *all, size_t bytes)
{
    struct crew_rank *rank = ctx;
    plat_mailbox_gather(&rank->crew->mailbox, rank->number, mine, all, bytes);
    return 0;
}

static void boot_abort(void *ctx, const char *text)
{
    struct crew_rank *rank = ctx;
    snprintf(rank->crew->failure, sizeof rank->crew->failure, "%s", text);
    plat_machine_fail(rank->crew->machine, "%s", text);
}

static void rank_main(void *arg, peach2_handle_t *board)
{
    struct crew_rank *rank = arg;
    const struct acp_boot boot = {.ctx = rank,
                                  .process = rank->number,
                                  .processes = rank->crew->ranks,
                                  .rank = rank->crew->same_rank ? 0 : rank->number,
                                  .device = rank->crew->device,
                                  .connect_all = rank->crew->connect_all,
                                  .gather = boot_gather,
                                  .abort = boot_abort};
    (void)board;
    const struct plat_backend_inproc *backend = backend_current()->backend.ctx;
    uint64_t pinned_bytes = backend->allocated_bytes;
    EXPECT_EQ(acp_boot_set(&boot), 0);
    if (acp_init(NULL, NULL) == 0) {
        rank->crew->program(rank);
        EXPECT_EQ(acp_finalize(), 0);
    } else {
        EXPECT_TRUE(rank->crew->same_rank);
    }
    // Nothing remains allocated, except what libtca keeps for tca0.
    if (strcmp(boot.device, "tca0") != 0) {
        EXPECT_EQ(backend->allocated_bytes, pinned_bytes);
    }
    EXPECT_NULL(backend->pinned);
    rank->ended = true;
}

static enum sim_run_outcome run(struct crew *crew, void (*program)(struct crew_rank *rank))
{
    crew->program = program;
    for (uint32_t i = 0; i < crew->ranks; i++) {
        crew->members[i] = (struct crew_rank){.crew = crew, .number = i};
        uint32_t node = i % crew->scenario->node_count;
        if (i < crew->scenario->node_count) {
            plat_machine_set_program(crew->machine, node, rank_main, &crew->members[i]);
        } else {
            EXPECT_EQ(plat_machine_add_process(crew->machine, node, rank_main, &crew->members[i]), SIM_OK);
        }
    }
    return plat_machine_run(crew->machine);
}

void crew_run(struct crew *crew, void (*program)(struct crew_rank *rank))
{
    if (run(crew, program) != SIM_RUN_DONE || plat_machine_failure(crew->machine) != NULL) {
        char waiters[1024] = "";
        (void)sim_describe_waiters(plat_machine_sim(crew->machine), waiters, sizeof waiters);
        const char *failure = plat_machine_failure(crew->machine);
        FAIL("%s", failure != NULL ? failure : waiters);
    }
    for (uint32_t i = 0; i < crew->ranks; i++) {
        EXPECT_TRUE(crew->members[i].ended);
    }
    EXPECT_EQ(plat_machine_live_packets(crew->machine), 0);
}

void crew_run_failing(struct crew *crew, void (*program)(struct crew_rank *rank), const char *text)
{
    (void)run(crew, program);
    if (strstr(crew->failure, text) == NULL) {
        FAIL("'%s' instead of '%s'", crew->failure, text);
    }
}

void crew_do(enum crew_device device, uint32_t ranks, void (*program)(struct crew_rank *rank), void *arg)
{
    struct crew crew;
    crew_init(&crew, device, ranks);
    crew.arg = arg;
    crew_run(&crew, program);
    crew_fini(&crew);
}

void crew_do_failing(uint32_t ranks, void (*program)(struct crew_rank *rank), const char *text)
{
    struct crew crew;
    crew_init(&crew, CREW_IBSIM0, ranks);
    crew_run_failing(&crew, program, text);
    crew_fini(&crew);
}

// --- for programs ---------------------------------------------------------------------------------------------------

void crew_sleep(const struct crew_rank *rank, uint64_t ns)
{
    sim_thread_sleep(plat_machine_sim(rank->crew->machine), ns * SIM_PS_PER_NS);
}

uint64_t crew_now_ps(const struct crew_rank *rank)
{
    return sim_now_ps(plat_machine_sim(rank->crew->machine));
}

acp_ga_t crew_at(int rank, uint64_t offset)
{
    return acp_query_starter_ga(rank) + offset;
}

void *crew_own(uint64_t offset)
{
    return acp_query_address(crew_at(acp_rank(), offset));
}
