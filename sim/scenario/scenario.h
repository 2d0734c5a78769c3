// A scenario: YAML text, checked and resolved into plain structs.
//
// Every key is declared once, in keys.c and its siblings: name, kind of unit, default, range, doc, and the field in the
// structs below. The loader, `tcasim params`, the error messages and resolved.yaml all come from that table. Times are
// integer picoseconds, sizes bytes, rates megahertz; the YAML always has units ("256 B", "120 ns", "250 MHz").
//
// Layers, each overriding the one before: default of the key < preset in configs/<kind>/<name>.yaml < `with:` < --set.
// Every resolved value remembers where it came from (its source), for the manifest and for `tcasim params`.
//
// Leaves out: the meaning of a value in a model. Ownership: scn_load allocates everything in one scenario object.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/kernel/status.h"
#include "sim/scenario/faults.h"
#include "sim/scenario/limits.h"
#include "sim/scenario/sweep.h"

// One PCI Express link: the slot between a host and a board, or a cable between two boards.
struct scn_link {
    uint32_t generation;         // 1..3
    uint32_t lanes;              // 1, 2, 4, 8, 16
    uint64_t flight_ps;          // signal propagation, one way
    uint32_t ack_every_tlps;     // an ACK is sent at the latest after so many TLPs (0: by the timer alone)
    uint32_t corrupt_every_tlps; // fault injection: every n-th TLP arrives with a wrong LCRC (0: none)
    uint32_t lose_every_acks;    // fault injection: every n-th ACK or NAK is lost (0: none)
};

// The processors of processors.def.
enum scn_processor {
#define PROCESSOR(ID, name, title, model, stepping, mhz, cores, cache_kib, generation) SCN_PROCESSOR_##ID,
#include "sim/scenario/processors.def"
#undef PROCESSOR
    SCN_PROCESSORS
};

// A program's own computing, under `exec`.
enum scn_compute { SCN_COMPUTE_NONE, SCN_COMPUTE_SCALED };

// A node's processor socket: root complex, memory, and the costs of a core's operations.
struct scn_host {
    uint64_t memory_bytes;
    uint32_t mps_bytes;             // Max_Payload_Size set on every device of the node
    uint32_t mrrs_bytes;            // Max_Read_Request_Size
    uint32_t rcb_bytes;             // read completion boundary
    uint64_t root_port_tx_ps;       // transaction layer to first symbol on the wire
    uint64_t root_port_rx_ps;       // last symbol to the transaction layer
    uint64_t memory_read_ps;        // request at the transaction layer to its first completion
    uint64_t memory_write_ps;       // posted write at the transaction layer to visible for a polling core
    uint32_t memory_reads_max;      // inbound reads in progress at once
    uint64_t peer_ps;               // port to port inside the root complex
    uint32_t peer_reads_max;        // outstanding reads between two ports, in pieces as they are passed on
    uint32_t peer_read_bytes;       // largest piece of a read from port to port; 0: passed on whole
    uint64_t qpi_ps;                // one way between two sockets
    uint64_t qpi_peer_write_ps;     // the far socket puts a line of a write from port to port in order
    uint64_t qpi_peer_read_ps;      // the far socket passes on a line of a read, in addition to the path
    uint32_t qpi_peer_lines_max;    // outstanding lines of 64 B from port to port across QPI, each way; 0: one socket
    uint32_t posted_header_credits; // receive buffer of a root port, as advertised
    uint32_t posted_data_credits;   // in units of 16 B
    uint32_t nonposted_header_credits;
    uint64_t store_wc_ps;         // one 8 B store into a write-combining buffer
    uint64_t flush_wc_ps;         // a fence: buffer leaves the core, until it is at the root port
    uint64_t flush_wc_far_ps;     // the same to a device of the other socket; 0: flush_wc_ps and qpi_ps
    uint64_t store_uc_ps;         // one uncached store, until it is at the root port
    uint64_t load_uc_ps;          // core's and uncore's part of one uncached load, of one line of streaming loads
    uint64_t load_uc_return_ps;   // from the answer at the root complex to the core
    uint64_t load_ps;             // one cached load or store of 8 B
    uint64_t device_line_ps;      // a cache line that a device wrote or read last
    uint64_t lock_ps;             // taken and released, without contention
    uint64_t poll_ps;             // one iteration of a polling loop on a cached word
    uint64_t copy_bytes_per_us;   // memcpy inside host memory
    uint64_t timestamp_ps;        // reading the time stamp counter
    uint64_t call_ps;             // entry and exit of a driver library call
    uint64_t interrupt_ps;        // from a device's message to the driver thread that waits for it
    enum scn_processor processor; // what attached programs see
    enum scn_compute compute;
    double compute_scale; // times this machine's processor time
};

enum scn_fidelity { SCN_FIDELITY_RTL, SCN_FIDELITY_TWIN, SCN_FIDELITY_FLOW };

// Where packets of cables wait on a board (models/peach2/ddr3.h).
enum scn_packet_buffer { SCN_PACKET_BUFFER_EMBEDDED, SCN_PACKET_BUFFER_DDR3 };
// How TCA Verbs works with the board (verbs-shim/tca-verbs/tca_verbs.h).
enum scn_verbs_chain { SCN_VERBS_CHAIN_WAITS, SCN_VERBS_CHAIN_PIPELINED };
enum scn_verbs_completion { SCN_VERBS_LAZY, SCN_VERBS_AT_ONCE, SCN_VERBS_HOST };

// A PEACH2 board with its logic.
struct scn_board {
    bool given; // a node may have none
    enum scn_fidelity fidelity;
    uint32_t clock_mhz;
    uint64_t window_base;           // host bus address of the 512 GB window; multiple of its size
    uint64_t ip_tx_ps;              // PCIe hard IP, first beat at its input to first symbol
    uint64_t ip_rx_ps;              // last symbol to first beat at the core
    uint32_t posted_header_credits; // receive buffer of the hard IP
    uint32_t posted_data_credits;
    uint32_t nonposted_header_credits;
    uint32_t tx_buffer_tlps;     // TLPs that the hard IP accepts before it stalls the core
    uint32_t dmac_start_cycles;  // sequencer overhead before the first request of a DMA
    uint32_t dmac_fetch_cycles;  // from the start to the first fetch of a chain, at most dmac_start_cycles
    uint32_t dmac_finish_cycles; // between the last write and the completion status
    uint32_t dmac_read_bytes;    // largest read request, at most 512
    uint32_t dmac_read_tags;     // outstanding reads, 1..32
    uint32_t dmac_prefetch;      // descriptors fetched with one read, 1..4
    enum scn_packet_buffer packet_buffer;
    uint32_t embedded_tlps; // as in models/peach2/ddr3.h
    uint64_t ddr3_bytes_per_us, ddr3_turn_ps;
    bool progress_thread; // of TCA Verbs, in every process of the node
    enum scn_verbs_chain verbs_chain;
    enum scn_verbs_completion verbs_completion;
};

// A GPU with its slot, and the costs of its driver's calls.
struct scn_gpu {
    char model[SCN_NAME_MAX];
    uint64_t memory_bytes, bar_bytes;
    uint32_t socket;
    uint64_t ip_tx_ps, ip_rx_ps; // as a board's
    uint32_t posted_header_credits, posted_data_credits, nonposted_header_credits, tx_buffer_tlps;
    // the rest as in models/gpu/gpu.h
    uint64_t write_ps, read_ps;
    uint32_t reads_max, completion_bytes;
    uint64_t l2_bytes, l2_miss_ps;
    uint32_t copy_engines, copy_reads_max, copy_read_bytes;
    uint64_t copy_setup_ps, launch_ps;
    uint64_t memory_bytes_per_us, flops_per_us;
    uint64_t copy_call_ps, submit_call_ps, manage_call_ps, staging_bytes; // as in verbs-shim/backend/backend.h
    struct scn_link slot;
};

// Requests posted singly that the driver writes to the HCA.
enum scn_blueflame { SCN_BLUEFLAME_INLINE, SCN_BLUEFLAME_ALL };

// Devices of which a node may have one, in addition to its board (devices.def), with a struct for each (struct
// scn_fpga). given: false: the node has none. The other fields are those of the device's keys.
enum scn_device_id {
#define DEVICE(id, ID, name, kind_doc, key_doc) SCN_DEVICE_ID_##ID,
#include "sim/scenario/devices.def"
    SCN_DEVICE_IDS
};
#define DEVICE(id, ID, name, kind_doc, key_doc)                                                                        \
    struct scn_##id {                                                                                                  \
        bool given;
#define KEY(unit, type, key, field, ...) type field;
#define END(id)                                                                                                        \
    }                                                                                                                  \
    ;
#include "sim/scenario/devices.def"

struct scn_node {
    char name[SCN_NAME_MAX];
    char preset[SCN_NAME_MAX]; // name of its hardware: the preset's name, or the key `hardware`
    struct scn_host host;
    struct scn_board board;
    struct scn_link slot;
    struct scn_gpu gpus[SCN_GPUS_MAX];
    uint32_t gpu_count;
#define DEVICE(id, ID, name, kind_doc, key_doc) struct scn_##id id;
#include "sim/scenario/devices.def"
};

struct scn_cable {
    uint32_t from_node, to_node; // indices into nodes
    enum scn_port from_port, to_port;
    struct scn_link link;
};

struct scn_ib_switch {
    char name[SCN_NAME_MAX];
    uint32_t ports;
    uint64_t latency_ps; // as in models/hca/ib_switch.h
    uint64_t port_bytes_per_us;
    uint32_t port_gap_bytes, port_buffer_bytes;
};

// Between two ports of HCAs and switches.
struct scn_ib_cable {
    uint32_t from_node, to_node; // or SCN_IB_SWITCH(i)
    uint64_t flight_ps;          // as in models/hca/ib_link.h
};

// The routes that switches have (ib_fabric.h). Auto: shortest ones, if packets on them never wait for one another in a
// cycle; else up*/down*.
enum scn_ib_routing { SCN_IB_ROUTING_AUTO, SCN_IB_ROUTING_SHORTEST, SCN_IB_ROUTING_UP_DOWN };

enum scn_workload {
#define WORKLOAD(id, function, name, nodes, method, keys) SCN_WORKLOAD_##id,
#include "sim/scenario/workloads.def"
#undef WORKLOAD
};
enum scn_method {
    SCN_METHOD_PIO,
    SCN_METHOD_REGISTER,
    SCN_METHOD_CHAIN_HOST,
    SCN_METHOD_CHAIN_BOARD,
    SCN_METHOD_UVA, // of cudaMemcpyPeer
    SCN_METHOD_NO_UVA,
    SCN_METHOD_DIRECT, // of an FPGA's DMA
    SCN_METHOD_VIA_CPU,
    SCN_METHOD_NONE // programs on libibverbs; all others need one
};

// The owner of the memory with the data.
enum scn_memory {
    SCN_MEMORY_HOST,
    SCN_MEMORY_GPU0,
    SCN_MEMORY_GPU1,
    SCN_MEMORY_GPU2,
    SCN_MEMORY_GPU3,
    SCN_MEMORY_FPGA
};

// The memory of libtca's notification words.
enum scn_notify { SCN_NOTIFY_HOST, SCN_NOTIFY_BOARD };

// What programs on libibverbs do, on which device and over which service of InfiniBand.
enum scn_device { SCN_DEVICE_NONE, SCN_DEVICE_TCA0, SCN_DEVICE_IBSIM0 };
enum scn_operation {
    SCN_OPERATION_NONE,
#define VERBS_OPERATION(ID, name, verb) SCN_OPERATION_##ID,
#define ACP_OPERATION(ID, name)         SCN_OPERATION_##ID,
#include "sim/scenario/operations.def"
};
enum scn_transport { SCN_TRANSPORT_RC, SCN_TRANSPORT_UC, SCN_TRANSPORT_UD };

// An all-reduce. Hierarchical: recursive doubling in each sub-cluster, then between their first nodes, which pass the
// result on.
enum scn_algorithm { SCN_ALGORITHM_RING, SCN_ALGORITHM_DOUBLING, SCN_ALGORITHM_HIERARCHICAL };

// The keys of a run that only programs on libibverbs use.
struct scn_verbs {
    enum scn_device device;
    enum scn_operation operation;
    enum scn_transport transport;
    uint32_t queue_pairs;
    uint32_t depth, receive_depth; // outstanding requests of a queue pair
    uint32_t cq_mod;               // one completion for this many requests
    uint32_t inline_bytes;         // SCN_INLINE_DEFAULT: perftest's default for the workload
    bool bidirectional;
    uint64_t volume_bytes; // 0: no limit
    uint32_t qp_timeout, retry_count;
};
#define SCN_INLINE_DEFAULT UINT32_MAX

// An interfering flow on the same two nodes and the same device. It starts before the measured flow and ends after it.
struct scn_beside {
    bool given;
    enum scn_operation operation;
    uint64_t bytes;
    uint32_t depth, cq_mod;
};

// One series of measurements, made in a simulation of its own: every (bytes, descriptors) pair is one point.
struct scn_run {
    char series[SCN_NAME_MAX];
    enum scn_workload workload;
    enum scn_method method;
    uint32_t node, peer;          // node measures; peer is SCN_NODE_NONE for a workload on one node
    uint32_t channel;             // DMA channel 0..3
    uint64_t bytes[SCN_LIST_MAX]; // of one transfer or descriptor
    uint32_t bytes_count;
    uint64_t descriptors[SCN_LIST_MAX];
    uint32_t descriptors_count;
    uint32_t iterations; // measured repetitions of a point
    uint32_t warmup;     // repetitions before them
    enum scn_memory from, to;
    enum scn_notify notify;
    uint32_t columns;       // of the grid of a halo exchange
    uint32_t block_columns; // of the part of the grid that a sub-cluster has; 0: as square as possible
    enum scn_algorithm algorithm;
    // Numbers of ranks of programs on ACP, each measured in a simulation of its own. 0: see scn_acp_ranks.
    uint64_t ranks[SCN_LIST_MAX];
    uint32_t ranks_count;
    struct scn_verbs verbs;
    struct scn_beside beside;
};

// A number taken from the results: rows of `series` whose bytes lie in [bytes_min, bytes_max] and whose descriptors lie
// in [descriptors_min, descriptors_max], reduced over one column.
enum scn_take { SCN_TAKE_MIN, SCN_TAKE_MAX, SCN_TAKE_MEAN, SCN_TAKE_LAST };
struct scn_value {
    bool given;
    char series[SCN_NAME_MAX];
    char column[SCN_NAME_MAX]; // a column of data.csv
    enum scn_take take;
    uint64_t bytes_min, bytes_max; // `at: 8 KiB` sets both
    uint64_t descriptors_min, descriptors_max;
    uint64_t ranks; // 0: of any number
};

// What an expectation checks instead of `value`, and the bounds that it may have in addition to min and max.
struct scn_observed {
    char program[SCN_NAME_MAX]; // the program whose output is checked
    char match[SCN_TEXT_MAX];   // POSIX extended regular expression; its one group is the number
    char counter[SCN_TEXT_MAX]; // a sum of counters (sum.h): "COMPONENT.COUNTER" as in counters.csv
    char series[SCN_NAME_MAX];  // of the counters; empty: every one
    char equals[SCN_TEXT_MAX];  // a number; beside counter a sum; for a program without match, a file
    char of[SCN_TEXT_MAX];      // the file with the recorded numbers
    double within_percent;      // of these numbers
};
enum scn_subject { SCN_SUBJECT_SERIES, SCN_SUBJECT_MATCH, SCN_SUBJECT_OUTPUT, SCN_SUBJECT_COUNTER };

// expect: min <= value [/ over] <= max.  compare: value [/ over] against the published row `id`.
// With `first_reaching: R` the result is instead the smallest `bytes` at which value's column is at least R times
// `over`, with `last_reaching: R` the largest; with `per_row`, each row is divided by the row of `over` with the same
// bytes.
struct scn_check {
    char id[SCN_NAME_MAX]; // compare: id in reference/papers.csv; expect: its name
    char what[SCN_TEXT_MAX];
    struct scn_value value, over;
    bool difference;              // over is subtracted
    bool per_row;                 // divide row by row (same bytes and descriptors) before reducing
    double first_reaching;        // 0: not used
    double last_reaching;         // 0: not used
    double min, max;              // expect only; +-INFINITY when open
    struct scn_observed observed; // expect only
    unsigned line, column;        // in the file, for messages
};

struct scn_panel {
    char title[SCN_TEXT_MAX];
    char x[SCN_NAME_MAX], y[SCN_NAME_MAX]; // columns of data.csv
    bool x_log, y_log;
    uint64_t x_max;            // 0: all
    char series[SCN_TEXT_MAX]; // a pattern with *; empty: all
    uint64_t at;               // rows of this size; 0: all
    unsigned line, column;     // in the file, for messages
};

// A text that programs' commands refer to as ${NAME}, so that a sweep or --set can change it.
#define SCN_PARAMETERS_MAX 16
struct scn_parameter {
    char name[SCN_NAME_MAX];
    char value[SCN_TEXT_MAX];
};

// The table of results in a program's output, and the series of its rows.
enum scn_format { SCN_FORMAT_NONE, SCN_FORMAT_PERFTEST, SCN_FORMAT_OSU, SCN_FORMAT_CSV };
struct scn_results {
    char series[SCN_NAME_MAX]; // empty: the program prints no results
    enum scn_format format;
    char columns[SCN_TEXT_MAX]; // instead of a format: a name for each number of a line
};

enum scn_ends { SCN_ENDS_BY_ITSELF, SCN_ENDS_WITH_OTHERS };

// A program of this machine that runs on a node: `tcasim exec` shows its output, `tcasim run` makes results of it.
// Texts are split into words as by a shell.
#define SCN_OUTSIDES_MAX 64
struct scn_outside {
    char name[SCN_NAME_MAX]; // empty: the name of its file, see scn_outside_name
    uint32_t node;
    char command[SCN_COMMAND_MAX];                            // the program and its arguments
    char env[SCN_COMMAND_MAX];                                // NAME=VALUE ...
    char needs[SCN_TEXT_MAX];                                 // programs that must be installed
    char stdin_path[SCN_TEXT_MAX], stdout_path[SCN_TEXT_MAX]; // empty: those of tcasim
    uint64_t status;                                          // expected exit status
    bool gpu_mpi;                                             // its MPI takes device pointers
    enum scn_ends ends;                                       // WITH_OTHERS: a server, see attach_program
    struct scn_results results;
};

struct scn_scenario {
    char name[SCN_NAME_MAX]; // the file's name without .yaml, unless the key `name` gives another
    const char *directory;   // of the file, with a slash at its end, or empty; files that it names lie there
    char title[SCN_TEXT_MAX];
    uint64_t seed;
    enum scn_fidelity fidelity; // of boards that have no other, and of everything without one
    uint64_t time_limit_ps;     // of simulated time per series
    uint64_t silence_limit_ps;
    struct scn_node nodes[SCN_NODES_MAX];
    uint32_t node_count;
    struct scn_cable cables[SCN_CABLES_MAX];
    uint32_t cable_count;
    struct scn_ib_switch ib_switches[SCN_IB_SWITCHES_MAX];
    uint32_t ib_switch_count;
    struct scn_ib_cable ib_cables[SCN_IB_CABLES_MAX];
    uint32_t ib_cable_count;
    enum scn_ib_routing ib_routing;
    struct scn_fault faults[SCN_FAULTS_MAX];
    uint32_t fault_count;
    struct scn_run runs[SCN_RUNS_MAX];
    uint32_t run_count;
    struct scn_parameter parameters[SCN_PARAMETERS_MAX];
    uint32_t parameter_count;
    struct scn_outside outsides[SCN_OUTSIDES_MAX];
    uint32_t outside_count;
    struct scn_check expects[SCN_CHECKS_MAX];
    uint32_t expect_count;
    struct scn_check compares[SCN_CHECKS_MAX];
    uint32_t compare_count;
    struct scn_panel panels[SCN_PANELS_MAX];
    uint32_t panel_count;
    const struct scn_sweep *sweep; // NULL: none
};

// Mistakes found in one load, in file order: "file:line:column: text" each.
struct scn_messages {
    char **lines;
    size_t count;
};
void scn_messages_free(struct scn_messages *messages);

// Receives a mistake at a location in the scenario's file; line 0: the mistake concerns the file as a whole.
typedef void (*scn_complain_fn)(void *ctx, unsigned line, unsigned column, const char *text);

// Files of presets that several loads share: each is read once. They are those of one configs_dir, and must not change
// meanwhile. The loaded scenarios are freed first.
typedef struct scn_presets scn_presets_t;
scn_presets_t *scn_presets_create(void);
void scn_presets_destroy(scn_presets_t *presets); // NULL is allowed

struct scn_load_options {
    const char *configs_dir; // where presets are
    scn_presets_t *presets;  // NULL: shared with no other load
    const char *const *sets; // "path=value", applied last
    size_t set_count;
    // Checks that another room makes (names of columns), or NULL. Also called for a scenario with mistakes, in which
    // fields that could not be read are empty.
    void (*check)(void *check_ctx, const struct scn_scenario *scenario, scn_complain_fn complain, void *complain_ctx);
    void *check_ctx;
    bool presets_may_be_unused; // a setting presets.KIND.NAME.KEY=VALUE of a preset that nothing uses is no mistake
    bool *sets_used; // optional, of each setting (of a point: of its own behind the others): presets... that gave a value
    bool without_sweep; // ignore `sweep:`; for one of its points, whose settings are in sets
};

// Reads, resolves and checks. SIM_OK: the caller owns *scenario_out; messages holds warnings, or nothing.
// SIM_ERR_INVALID or SIM_ERR_IO: messages holds every mistake (at least one), and *scenario_out is unchanged.
enum sim_status scn_load(const char *path, const struct scn_load_options *options, struct scn_scenario **scenario_out,
                         struct scn_messages *messages);
void scn_free(struct scn_scenario *scenario);

// Whether the workload is a program on ACP. The number of ranks: ranks itself, or what `ranks: 0` means.
bool scn_is_acp(enum scn_workload workload);
uint64_t scn_acp_ranks(const struct scn_scenario *scenario, const struct scn_run *run, uint64_t ranks);

// Loads one point of the sweep of the scenario that scn_load returned for the same path and options. The point
// overrides --set, so that its label stays true.
enum sim_status scn_load_point(const char *path, const struct scn_load_options *options,
                               const struct scn_sweep_point *point, struct scn_scenario **scenario_out,
                               struct scn_messages *messages);

// The series of the results: those of the runs, then those that programs print. NULL: there are fewer. Returns a
// pointer to the field.
const char *scn_series(const struct scn_scenario *scenario, uint32_t index);

// The name of a program of the scenario: its `name:`, else the name of the file that its command starts. Empty: the
// command's first word is not known before the run.
void scn_outside_name(const struct scn_scenario *scenario, uint32_t index, char name[SCN_NAME_MAX]);

// The first program of that name, and the number of such programs. A `name:` is preferred to the name of a file.
// SCN_OUTSIDES_MAX: there is none.
uint32_t scn_outside_find(const struct scn_scenario *scenario, const char *name, uint32_t *count_out);

// Whether an expectation checks the program's output, by its name or by the series of its results.
bool scn_outside_is_observed(const struct scn_scenario *scenario, uint32_t index);

// The subject of an expectation, its name, and its bounds; `equals` is both bounds.
enum scn_subject scn_check_subject(const struct scn_check *check);
void scn_check_label(const struct scn_check *check, char *label, size_t size);
void scn_check_bounds(const struct scn_check *check, double *min_out, double *max_out);

// The source of a field's value in a loaded scenario: a preset's source or assumption, "file:line:column",
// "--set ...", or "default". field points into *scenario, which must be the one that scn_load returned. The text
// lives as long as the scenario.
const char *scn_source(const struct scn_scenario *scenario, const void *field);

// Calls visit for every value in the order of the table: its path as --set takes it, the value as YAML writes it, and
// its source. The three texts live only during the call.
void scn_visit(const struct scn_scenario *scenario,
               void (*visit)(void *context, const char *path, const char *value, const char *source), void *context);

// Writes the resolved scenario as YAML without presets; loading it again gives an equal scenario.
enum sim_status scn_write_resolved(const struct scn_scenario *scenario, FILE *out);

// JSON Schema (draft 2020-12) of scenarios, for editors. What it cannot say, such as rules between keys, the loader checks.
enum sim_status scn_write_schema(FILE *out);

// `tcasim params`: every key with kind, unit, default, range and doc; with configs_dir also the value and source in
// each preset. filter (may be NULL) keeps keys that have it, or a word that means the same, in their name, meaning,
// choices or sources. SIM_ERR_NOT_FOUND: no key does. MANUAL: without the title line.
enum scn_params_form { SCN_PARAMS_TEXT, SCN_PARAMS_MARKDOWN, SCN_PARAMS_JSON, SCN_PARAMS_MANUAL };
enum sim_status scn_print_params(FILE *out, const char *configs_dir, const char *filter, enum scn_params_form form);
// The key nearest to a mistyped word, NULL when none is near.
const char *scn_key_suggest(const char *word);

// Names as in YAML.
const char *scn_port_name(enum scn_port port);
const char *scn_method_name(enum scn_method method);
const char *scn_workload_name(enum scn_workload workload);
const char *scn_operation_name(enum scn_operation operation);
bool scn_operation_is_verbs(enum scn_operation operation);
bool scn_operation_is_acp(enum scn_operation operation);
