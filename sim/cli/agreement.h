// Compares two runs of a series on neighbouring rungs of the ladder of fidelities: RTL boards and their twins, or twins
// and flow. Latencies agree within 2 % (flow: 3 %), bandwidths within 1 % (3 %), counters of what moved and the way the
// runs ended exactly. Counters that only depend on timing (polls, DLLPs, stalls) are shown and not compared. The packets
// of polling loads may differ by as many as the core counts of them. On flow, counts of packets are estimates and not
// compared, nor are the extremes of a point.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/cli/cli.h"
#include "sim/platform/platform.h"

struct agreement_counter {
    char *component;
    const struct sim_counter_desc *desc;
    uint64_t value;
};

// The results of a series.
struct agreement_side {
    struct plat_point *points;
    size_t point_count;
    struct agreement_counter *counters;
    size_t counter_count;
    const char *ending; // "", or how it failed
};

struct agreement_rung {
    const char *name;
    enum scn_fidelity fidelity;
};

struct agreement_rule {
    struct agreement_rung rungs[2];
    double latency_percent, bandwidth_percent;
    bool estimates; // the second one estimates the packets of streams, and holds for the mean of a point
};
extern const struct agreement_rule agreement_of_twins, agreement_of_flow;

struct agreement {
    const struct agreement_rule *rule;
    double latency_percent, bandwidth_percent; // the largest differences
    size_t points, counters, wrong;
    size_t free;    // counters of other values that are not held to be equal
    bool json, all; // all: print those, too
};

// Adds the differences to *agreement. Prints the points, and the counters that differ: as text, or, with all that are
// not equal, as members of a JSON object after the first: ,"points":[...],"counters":[...].
void agreement_compare(const struct agreement_side *rtl, const struct agreement_side *twin, struct agreement *agreement,
                       FILE *out);

// The exit status of the command: at least 1 if something differs. ended: the worst of its series.
enum cli_exit agreement_exit(const struct agreement *agreement, enum cli_exit ended);
