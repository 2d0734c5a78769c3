#include "sim/adversary/adversary.h"

#include <stdlib.h>

#include "sim/kernel/random.h"
#include "sim/kernel/sim.h"

struct adversary {
    struct sim_random streams[ADVERSARY_PURPOSES];
    uint32_t permille[ADVERSARY_PURPOSES];
};

// docs/attached-programs.md has the same table for users; a test compares them. The times are those of a busy adapter
// or processor: long compared with a message (1 us), short compared with usual time-outs of programs (1 ms and more).
const struct adversary_rule adversary_rules[ADVERSARY_PURPOSES] = {
    [ADVERSARY_COMPLETION] = {"completion", "a completion is written later, and those behind it with it", 250,
                              20 * SIM_PS_PER_US},
    [ADVERSARY_EVENT] = {"event", "a completion event is raised later, when its completion may have been taken", 250,
                         10 * SIM_PS_PER_US},
    [ADVERSARY_RNR] = {"rnr", "a requester waits longer than the RNR timer says, at most twice as long", 500, 0},
    [ADVERSARY_ACKNOWLEDGE] = {"acknowledge", "an acknowledge leaves later, and stands for what came meanwhile", 200,
                               10 * SIM_PS_PER_US},
    [ADVERSARY_REQUEST] = {"request", "work on a request takes longer, and other queue pairs go first", 150,
                           20 * SIM_PS_PER_US},
    [ADVERSARY_GAP] = {"gap", "a message pauses behind a packet, and other queue pairs go on", 100, 10 * SIM_PS_PER_US},
    [ADVERSARY_DAMAGE_REQUEST] = {"damage-request", "a request packet arrives damaged", 4, 0},
    [ADVERSARY_DAMAGE_ANSWER] = {"damage-answer", "a response to a read or an atomic arrives damaged", 4, 0},
    [ADVERSARY_ARRIVAL] = {"arrival",
                           "a request that has arrived is carried out later, those of other queue pairs pass it", 100,
                           20 * SIM_PS_PER_US},
    [ADVERSARY_READ] = {"read", "a read looks at memory later, and writes behind it pass it", 200, 10 * SIM_PS_PER_US},
    [ADVERSARY_MEMORY_WRITE] = {"memory-write", "a device's write to host memory is visible later, and those behind it",
                                20, SIM_PS_PER_US},
    [ADVERSARY_MEMORY_READ] = {"memory-read", "host memory answers a device later", 20, SIM_PS_PER_US},
    [ADVERSARY_CALL] = {"call", "a thread is preempted in a library call", 50, 50 * SIM_PS_PER_US},
    [ADVERSARY_WAKE] = {"wake", "a thread that begins or is woken runs later, behind others that are ready", 500,
                        20 * SIM_PS_PER_US},
};

// Quarters of the usual rate: off and seldom are equally likely.
static const uint32_t quarters[4] = {0, 1, 4, 4};
// The upper bound of a drawn time is halved up to seven times: short times are as likely as long ones.
enum { HALVINGS = 8 };

enum sim_status adversary_create(uint64_t seed, adversary_t **adversary_out)
{
    adversary_t *adversary = malloc(sizeof *adversary);
    if (adversary == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    for (unsigned purpose = 0; purpose < ADVERSARY_PURPOSES; purpose++) {
        struct sim_random *stream = &adversary->streams[purpose];
        sim_random_init(stream, seed, adversary_rules[purpose].name);
        adversary->permille[purpose] = adversary_rules[purpose].permille * quarters[sim_random_below(stream, 4)] / 4;
    }
    *adversary_out = adversary;
    return SIM_OK;
}

void adversary_destroy(adversary_t *adversary)
{
    free(adversary);
}

uint32_t adversary_permille(const adversary_t *adversary, enum adversary_purpose purpose)
{
    return adversary->permille[purpose];
}

void adversary_only(adversary_t *adversary, enum adversary_purpose purpose, uint32_t permille)
{
    for (unsigned other = 0; other < ADVERSARY_PURPOSES; other++) {
        adversary->permille[other] = other == purpose ? permille : 0;
    }
}

bool adversary_draw(adversary_t *adversary, enum adversary_purpose purpose)
{
    return sim_random_below(&adversary->streams[purpose], 1000) < adversary->permille[purpose];
}

uint64_t adversary_draw_ps(adversary_t *adversary, enum adversary_purpose purpose, uint64_t most_ps)
{
    struct sim_random *stream = &adversary->streams[purpose];
    if (!adversary_draw(adversary, purpose)) {
        return 0;
    }
    return sim_random_below(stream, (most_ps >> sim_random_below(stream, HALVINGS)) + 1);
}
