// Rules about runs of programs on ACP, in addition to those for all programs on libibverbs (check_verbs.c).
#include <inttypes.h>

#include "sim/scenario/loader.h"
#include "sim/scenario/keys.h"
#include "sim/scenario/names.h"

#define ATOMIC_BYTES   8
#define QUEUE_COMMANDS 1024

uint64_t scn_acp_ranks(const struct scn_scenario *scenario, const struct scn_run *run, uint64_t ranks)
{
    if (ranks != 0) {
        return ranks;
    }
    bool all = run->verbs.operation == SCN_OPERATION_BARRIER || run->workload == SCN_WORKLOAD_ACP_MEMORY;
    return all ? scenario->node_count : run->verbs.operation == SCN_OPERATION_REMOTE_COPY ? 3 : 2;
}

static void check_operation(struct scn_loader *loader, const struct scn_run *run)
{
    enum scn_operation operation = run->verbs.operation;
    struct scn_location location = scn_loader_location(loader, &run->verbs.operation, run);
    bool memory = run->workload == SCN_WORKLOAD_ACP_MEMORY;
    if (!scn_loader_is_good(loader, &run->verbs.operation)) {
        return;
    }
    if (memory && operation != SCN_OPERATION_NONE) {
        scn_mistakes_add(&loader->mistakes, location, "operation: acp-memory puts to all ranks, and takes none");
    } else if (!memory && operation == SCN_OPERATION_NONE) {
        scn_mistakes_add(&loader->mistakes, location, "missing key 'operation' in run: %s needs one",
                         scn_workload_name(run->workload));
    } else if (!memory && !scn_operation_is_acp(operation)) {
        scn_mistakes_add(&loader->mistakes, location,
                         "operation: %s is libibverbs'; ACP has put, get, remote-copy, "
                         "fetch-add and barrier",
                         scn_operation_name(operation));
    } else if (run->workload == SCN_WORKLOAD_ACP_BANDWIDTH && operation == SCN_OPERATION_BARRIER) {
        scn_mistakes_add(&loader->mistakes, location, "operation: a barrier has no bandwidth");
    }
    bool atomic = operation == SCN_OPERATION_FETCH_ADD;
    for (uint32_t i = 0; atomic && i < run->bytes_count && scn_loader_is_good(loader, run->bytes); i++) {
        if (run->bytes[i] != ATOMIC_BYTES) {
            scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, run->bytes, run),
                             "bytes: fetch-add works on %d B, not on %" PRIu64 " B", ATOMIC_BYTES, run->bytes[i]);
        }
    }
}

static void check_ranks(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_scenario *scenario = loader->scenario;
    struct scn_location location = scn_loader_location(loader, run->ranks, run);
    bool boards = run->verbs.device == SCN_DEVICE_TCA0;
    for (uint32_t i = 0; i < run->ranks_count && scn_loader_is_good(loader, run->ranks); i++) {
        uint64_t ranks = scn_acp_ranks(scenario, run, run->ranks[i]), least = run->ranks[i] == 0 ? ranks : 2;
        least = run->verbs.operation == SCN_OPERATION_REMOTE_COPY ? 3 : least;
        if (ranks < least) {
            scn_mistakes_add(&loader->mistakes, location, "ranks: %s needs %" PRIu64 " and more, not %" PRIu64,
                             scn_workload_name(run->workload), least, ranks);
        } else if (boards && ranks > scenario->node_count) {
            scn_mistakes_add(&loader->mistakes, location,
                             "ranks: one process of a node has tca0, so that %" PRIu32 " nodes have no %" PRIu64
                             " ranks",
                             scenario->node_count, ranks);
        }
    }
}

static void check_devices(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_scenario *scenario = loader->scenario;
    bool boards = run->verbs.device == SCN_DEVICE_TCA0;
    uint64_t most = 0;
    for (uint32_t i = 0; i < run->ranks_count; i++) {
        uint64_t ranks = scn_acp_ranks(scenario, run, run->ranks[i]);
        most = ranks > most ? ranks : most;
    }
    for (uint32_t i = 0; most > 2 && i < scenario->node_count && !scn_loader_is_bad(loader, &scenario->nodes[i], true);
         i++) {
        const struct scn_node *node = &scenario->nodes[i];
        if (i != run->node && i != run->peer && !(boards ? node->board.given : node->hca.given)) {
            scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &run->verbs.device, run),
                             "device: ranks beyond the second are on all nodes, and '%s' has no %s", node->name,
                             boards ? "board" : "HCA");
            return;
        }
    }
}

// Keys of programs on libibverbs whose values ACP chooses itself.
static void check_keys(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_verbs *verbs = &run->verbs;
    bool bandwidth = run->workload == SCN_WORKLOAD_ACP_BANDWIDTH;
    const struct {
        const void *field;
        const char *key;
        bool used;
    } keys[] = {
        {&verbs->transport, "transport", verbs->transport != SCN_TRANSPORT_RC},
        {&verbs->depth, "depth", !bandwidth && verbs->depth != SCN_FALLBACK_DEPTH},
        {&verbs->receive_depth, "receive_depth", verbs->receive_depth != SCN_FALLBACK_RECEIVE_DEPTH},
        {&verbs->cq_mod, "cq_mod", verbs->cq_mod != SCN_FALLBACK_CQ_MOD},
        {&verbs->inline_bytes, "inline", verbs->inline_bytes != SCN_INLINE_DEFAULT},
        {&verbs->volume_bytes, "volume", verbs->volume_bytes != 0},
        {&run->beside.operation, "beside", run->beside.given},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i].used && scn_loader_is_good(loader, keys[i].field)) {
            scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, keys[i].field, run),
                             "%s: %s does not use it: the library decides", keys[i].key,
                             scn_workload_name(run->workload));
        }
    }
    if (bandwidth && verbs->depth > QUEUE_COMMANDS && scn_loader_is_good(loader, &verbs->depth)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &verbs->depth, run),
                         "depth: the command queue has %d, not %" PRIu32, QUEUE_COMMANDS, verbs->depth);
    }
}

void scn_check_acp_run(struct scn_loader *loader, const struct scn_run *run)
{
    const enum scn_memory *const memories[] = {&run->from, &run->to};
    for (unsigned i = 0; i < 2; i++) {
        if (*memories[i] != SCN_MEMORY_HOST && scn_loader_is_good(loader, memories[i])) {
            scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, memories[i], run),
                             "%s: programs on ACP keep their data in host memory", i == 0 ? "from" : "to");
        }
    }
    check_keys(loader, run);
    check_operation(loader, run);
    check_ranks(loader, run);
    if (scn_loader_is_good(loader, &run->verbs.device) && scn_loader_is_good(loader, run->ranks)) {
        check_devices(loader, run);
    }
}
