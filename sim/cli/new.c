// `tcasim new`: writes a scenario to start from, with comments that say what to change.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/options.h"
#include "sim/cli/reproduction.h"

enum { RING_MAX = 16 };

struct new_options {
    const char *ring, *verbs, *programs;
    bool pair;
};

static const struct cli_option options[] = {
    {"pair", NULL, "two nodes with boards, ping-pongs by DMA and by stores of the processor (the default)",
     CLI_OPTION_FLAG, offsetof(struct new_options, pair)},
    {"ring", "N", "N nodes with boards in a ring, 2 to 16, whose neighbours exchange messages", CLI_OPTION_TEXT,
     offsetof(struct new_options, ring)},
    {"verbs", "DEVICE",
     "two nodes with ibsim0 (InfiniBand) or tca0 (boards), measured by libibverbs inside the simulator",
     CLI_OPTION_TEXT, offsetof(struct new_options, verbs)},
    {"programs", "DEVICE", "the same two nodes for programs of this machine, to be run by `tcasim exec`",
     CLI_OPTION_TEXT, offsetof(struct new_options, programs)},
};

static const struct cli_syntax syntax = {
    .usage = "tcasim new FILE.yaml [--pair | --ring N | --verbs DEVICE | --programs DEVICE]",
    .doc = "Writes a scenario to start from: what it asks, the machine, what is measured, what must hold, and, as\n"
           "comments, what is changed next. An existing file is not replaced.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands_min = 1,
    .operands_max = 1,
    .operand = "the new file",
};

// --- texts ----------------------------------------------------------------------------------------------------------

// In the texts @ stands for the number of nodes.

#define QUESTION                                                                                                       \
    "# Question: (what do you want to know?)\n"                                                                        \
    "# Expected: (a number, and why)\n"                                                                                \
    "# A wrong result would look like: (another number, and what it would mean)\n"
#define FIDELITY                                                                                                       \
    "fidelity: twin    # rtl: the board's Verilog, the same times and slower; flow: faster, long transfers "           \
    "estimated\n"
#define BOARDS(shape, year) "topology: {" shape ", preset: ha-pacs-tca-" year ", cable: pearl-gen2-x8}\n"
#define HCAS                                                                                                           \
    "nodes:\n"                                                                                                         \
    "  - {name: node, count: 2, host: {preset: xeon-e5-2680v2}, hca: {preset: connectx3-qdr}}\n"                       \
    "ib_cables:\n"                                                                                                     \
    "  - {from: node0, to: node1, flight: 75 ns}\n"
#define WHAT_IF(paths)                                                                                                 \
    "# A what-if: the same for every value of a key. `tcasim params WORD` finds keys.\n"                               \
    "# sweep:\n" paths
#define LATENCY   "  - {title: Latency, x: bytes, y: latency_us, y_log: true}\n"
#define BANDWIDTH "  - {title: Bandwidth, x: bytes, y: bandwidth_GBps}\n"

static const char pair_text[] = QUESTION "title: A ping-pong between two boards\n" FIDELITY BOARDS(
    "kind: pair",
    "2013") "runs:\n"
            "  - {series: DMA, workload: pingpong, method: register, node: node0, peer: node1,\n"
            "     bytes: {from: 8 B, to: 512 KiB, factor: 4}, iterations: 10}\n"
            "  - {series: PIO, workload: pingpong, method: pio, node: node0, peer: node1,\n"
            "     bytes: {from: 8 B, to: 2 KiB, factor: 4}, iterations: 10}\n" WHAT_IF(
                "#   nodes.*.board.dmac_read_tags: [2, 4, 8, 16]\n"
                "#   cables.*.flight: [5 ns, 15 ns, 35 ns]\n") "expect:\n"
                                                               "  - name: stores of the processor are faster for 8 B\n"
                                                               "    value: {series: PIO, column: latency_us, at: 8 B}\n"
                                                               "    over: {series: DMA, column: latency_us, at: 8 B}\n"
                                                               "    max: 1\n"
                                                               "plot:\n" LATENCY BANDWIDTH;

static const char ring_text[] = QUESTION "title: Neighbours on a ring of @ nodes exchange messages\n" FIDELITY BOARDS(
    "kind: ring, nodes: @",
    "2013") "runs:\n"
            "  - {series: chain, workload: ring-exchange, method: chain-board, node: node0,\n"
            "     bytes: {from: 8 B, to: 128 KiB, factor: 4}, iterations: 3, warmup: 1}\n" WHAT_IF(
                "#   topology.nodes: [4, 8, 16]\n"
                "#   cables.*.lanes: [x4, x8]\n") "expect:\n"
                                                  "  - {name: each TLP is delivered once, counter: \"*.tlps_sent\", "
                                                  "equals: \"*.tlps_received\"}\n"
                                                  "plot:\n" LATENCY BANDWIDTH;

#define VERBS_RUNS(device)                                                                                             \
    "runs:\n"                                                                                                          \
    "  - {series: latency, workload: verbs-latency, device: " device ", operation: send, node: node0, peer: node1,\n"  \
    "     bytes: {from: 8 B, to: 32 KiB, factor: 8}, iterations: 50}\n"                                                \
    "  - {series: bandwidth, workload: verbs-bandwidth, device: " device                                               \
    ", operation: write, node: node0, peer: node1,\n"                                                                  \
    "     bytes: {from: 8 B, to: 2 MiB, factor: 8}, iterations: 50}\n"
#define VERBS_EXPECT                                                                                                   \
    "expect:\n"                                                                                                        \
    "  - {name: a few microseconds, value: {series: latency, column: latency_us, at: 8 B}, min: 0.5, max: 5}\n"        \
    "plot:\n" LATENCY BANDWIDTH

static const char verbs_ibsim0_text[] = QUESTION "title: Messages over InfiniBand\n" FIDELITY HCAS VERBS_RUNS("ibsim0")
    WHAT_IF("#   nodes.*.hca.generation: [Gen2, Gen3]\n") VERBS_EXPECT;
static const char verbs_tca0_text[] = QUESTION "title: Messages over TCA Verbs\n" FIDELITY BOARDS("kind: pair", "2014")
    VERBS_RUNS("tca0") WHAT_IF("#   nodes.*.board.clock: [125 MHz, 250 MHz]\n") VERBS_EXPECT;

// perftest's line for 8 B has the typical latency in its fifth column.
#define PROGRAMS                                                                                                       \
    "programs:    # commands as in a shell; names of nodes are names of hosts\n"                                       \
    "  - {name: server, node: node0, command: ib_send_lat -s 8 -n 1000}\n"                                             \
    "  - {name: client, node: node1, command: ib_send_lat -s 8 -n 1000 node0}\n"                                       \
    "expect:    # about what programs print, and about counters\n"                                                     \
    "  - name: the typical latency\n"                                                                                  \
    "    program: client\n"                                                                                            \
    "    match: '^ 8 +1000 +[0-9.]+ +[0-9.]+ +([0-9.]+)'\n"                                                            \
    "    min: 0.5\n"                                                                                                   \
    "    max: 5\n"

static const char programs_ibsim0_text[] =
    QUESTION "title: Two programs over InfiniBand\n" HCAS PROGRAMS
             "  - {name: no packet is sent again, counter: node1.hca.packets_resent, max: 0}\n";
static const char programs_tca0_text[] =
    QUESTION "title: Two programs over TCA Verbs\n" FIDELITY BOARDS("kind: pair", "2014") PROGRAMS;

// --- the choice -----------------------------------------------------------------------------------------------------

static bool ring_read(const char *text, uint64_t *nodes_out)
{
    char *end = NULL;
    if (!cli_number_read(text, &end, nodes_out) || *end != '\0' || *nodes_out < 2 || *nodes_out > RING_MAX) {
        cli_error("--ring takes a number of nodes from 2 to %d, not '%s'", RING_MAX, text);
        return false;
    }
    return true;
}

// NULL: reported.
static const char *of_device(const char *option, const char *device, const char *ibsim0, const char *tca0)
{
    if (strcmp(device, "ibsim0") == 0 || strcmp(device, "tca0") == 0) {
        return device[0] == 'i' ? ibsim0 : tca0;
    }
    cli_error("%s takes ibsim0 or tca0, not '%s'", option, device);
    return NULL;
}

static const char *text_choose(const struct new_options *given, uint64_t *nodes_out)
{
    unsigned chosen = given->pair + (given->ring != NULL) + (given->verbs != NULL) + (given->programs != NULL);
    if (chosen > 1) {
        cli_error("choose one of --pair, --ring, --verbs and --programs");
        return NULL;
    }
    if (given->ring != NULL) {
        return ring_read(given->ring, nodes_out) ? ring_text : NULL;
    }
    if (given->verbs != NULL) {
        return of_device("--verbs", given->verbs, verbs_ibsim0_text, verbs_tca0_text);
    }
    if (given->programs != NULL) {
        return of_device("--programs", given->programs, programs_ibsim0_text, programs_tca0_text);
    }
    return pair_text;
}

static enum cli_exit file_write(const char *path, const char *text, uint64_t nodes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (out == NULL) {
        cli_error("%s: %s", path, fd < 0 && errno == EEXIST ? "the file exists already" : strerror(errno));
        return CLI_EXIT_INPUT;
    }
    for (; *text != '\0'; text++) {
        if (*text == '@') {
            fprintf(out, "%" PRIu64, nodes);
        } else {
            fputc(*text, out);
        }
    }
    if (fclose(out) != 0) {
        cli_error("%s: %s", path, strerror(errno));
        return CLI_EXIT_INPUT;
    }
    return CLI_EXIT_OK;
}

enum cli_exit cli_new(int argc, char **argv)
{
    struct new_options given = {0};
    struct cli_list files = {0};
    enum cli_exit result = CLI_EXIT_OK;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &given, &files);
    if (parsed == CLI_PARSED_RUN) {
        uint64_t nodes = 0;
        const char *text = text_choose(&given, &nodes);
        result = text != NULL ? file_write(files.items[0], text, nodes) : CLI_EXIT_INPUT;
        if (result == CLI_EXIT_OK) {
            printf("%s is written; next: tcasim %s %s", files.items[0], given.programs != NULL ? "exec" : "watch",
                   files.items[0][0] == '-' ? "-- " : "");
            cli_word_print(files.items[0], stdout);
            putchar('\n');
        }
    }
    cli_list_free(&files);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : result;
}
