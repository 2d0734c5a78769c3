// Rules about faults; finds the cable that each fault means.
#include "sim/scenario/loader.h"

#include <inttypes.h>

#include "sim/scenario/ib_fabric.h"
#include "sim/scenario/routes.h"
#include "sim/scenario/units.h"

#define ENDPOINT_MAX (SCN_NAME_MAX + 4)

static void endpoint_print(const struct scn_scenario *scenario, uint32_t node, enum scn_port port,
                           char text[ENDPOINT_MAX])
{
    snprintf(text, ENDPOINT_MAX, "%s.%s", scenario->nodes[node].name, scn_port_name(port));
}

static bool is_cable(const struct scn_cable *cable, const struct scn_fault_ends *ends)
{
    bool straight = cable->from_node == ends->from_node && cable->from_port == ends->from_port &&
                    cable->to_node == ends->to_node && cable->to_port == ends->to_port;
    bool reversed = cable->from_node == ends->to_node && cable->from_port == ends->to_port &&
                    cable->to_node == ends->from_node && cable->to_port == ends->from_port;
    return straight || reversed;
}

static void complain_no_cable(struct scn_loader *loader, const struct scn_fault *fault)
{
    const struct scn_scenario *scenario = loader->scenario;
    const struct scn_fault_ends *ends = &fault->ends;
    struct scn_location location = scn_loader_location(loader, &ends->from_node, ends);
    char from[ENDPOINT_MAX], to[ENDPOINT_MAX], other[ENDPOINT_MAX];
    enum scn_port port = SCN_PORT_N;
    struct scn_routes *routes = scn_routes_find(scenario);
    uint32_t neighbour = scn_routes_neighbour(routes, ends->from_node, ends->from_port, &port);
    scn_routes_free(routes);
    endpoint_print(scenario, ends->from_node, ends->from_port, from);
    endpoint_print(scenario, ends->to_node, ends->to_port, to);
    if (neighbour == SCN_NODE_NONE) {
        scn_mistakes_add(&loader->mistakes, location, "cable: no cable joins %s and %s; %s has none", from, to, from);
        return;
    }
    endpoint_print(scenario, neighbour, port, other);
    scn_mistakes_add(&loader->mistakes, location, "cable: no cable joins %s and %s; that of %s leads to %s", from, to,
                     from, other);
}

static bool is_ib_cable(const struct scn_ib_cable *cable, const struct scn_fault_ib_ends *ends)
{
    return (cable->from_node == ends->from_node && cable->to_node == ends->to_node) ||
           (cable->from_node == ends->to_node && cable->to_node == ends->from_node);
}

static void check_ib_cable(struct scn_loader *loader, struct scn_fault *fault)
{
    const struct scn_scenario *scenario = loader->scenario;
    const struct scn_fault_ib_ends *ends = &fault->ib_ends;
    struct scn_location location = scn_loader_location(loader, &ends->from_node, ends);
    if (scn_loader_is_bad(loader, &scenario->ib_cable_count, true) || scn_loader_is_bad(loader, ends, true) ||
        !scn_loader_is_good(loader, &ends->from_node) || !scn_loader_is_good(loader, &ends->to_node)) {
        return; // reported
    }
    while (fault->cable < scenario->ib_cable_count && !is_ib_cable(&scenario->ib_cables[fault->cable], ends)) {
        fault->cable++;
    }
    if (fault->cable == scenario->ib_cable_count) {
        scn_mistakes_add(&loader->mistakes, location, "ib_cable: no cable joins %s and %s",
                         scn_ib_vertex_name(scenario, ends->from_node), scn_ib_vertex_name(scenario, ends->to_node));
        return;
    }
    for (const struct scn_fault *earlier = scenario->faults; earlier < fault; earlier++) {
        if (earlier->ib_ends.given && earlier->cable == fault->cable) {
            scn_mistakes_add(&loader->mistakes, location,
                             "ib_cable: it has a fault already (line %u); a cable is pulled once",
                             scn_loader_location(loader, &earlier->ib_ends.from_node, &earlier->ib_ends).line);
            return;
        }
    }
}

static void check_cable(struct scn_loader *loader, struct scn_fault *fault)
{
    const struct scn_scenario *scenario = loader->scenario;
    const struct scn_fault_ends *ends = &fault->ends;
    if (scn_loader_is_bad(loader, &scenario->cable_count, true) || scn_loader_is_bad(loader, ends, true) ||
        scn_loader_is_bad(loader, &ends->from_node, false) || scn_loader_is_bad(loader, &ends->to_node, false) ||
        ends->from_node >= scenario->node_count || ends->to_node >= scenario->node_count) {
        return; // reported
    }
    while (fault->cable < scenario->cable_count && !is_cable(&scenario->cables[fault->cable], ends)) {
        fault->cable++;
    }
    if (fault->cable == scenario->cable_count) {
        complain_no_cable(loader, fault);
        return;
    }
    for (const struct scn_fault *earlier = scenario->faults; earlier < fault; earlier++) {
        if (earlier->ends.given && earlier->cable == fault->cable) {
            scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &ends->from_node, ends),
                             "cable: it has a fault already (line %u); a cable is pulled once",
                             scn_loader_location(loader, &earlier->ends.from_node, &earlier->ends).line);
            return;
        }
    }
}

static void check_moment(struct scn_loader *loader, const struct scn_fault *fault)
{
    const struct scn_scenario *scenario = loader->scenario;
    if (scn_loader_is_bad(loader, &fault->at_ps, false) || scn_loader_is_bad(loader, &fault->after_tlps, false) ||
        scn_loader_is_bad(loader, fault, true)) {
        return;
    }
    bool timed = fault->at_ps != SCN_NOT_GIVEN, counted = fault->after_tlps != SCN_NOT_GIVEN;
    if (timed && counted) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &fault->after_tlps, fault),
                         "'at' and 'after_tlps' exclude each other: a fault happens once");
    } else if (!timed && !counted) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, fault, fault),
                         "fault: needs at: (a time) or after_tlps: (a number of TLPs)");
    }
    if (counted && fault->ib_ends.given) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &fault->after_tlps, fault),
                         "'after_tlps' counts TLPs, and an ib_cable carries none; it needs at:");
    }
    if (timed && fault->at_ps >= scenario->time_limit_ps &&
        !scn_loader_is_bad(loader, &scenario->time_limit_ps, false)) {
        char at[SCN_QUANTITY_MAX], limit[SCN_QUANTITY_MAX];
        scn_quantity_format(SCN_QUANTITY_TIME, fault->at_ps, at);
        scn_quantity_format(SCN_QUANTITY_TIME, scenario->time_limit_ps, limit);
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &fault->at_ps, fault),
                         "at: %s never comes, as a series ends at time_limit (%s)", at, limit);
    }
}

static void complain(struct scn_loader *loader, const struct scn_fault *fault, const void *field, const char *text)
{
    scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, field, fault), "%s", text);
}

static void check_gpu(struct scn_loader *loader, const struct scn_fault *fault)
{
    const struct scn_scenario *scenario = loader->scenario;
    uint32_t gpu = (uint32_t)fault->device - SCN_FAULT_GPU0;
    if (!scn_loader_is_good(loader, &fault->node) || !scn_loader_is_good(loader, &fault->device)) {
        return;
    }
    if (fault->node >= scenario->node_count || fault->device < SCN_FAULT_GPU0) {
        complain(loader, fault, fault, "fault: unpin needs node: and device: gpu0 .. gpu3");
    } else if (gpu >= scenario->nodes[fault->node].gpu_count) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &fault->device, fault),
                         "device: '%s' has %" PRIu32 " GPU%s", scenario->nodes[fault->node].name,
                         scenario->nodes[fault->node].gpu_count,
                         scenario->nodes[fault->node].gpu_count == 1 ? "" : "s");
    }
    if (fault->after_tlps != SCN_NOT_GIVEN) {
        complain(loader, fault, &fault->after_tlps, "'after_tlps' counts the TLPs of a cable; unpin needs at:");
    }
    if (fault->for_ps != SCN_NOT_GIVEN) {
        complain(loader, fault, &fault->for_ps, "'for' does not go with unpin: only a new pin opens the window again");
    }
}

static void check_reset(struct scn_loader *loader, const struct scn_fault *fault)
{
    const struct scn_scenario *scenario = loader->scenario;
    if (!scn_loader_is_good(loader, &fault->node) || !scn_loader_is_good(loader, &fault->device)) {
        return;
    }
    bool board = fault->device == SCN_FAULT_BOARD;
    if (fault->node >= scenario->node_count || (!board && fault->device != SCN_FAULT_HCA)) {
        complain(loader, fault, fault, "fault: reset needs node: and device: board or hca");
        return;
    }
    const struct scn_node *node = &scenario->nodes[fault->node];
    if (!(board ? node->board.given : node->hca.given) && !scn_loader_is_bad(loader, node, true)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &fault->device, fault),
                         "device: '%s' has no %s", node->name, board ? "board" : "HCA");
    }
    if (fault->after_tlps != SCN_NOT_GIVEN) {
        complain(loader, fault, &fault->after_tlps, "'after_tlps' counts the TLPs of a cable; reset needs at:");
    }
    for (const struct scn_fault *earlier = scenario->faults; earlier < fault; earlier++) {
        if (earlier->kind == SCN_FAULT_RESET && earlier->node == fault->node && earlier->device == fault->device) {
            scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, fault, fault),
                             "fault: the device has one already (line %u); it is reset once",
                             scn_loader_location(loader, earlier, earlier).line);
            return;
        }
    }
}

// A reset opens all cables of the device, also one that somebody pulled.
static void check_reset_and_pull(struct scn_loader *loader, const struct scn_fault *pull)
{
    const struct scn_scenario *scenario = loader->scenario;
    uint32_t from = pull->ends.given ? pull->ends.from_node : pull->ib_ends.from_node;
    uint32_t to = pull->ends.given ? pull->ends.to_node : pull->ib_ends.to_node;
    enum scn_fault_device device = pull->ends.given ? SCN_FAULT_BOARD : SCN_FAULT_HCA;
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct scn_fault *reset = &scenario->faults[i];
        if (reset->kind == SCN_FAULT_RESET && reset->device == device && (reset->node == from || reset->node == to)) {
            scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, pull, pull),
                             "fault: the cable goes down and up with the %s that is reset (line %u); it is not pulled",
                             device == SCN_FAULT_BOARD ? "board" : "HCA",
                             scn_loader_location(loader, reset, reset).line);
            return;
        }
    }
}

// What fails: one cable, or a device.
static void check_place(struct scn_loader *loader, struct scn_fault *fault)
{
    struct scn_location location = scn_loader_location(loader, fault, fault);
    bool cable = fault->ends.given || scn_loader_is_bad(loader, &fault->ends, true);
    bool ib_cable = fault->ib_ends.given || scn_loader_is_bad(loader, &fault->ib_ends, true);
    fault->cable = 0;
    if (fault->kind != SCN_FAULT_PULL && (cable || ib_cable)) {
        complain(loader, fault, fault, "fault: a cable is pulled; other kinds need node: and device:");
    } else if (fault->kind == SCN_FAULT_UNPIN) {
        check_gpu(loader, fault);
    } else if (fault->kind == SCN_FAULT_RESET) {
        check_reset(loader, fault);
    } else if (fault->node != SCN_NODE_NONE || fault->device != SCN_FAULT_NO_DEVICE) {
        complain(loader, fault, fault,
                 "fault: 'node' and 'device' do not go with pull, which needs cable: or ib_cable:");
    } else if (cable && ib_cable) {
        scn_mistakes_add(&loader->mistakes, location, "fault: 'cable' and 'ib_cable' exclude each other");
    } else if (cable) {
        check_cable(loader, fault);
        check_reset_and_pull(loader, fault);
    } else if (ib_cable) {
        check_ib_cable(loader, fault);
        check_reset_and_pull(loader, fault);
    } else {
        scn_mistakes_add(&loader->mistakes, location, "fault: needs cable: or ib_cable:");
    }
}

void scn_check_faults(struct scn_loader *loader)
{
    struct scn_scenario *scenario = loader->scenario;
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        check_moment(loader, &scenario->faults[i]);
        check_place(loader, &scenario->faults[i]);
    }
}
