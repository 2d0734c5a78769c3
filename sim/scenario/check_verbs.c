// Rules about runs of programs on libibverbs.
#include "sim/scenario/loader.h"

#include <inttypes.h>

#include "sim/scenario/names.h"
#include "sim/scenario/sets.h"

#define ATOMIC_BYTES 8
#define GRH_BYTES    40

static bool is_atomic(enum scn_operation operation)
{
    return operation == SCN_OPERATION_COMPARE_SWAP || operation == SCN_OPERATION_FETCH_ADD;
}

static bool is_send(enum scn_operation operation)
{
    return operation == SCN_OPERATION_SEND || operation == SCN_OPERATION_SEND_IMM;
}

static const char *transport_text(enum scn_transport transport)
{
    static const char *const texts[] = {
        [SCN_TRANSPORT_RC] = "rc", [SCN_TRANSPORT_UC] = "uc", [SCN_TRANSPORT_UD] = "ud"};
    return texts[transport];
}

// --- the nodes ------------------------------------------------------------------------------------------------------

static bool is_hca_bad(const struct scn_loader *loader, const struct scn_node *node)
{
    return scn_loader_is_bad(loader, node, true) || scn_loader_is_bad(loader, &node->hca, true);
}

static bool has_hca(struct scn_loader *loader, const struct scn_run *run, const uint32_t *field)
{
    const struct scn_node *node = &loader->scenario->nodes[*field];
    if (!node->hca.given && !is_hca_bad(loader, node)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &run->verbs.device, run),
                         "device: ibsim0 is the node's HCA, '%s' has none", node->name);
    }
    return node->hca.given;
}

static void check_hcas(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_scenario *scenario = loader->scenario;
    bool both = has_hca(loader, run, &run->node);
    both = (run->peer == run->node || has_hca(loader, run, &run->peer)) && both;
    struct scn_sets sets;
    scn_sets_init(&sets);
    scn_sets_join_ib(&sets, scenario);
    bool joined = run->peer == run->node || scn_loader_is_bad(loader, &scenario->ib_cable_count, true) ||
                  scn_loader_is_bad(loader, &scenario->ib_switch_count, true) ||
                  scn_sets_joined(&sets, run->node, run->peer);
    for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
        const struct scn_ib_cable *cable = &scenario->ib_cables[i];
        joined =
            joined || !scn_loader_is_good(loader, &cable->from_node) || !scn_loader_is_good(loader, &cable->to_node);
    }
    if (both && !joined) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &run->peer, run),
                         "peer: no ib_cables join '%s' and '%s'", scenario->nodes[run->node].name,
                         scenario->nodes[run->peer].name);
    }
}

static bool has_board(struct scn_loader *loader, const struct scn_run *run, const uint32_t *field)
{
    const struct scn_node *node = &loader->scenario->nodes[*field];
    if (!node->board.given && !scn_loader_is_bad(loader, node, true) &&
        !scn_loader_is_bad(loader, &node->board, true)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &run->verbs.device, run),
                         "device: tca0 is the node's board, '%s' has none", node->name);
    }
    return node->board.given;
}

static void check_boards(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_scenario *scenario = loader->scenario;
    const struct scn_verbs *verbs = &run->verbs;
    struct scn_location location = scn_loader_location(loader, &run->peer, run);
    bool both = has_board(loader, run, &run->node);
    if (run->peer == run->node) {
        scn_mistakes_add(&loader->mistakes, location,
                         "peer: one process of a node has tca0; it needs another node than '%s'",
                         scenario->nodes[run->node].name);
    } else if (has_board(loader, run, &run->peer) && both && !scn_check_joined(loader, run->node, run->peer)) {
        scn_mistakes_add(&loader->mistakes, location, "peer: no cables lead from '%s' to '%s'",
                         scenario->nodes[run->node].name, scenario->nodes[run->peer].name);
    }
    if (verbs->transport != SCN_TRANSPORT_RC && scn_loader_is_good(loader, &verbs->transport)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &verbs->transport, run),
                         "transport: tca0 has rc, not %s", transport_text(verbs->transport));
    }
    if (run->beside.given) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &run->beside.operation, run),
                         "beside: one process of a node has tca0, so that no second flow runs there");
    }
}

static void check_nodes(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_scenario *scenario = loader->scenario;
    if (run->peer == SCN_NODE_NONE && scn_loader_is_good(loader, &run->peer) && scenario->node_count > 0) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &run->peer, run),
                         "missing key 'peer' in run: a %s needs one", scn_workload_name(run->workload));
    }
    if (!scn_loader_is_good(loader, &run->node) || run->node >= scenario->node_count ||
        run->peer >= scenario->node_count || !scn_loader_is_good(loader, &run->verbs.device)) {
        return;
    }
    if (run->verbs.device == SCN_DEVICE_IBSIM0) {
        check_hcas(loader, run);
    } else if (run->verbs.device == SCN_DEVICE_TCA0) {
        check_boards(loader, run);
    }
}

// --- memory ---------------------------------------------------------------------------------------------------------

// Both nodes need the GPU: in a ping-pong each sends and receives.
static void check_gpu(struct scn_loader *loader, const struct scn_run *run, const enum scn_memory *field)
{
    const struct scn_scenario *scenario = loader->scenario;
    const char *key = field == &run->from ? "from" : "to";
    const uint32_t ends[] = {run->node, run->peer};
    struct scn_location location = scn_loader_location(loader, field, run);
    if (!scn_loader_is_good(loader, field) || *field == SCN_MEMORY_HOST) {
        return;
    }
    if (*field == SCN_MEMORY_FPGA) {
        scn_mistakes_add(&loader->mistakes, location, "%s: only fpga-transfer reaches the FPGA's memory", key);
        return;
    }
    if (run->verbs.device == SCN_DEVICE_TCA0 && (*field == SCN_MEMORY_GPU2 || *field == SCN_MEMORY_GPU3)) {
        scn_mistakes_add(&loader->mistakes, location, "%s: the board's window reaches gpu0 and gpu1", key);
    }
    for (unsigned i = 0; i < 2; i++) {
        uint32_t count = ends[i] < scenario->node_count ? scenario->nodes[ends[i]].gpu_count : SCN_GPUS_MAX;
        if ((uint32_t)(*field - SCN_MEMORY_GPU0) >= count && (i == 0 || ends[1] != ends[0])) {
            scn_mistakes_add(&loader->mistakes, location, "%s: '%s' has %" PRIu32 " GPU%s", key,
                             scenario->nodes[ends[i]].name, count, count == 1 ? "" : "s");
        }
    }
}

static void check_bytes(struct scn_loader *loader, const struct scn_run *run, const struct scn_node *node)
{
    struct scn_location location = scn_loader_location(loader, run->bytes, run);
    const struct scn_verbs *verbs = &run->verbs;
    for (uint32_t i = 0; i < run->bytes_count && scn_loader_is_good(loader, run->bytes); i++) {
        uint64_t bytes = run->bytes[i];
        if (is_atomic(verbs->operation) && bytes != ATOMIC_BYTES) {
            scn_mistakes_add(&loader->mistakes, location, "bytes: %s works on %d B, not on %" PRIu64 " B",
                             scn_operation_name(verbs->operation), ATOMIC_BYTES, bytes);
        } else if (verbs->transport == SCN_TRANSPORT_UD && node->hca.given && bytes > node->hca.active_mtu_bytes) {
            scn_mistakes_add(&loader->mistakes, location,
                             "bytes: a datagram has at most the mtu of %" PRIu32 " B, not %" PRIu64 " B",
                             node->hca.active_mtu_bytes, bytes);
        } else if (node->host.memory_bytes != 0 && bytes * verbs->queue_pairs > node->host.memory_bytes / 8) {
            scn_mistakes_add(&loader->mistakes, location,
                             "bytes: buffers of %" PRIu64 " B for %" PRIu32
                             " queue pairs do not fit into an eighth of the memory of '%s'",
                             bytes, verbs->queue_pairs, node->name);
        }
    }
}

// --- the request ----------------------------------------------------------------------------------------------------

static void require(struct scn_loader *loader, const struct scn_run *run, const void *field, const char *key)
{
    scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, field, run),
                     "missing key '%s' in run: a %s needs one", key, scn_workload_name(run->workload));
}

// The processor sets the last byte of each message, and polls for it.
static void check_polled(struct scn_loader *loader, const struct scn_run *run, const enum scn_memory *field)
{
    if (*field != SCN_MEMORY_HOST && scn_loader_is_good(loader, field)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, field, run),
                         "%s: verbs-latency of write polls the last byte in host memory; take write-imm for a GPU",
                         field == &run->from ? "from" : "to");
    }
}

static void check_operation(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_verbs *verbs = &run->verbs;
    struct scn_location location = scn_loader_location(loader, &verbs->operation, run);
    bool reads = verbs->operation == SCN_OPERATION_READ || is_atomic(verbs->operation);
    if (!scn_loader_is_good(loader, &verbs->operation)) {
        return;
    }
    if (verbs->operation == SCN_OPERATION_NONE) {
        require(loader, run, &verbs->operation, "operation");
        return;
    }
    if (!scn_operation_is_verbs(verbs->operation)) {
        scn_mistakes_add(&loader->mistakes, location, "operation: %s is an operation of programs on ACP",
                         scn_operation_name(verbs->operation));
        return;
    }
    if ((verbs->transport == SCN_TRANSPORT_UC && reads) ||
        (verbs->transport == SCN_TRANSPORT_UD && !is_send(verbs->operation))) {
        scn_mistakes_add(&loader->mistakes, location, "operation: %s has no %s", transport_text(verbs->transport),
                         scn_operation_name(verbs->operation));
    }
    if (run->workload == SCN_WORKLOAD_VERBS_LATENCY && verbs->operation == SCN_OPERATION_WRITE) {
        check_polled(loader, run, &run->from);
        check_polled(loader, run, &run->to);
    }
}

static void check_inline(struct scn_loader *loader, const struct scn_run *run, const struct scn_node *node)
{
    const struct scn_verbs *verbs = &run->verbs;
    if (verbs->device == SCN_DEVICE_IBSIM0 && node->hca.given && verbs->inline_bytes != SCN_INLINE_DEFAULT &&
        verbs->inline_bytes > node->hca.max_inline_bytes && scn_loader_is_good(loader, &verbs->inline_bytes)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &verbs->inline_bytes, run),
                         "inline: the HCA of '%s' takes %" PRIu32 " B, not %" PRIu32 " B", node->name,
                         node->hca.max_inline_bytes, verbs->inline_bytes);
    }
}

static void check_beside(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_beside *beside = &run->beside;
    if (!beside->given || !scn_loader_is_good(loader, &beside->operation)) {
        return;
    }
    if (beside->operation == SCN_OPERATION_NONE) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &beside->operation, beside),
                         "operation: a flow beside needs one");
    } else if (!scn_operation_is_verbs(beside->operation)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &beside->operation, beside),
                         "operation: a flow beside is on libibverbs, which has no %s",
                         scn_operation_name(beside->operation));
    } else if (is_atomic(beside->operation) && beside->bytes != ATOMIC_BYTES &&
               scn_loader_is_good(loader, &beside->bytes)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &beside->bytes, beside),
                         "bytes: %s works on %d B, not on %" PRIu64 " B", scn_operation_name(beside->operation),
                         ATOMIC_BYTES, beside->bytes);
    }
}

static void refuse(struct scn_loader *loader, const struct scn_run *run, const void *field, const char *key,
                   const char *reason)
{
    scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, field, run), "%s: %s does not use it: %s", key,
                     scn_workload_name(run->workload), reason);
}

// verbs-delivery: one queue pair, whose messages each have a place and a receive of their own.
static void check_delivery(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_verbs *verbs = &run->verbs;
    static const char one[] = "it has one reliable queue pair in one direction";
    if (run->workload != SCN_WORKLOAD_VERBS_DELIVERY) {
        return;
    }
    if (verbs->queue_pairs != 1 && scn_loader_is_good(loader, &verbs->queue_pairs)) {
        refuse(loader, run, &verbs->queue_pairs, "queue_pairs", one);
    }
    if (verbs->bidirectional && scn_loader_is_good(loader, &verbs->bidirectional)) {
        refuse(loader, run, &verbs->bidirectional, "bidirectional", one);
    }
    if (verbs->transport != SCN_TRANSPORT_RC && scn_loader_is_good(loader, &verbs->transport)) {
        refuse(loader, run, &verbs->transport, "transport", one);
    }
    if (run->beside.given && scn_loader_is_good(loader, &run->beside.operation)) {
        refuse(loader, run, &run->beside.operation, "beside", one);
    }
    if (run->bytes_count > 1 && scn_loader_is_good(loader, run->bytes)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, run->bytes, run),
                         "bytes: a verbs-delivery has messages of one size, not of %" PRIu32, run->bytes_count);
    }
    if (run->iterations > verbs->receive_depth && scn_loader_is_good(loader, &run->iterations)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &run->iterations, run),
                         "iterations: %" PRIu32 " messages need as many receives, receive_depth is %" PRIu32,
                         run->iterations, verbs->receive_depth);
    }
}

void scn_check_verbs_run(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_scenario *scenario = loader->scenario;
    const struct scn_verbs *verbs = &run->verbs;
    bool latency = run->workload == SCN_WORKLOAD_VERBS_LATENCY || scn_is_acp(run->workload);
    if (run->method != SCN_METHOD_NONE && scn_loader_is_good(loader, &run->method)) {
        refuse(loader, run, &run->method, "method", "the device decides how data moves");
    }
    if (latency && verbs->queue_pairs != 1 && scn_loader_is_good(loader, &verbs->queue_pairs)) {
        refuse(loader, run, &verbs->queue_pairs, "queue_pairs", "one request is under way at a time");
    }
    if (latency && verbs->bidirectional && scn_loader_is_good(loader, &verbs->bidirectional)) {
        refuse(loader, run, &verbs->bidirectional, "bidirectional", "one request is under way at a time");
    }
    if (verbs->device == SCN_DEVICE_NONE && scn_loader_is_good(loader, &verbs->device)) {
        require(loader, run, &verbs->device, "device");
    }
    check_nodes(loader, run);
    if (scn_is_acp(run->workload)) {
        scn_check_acp_run(loader, run);
        return;
    }
    check_operation(loader, run);
    check_gpu(loader, run, &run->from);
    check_gpu(loader, run, &run->to);
    check_beside(loader, run);
    check_delivery(loader, run);
    if (scn_loader_is_good(loader, &run->node) && run->node < scenario->node_count) {
        check_bytes(loader, run, &scenario->nodes[run->node]);
        check_inline(loader, run, &scenario->nodes[run->node]);
    }
}

bool scn_check_other_run(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_verbs *verbs = &run->verbs;
    static const char reason[] = "only programs on libibverbs do";
    const struct {
        const void *field;
        const char *key;
        bool used;
    } keys[] = {
        {&verbs->device, "device", verbs->device != SCN_DEVICE_NONE},
        {&verbs->operation, "operation", verbs->operation != SCN_OPERATION_NONE},
        {&verbs->transport, "transport", verbs->transport != SCN_TRANSPORT_RC},
        {&verbs->queue_pairs, "queue_pairs", verbs->queue_pairs != 1},
        {&verbs->depth, "depth", verbs->depth != SCN_FALLBACK_DEPTH},
        {&verbs->receive_depth, "receive_depth", verbs->receive_depth != SCN_FALLBACK_RECEIVE_DEPTH},
        {&verbs->cq_mod, "cq_mod", verbs->cq_mod != SCN_FALLBACK_CQ_MOD},
        {&verbs->inline_bytes, "inline", verbs->inline_bytes != SCN_INLINE_DEFAULT},
        {&verbs->bidirectional, "bidirectional", verbs->bidirectional},
        {&verbs->volume_bytes, "volume", verbs->volume_bytes != 0},
        {&verbs->qp_timeout, "qp_timeout", verbs->qp_timeout != SCN_FALLBACK_QP_TIMEOUT},
        {&verbs->retry_count, "retry_count", verbs->retry_count != SCN_FALLBACK_RETRY_COUNT},
        {&run->beside.operation, "beside", run->beside.given},
    };
    for (size_t i = 0; scn_loader_is_good(loader, &run->workload) && i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i].used && scn_loader_is_good(loader, keys[i].field)) {
            refuse(loader, run, keys[i].field, keys[i].key, reason);
        }
    }
    if (run->method == SCN_METHOD_NONE && scn_loader_is_good(loader, &run->method)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &run->method, run),
                         "missing key 'method' in run");
    }
    return run->method != SCN_METHOD_NONE;
}
