#include "sim/cli/agreement.h"

#include <math.h>
#include <string.h>

#include "sim/kernel/text.h"

#define NEAR_SHARE 1e-3

const struct agreement_rule agreement_of_twins = {
    {{"rtl", SCN_FIDELITY_RTL}, {"twin", SCN_FIDELITY_TWIN}}, 2.0, 1.0, false};
const struct agreement_rule agreement_of_flow = {
    {{"twin", SCN_FIDELITY_TWIN}, {"flow", SCN_FIDELITY_FLOW}}, 3.0, 3.0, true};

static double percent(double rtl, double twin)
{
    return rtl == twin ? 0.0 : rtl == 0.0 ? INFINITY : (twin - rtl) / rtl * 100.0;
}

static double mean_us(const struct plat_point *point)
{
    return (double)point->total_ps / (double)point->operations * 1e-6;
}

struct point_difference {
    bool measured; // on both
    double latency, bandwidth, worst;
    bool holds;
};

static struct point_difference point_differ(const struct plat_point *rtl, const struct plat_point *twin,
                                            const struct agreement_rule *rule)
{
    bool same =
        rtl->bytes == twin->bytes && rtl->descriptors == twin->descriptors && rtl->operations == twin->operations;
    if (rtl->operations == 0 || twin->operations == 0) {
        return (struct point_difference){.holds = same};
    }
    struct point_difference difference = {.measured = true,
                                          .latency = percent(mean_us(rtl), mean_us(twin)),
                                          .bandwidth = percent(1.0 / mean_us(rtl), 1.0 / mean_us(twin))};
    double least = percent((double)rtl->min_ps, (double)twin->min_ps);
    double most = percent((double)rtl->max_ps, (double)twin->max_ps);
    double extreme = rule->estimates ? 0.0 : fmax(fabs(least), fabs(most));
    difference.worst = fmax(fabs(difference.latency), extreme);
    difference.holds =
        same && difference.worst <= rule->latency_percent && fabs(difference.bandwidth) <= rule->bandwidth_percent;
    return difference;
}

static void point_print(const struct plat_point *rtl, const struct plat_point *twin,
                        const struct point_difference *difference, FILE *out)
{
    const char *mark = difference->holds ? "" : "  DIFFERS";
    if (difference->measured) {
        fprintf(out, "  %10llu %11llu %12.6f %12.6f %+9.4f %+9.4f%s\n", (unsigned long long)rtl->bytes,
                (unsigned long long)rtl->descriptors, mean_us(rtl), mean_us(twin), difference->latency,
                difference->bandwidth, mark);
    } else {
        fprintf(out, "  %10llu %11llu %12s %12s%s\n", (unsigned long long)rtl->bytes,
                (unsigned long long)rtl->descriptors, rtl->operations == 0 ? "none" : "some",
                twin->operations == 0 ? "none" : "some", mark);
    }
}

static void point_json_print(const struct plat_point *rtl, const struct plat_point *twin,
                             const struct point_difference *difference, const struct agreement_rule *rule, FILE *out)
{
    fprintf(out, "{\"bytes\":%llu,\"descriptors\":%llu", (unsigned long long)rtl->bytes,
            (unsigned long long)rtl->descriptors);
    if (difference->measured) {
        fprintf(out, ",\"%s_us\":%.6f,\"%s_us\":%.6f,\"latency_percent\":%.4f,\"bandwidth_percent\":%.4f",
                rule->rungs[0].name, mean_us(rtl), rule->rungs[1].name, mean_us(twin), difference->latency,
                difference->bandwidth);
    }
    fprintf(out, ",\"holds\":%s}", difference->holds ? "true" : "false");
}

static void point_compare(const struct plat_point *rtl, const struct plat_point *twin, struct agreement *agreement,
                          FILE *out)
{
    const struct point_difference difference = point_differ(rtl, twin, agreement->rule);
    if (agreement->json) {
        point_json_print(rtl, twin, &difference, agreement->rule, out);
    } else {
        point_print(rtl, twin, &difference, out);
    }
    agreement->latency_percent = fmax(agreement->latency_percent, difference.worst);
    agreement->bandwidth_percent = fmax(agreement->bandwidth_percent, fabs(difference.bandwidth));
    agreement->wrong += difference.holds ? 0 : 1;
}

// One side has more of something than the other.
static void count_differs(struct agreement *agreement, size_t first, size_t second, const char *what, FILE *out)
{
    if (agreement->json) {
        fprintf(out, ",\"%s_differ\":[%zu,%zu]", what, first, second);
    } else {
        fprintf(out, "  %zu %s on %s, %zu on %s  DIFFERS\n", first, what, agreement->rule->rungs[0].name, second,
                agreement->rule->rungs[1].name);
    }
    agreement->wrong++;
}

static void points_compare(const struct agreement_side *rtl, const struct agreement_side *twin,
                           struct agreement *agreement, FILE *out)
{
    if (agreement->json) {
        fputs(",\"points\":[", out);
    } else {
        fprintf(out, "  %10s %11s %7s [us] %7s [us] %9s %9s\n", "bytes", "descriptors", agreement->rule->rungs[0].name,
                agreement->rule->rungs[1].name, "latency %", "bandw. %");
    }
    size_t count = rtl->point_count < twin->point_count ? rtl->point_count : twin->point_count;
    for (size_t i = 0; i < count; i++) {
        fputs(agreement->json && i > 0 ? ",\n" : "", out);
        point_compare(&rtl->points[i], &twin->points[i], agreement, out);
    }
    fputs(agreement->json ? "]" : "", out);
    if (rtl->point_count != twin->point_count) {
        count_differs(agreement, rtl->point_count, twin->point_count, "points", out);
    }
    agreement->points += count;
}

// --- counters -------------------------------------------------------------------------------------------------------

// Counters of what moved must be equal. Counters that only depend on timing (polls, DLLPs, stalls, picoseconds) follow
// from the latencies; they are shown and not compared.
static bool counter_is_held(const struct sim_counter_desc *desc, const struct agreement_rule *rule)
{
    if (rule->estimates && strcmp(desc->unit, "bytes") != 0) {
        return false;
    }
    static const char *const units[] = {"DLLPs", "turns", "ps", "stalls", "events"};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(desc->unit, units[i]) == 0) {
            return false;
        }
    }
    return strcmp(desc->name, "wire_bytes_sent") != 0 && // DLLPs included
           strcmp(desc->name, "poll_load_bytes") != 0;
}

// What programs do depends on times: on flow, they may wait in another way, and write some words more or fewer.
static bool is_near(const struct agreement_rule *rule, uint64_t a, uint64_t b)
{
    return rule->estimates && fabs((double)a - (double)b) <= NEAR_SHARE * (double)a;
}

// The twin's value of a counter minus the RTL's; modulo 2^64, as all sums here.
static uint64_t more_on_twin(const struct agreement_side *rtl, const struct agreement_side *twin, size_t i)
{
    return twin->counters[i].value - rtl->counters[i].value;
}

static size_t node_length(const char *component)
{
    return strcspn(component, ".");
}

// The same difference for a counter of polling loops in the node's cores.
static uint64_t more_polled(const struct agreement_side *rtl, const struct agreement_side *twin, const char *component,
                            const char *name)
{
    size_t length = node_length(component);
    uint64_t more = 0;
    for (size_t i = 0; i < rtl->counter_count; i++) {
        const char *of = rtl->counters[i].component;
        bool inside = strncmp(of, component, length) == 0 && of[length] == '.';
        more += inside && strcmp(rtl->counters[i].desc->name, name) == 0 ? more_on_twin(rtl, twin, i) : 0;
    }
    return more;
}

// A turn of a polling loop over a device's memory is a read and its completion, which are counted wherever they pass
// inside the node. So such a counter differs by exactly the turns that one side made more.
static bool is_due_to_polls(const struct agreement_side *rtl, const struct agreement_side *twin, size_t i)
{
#define DEVICE(id, ID, name, kind_doc, key_doc) "." #id,
    static const char *const parts[] = {
        ".slot.",
        ".root_complex",
        ".chip",
        ".gpu",
#include "sim/scenario/devices.def"
    };
    static const char *const packets[] = {"tlps_sent", "tlps_received", "cpu_reads",
                                          "tlps_in_n", "tlps_out_n",    "bar_reads"};
    static const char *const data[] = {"payload_bytes_sent", "bar_read_bytes"};
    const struct agreement_counter *counter = &rtl->counters[i];
    const char *rest = counter->component + node_length(counter->component);
    bool inside = false, packet = false, bytes = false;
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
        inside = inside || strncmp(rest, parts[k], strlen(parts[k])) == 0;
    }
    for (size_t k = 0; k < sizeof packets / sizeof packets[0]; k++) {
        packet = packet || strcmp(counter->desc->name, packets[k]) == 0;
    }
    for (size_t k = 0; k < sizeof data / sizeof data[0]; k++) {
        bytes = bytes || strcmp(counter->desc->name, data[k]) == 0;
    }
    uint64_t polled = more_polled(rtl, twin, counter->component, packet ? "poll_loads" : "poll_load_bytes");
    return inside && (packet || bytes) && more_on_twin(rtl, twin, i) == polled;
}

static void counter_print(const struct agreement_counter *a, const struct agreement_counter *b, bool held,
                          const struct agreement_rule *rule, FILE *out)
{
    fprintf(out, "  %s.%s: %s %llu, %s %llu %s%s\n", a->component, a->desc->name, rule->rungs[0].name,
            (unsigned long long)a->value, rule->rungs[1].name, (unsigned long long)b->value, a->desc->unit,
            held ? "" : "  DIFFERS");
}

static void counter_json_print(const struct agreement_counter *a, const struct agreement_counter *b, bool held,
                               const struct agreement_rule *rule, FILE *out)
{
    fputs("{\"component\":", out);
    sim_text_quote(out, a->component);
    fprintf(out, ",\"name\":\"%s\",\"unit\":\"%s\",\"%s\":%llu,\"%s\":%llu,\"holds\":%s}", a->desc->name, a->desc->unit,
            rule->rungs[0].name, (unsigned long long)a->value, rule->rungs[1].name, (unsigned long long)b->value,
            held ? "true" : "false");
}

static void counters_compare(const struct agreement_side *rtl, const struct agreement_side *twin,
                             struct agreement *agreement, FILE *out)
{
    if (rtl->counter_count != twin->counter_count) {
        count_differs(agreement, rtl->counter_count, twin->counter_count, "counters", out);
        return;
    }
    fputs(agreement->json ? ",\"counters\":[" : "", out);
    bool first = true;
    for (size_t i = 0; i < rtl->counter_count; i++) {
        const struct agreement_counter *a = &rtl->counters[i], *b = &twin->counters[i];
        bool same_counter = strcmp(a->component, b->component) == 0 && strcmp(a->desc->name, b->desc->name) == 0;
        if (same_counter && a->value == b->value) {
            continue;
        }
        bool held = same_counter && (!counter_is_held(a->desc, agreement->rule) ||
                                     is_near(agreement->rule, a->value, b->value) || is_due_to_polls(rtl, twin, i));
        fputs(agreement->json && !first ? ",\n" : "", out);
        if (agreement->json || agreement->all || !held) {
            (agreement->json ? counter_json_print : counter_print)(a, b, held, agreement->rule, out);
        }
        first = false;
        agreement->wrong += held ? 0 : 1;
        agreement->free += held ? 1 : 0;
    }
    fputs(agreement->json ? "]" : "", out);
    agreement->counters += rtl->counter_count;
}

static void ending_json_print(const char *name, const char *ending, FILE *out)
{
    fprintf(out, ",\"%s_ending\":", name);
    sim_text_quote(out, ending);
}

static void endings_compare(const struct agreement_side *rtl, const struct agreement_side *twin,
                            struct agreement *agreement, FILE *out)
{
    bool differ = strcmp(rtl->ending, twin->ending) != 0;
    const char *first = agreement->rule->rungs[0].name, *second = agreement->rule->rungs[1].name;
    agreement->wrong += differ ? 1 : 0;
    if (agreement->json && (differ || rtl->ending[0] != '\0')) {
        ending_json_print(first, rtl->ending, out);
        ending_json_print(second, twin->ending, out);
    } else if (!agreement->json && differ) {
        fprintf(out, "  %s: %s\n  %s: %s  DIFFERS\n", first, rtl->ending[0] != '\0' ? rtl->ending : "ended well",
                second, twin->ending[0] != '\0' ? twin->ending : "ended well");
    } else if (!agreement->json && rtl->ending[0] != '\0') {
        fprintf(out, "  both: %s\n", rtl->ending);
    }
}

void agreement_compare(const struct agreement_side *rtl, const struct agreement_side *twin, struct agreement *agreement,
                       FILE *out)
{
    endings_compare(rtl, twin, agreement, out);
    points_compare(rtl, twin, agreement, out);
    counters_compare(rtl, twin, agreement, out);
}

enum cli_exit agreement_exit(const struct agreement *agreement, enum cli_exit ended)
{
    return agreement->wrong != 0 ? cli_exit_worse(ended, CLI_EXIT_EXPECT) : ended;
}
