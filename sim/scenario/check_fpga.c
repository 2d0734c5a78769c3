// Rules about the workload that runs on FPGAs, and about values that only that workload takes.
#include "sim/scenario/loader.h"

#include <inttypes.h>

#define WORD_BYTES           4
#define DESCRIPTOR_BYTES_MAX 0xffffcu // the length has 18 bits of words
#define GUARD_BYTES          8192     // around the data, for its check

static void check_node(struct scn_loader *loader, const struct scn_run *run, const struct scn_node *node)
{
    if (!node->fpga.given && !scn_loader_is_bad(loader, node, true) && !scn_loader_is_bad(loader, &node->fpga, true)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &run->node, run),
                         "node: an fpga-transfer needs an FPGA, '%s' has none", node->name);
    }
}

static void check_ends(struct scn_loader *loader, const struct scn_run *run)
{
    struct scn_location location = scn_loader_location(loader, &run->from, run);
    if (!scn_loader_is_good(loader, &run->from) || !scn_loader_is_good(loader, &run->to)) {
        return;
    }
    if ((run->from == SCN_MEMORY_FPGA) == (run->to == SCN_MEMORY_FPGA)) {
        scn_mistakes_add(&loader->mistakes, location, "from: an fpga-transfer needs fpga as one of from and to, %s",
                         run->from == SCN_MEMORY_FPGA ? "not as both" : "it has none");
    } else if (run->method == SCN_METHOD_VIA_CPU && scn_loader_is_good(loader, &run->method) &&
               (run->from == SCN_MEMORY_HOST || run->to == SCN_MEMORY_HOST)) {
        scn_mistakes_add(&loader->mistakes, location, "from: via-cpu goes between the FPGA and a GPU, not host memory");
    }
}

static void check_method(struct scn_loader *loader, const struct scn_run *run)
{
    if (scn_loader_is_good(loader, &run->method) && run->method != SCN_METHOD_DIRECT &&
        run->method != SCN_METHOD_VIA_CPU) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &run->method, run),
                         "method: fpga-transfer needs direct or via-cpu, not %s", scn_method_name(run->method));
    }
    if (scn_loader_is_good(loader, run->descriptors) && (run->descriptors_count != 1 || run->descriptors[0] != 1)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, run->descriptors, run),
                         "descriptors: fpga-transfer moves one at a time");
    }
}

static void check_bytes(struct scn_loader *loader, const struct scn_run *run, const struct scn_node *node)
{
    struct scn_location location = scn_loader_location(loader, run->bytes, run);
    for (uint32_t i = 0; i < run->bytes_count && scn_loader_is_good(loader, run->bytes); i++) {
        if (run->bytes[i] % WORD_BYTES != 0) {
            scn_mistakes_add(&loader->mistakes, location,
                             "bytes: %" PRIu64 " B is not a multiple of %d B, as DMA needs", run->bytes[i], WORD_BYTES);
        } else if (run->bytes[i] > DESCRIPTOR_BYTES_MAX) {
            scn_mistakes_add(&loader->mistakes, location,
                             "bytes: %" PRIu64 " B are more than the %u B of one descriptor", run->bytes[i],
                             DESCRIPTOR_BYTES_MAX);
        } else if (node->fpga.memory_bytes != 0 && run->bytes[i] + GUARD_BYTES > node->fpga.memory_bytes) {
            scn_mistakes_add(&loader->mistakes, location,
                             "bytes: %" PRIu64 " B and a guard of %d B do not fit into the FPGA's memory of '%s'",
                             run->bytes[i], GUARD_BYTES, node->name);
        }
    }
}

void scn_check_fpga_run(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_scenario *scenario = loader->scenario;
    check_method(loader, run);
    check_ends(loader, run);
    if (scn_loader_is_good(loader, &run->node) && run->node < scenario->node_count) {
        check_node(loader, run, &scenario->nodes[run->node]);
        check_bytes(loader, run, &scenario->nodes[run->node]);
    }
}

bool scn_check_board_run(struct scn_loader *loader, const struct scn_run *run)
{
    bool method = !scn_loader_is_good(loader, &run->method) ||
                  (run->method != SCN_METHOD_DIRECT && run->method != SCN_METHOD_VIA_CPU);
    if (!method) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &run->method, run),
                         "method: %s is of the FPGA; %s moves data by a board", scn_method_name(run->method),
                         scn_workload_name(run->workload));
    }
    const enum scn_memory *const fields[] = {&run->from, &run->to};
    for (unsigned i = 0; i < 2; i++) {
        if (scn_loader_is_good(loader, fields[i]) && *fields[i] == SCN_MEMORY_FPGA) {
            scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, fields[i], run),
                             "%s: only fpga-transfer reaches the FPGA's memory", i == 0 ? "from" : "to");
        }
    }
    return method;
}
