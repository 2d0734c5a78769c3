#include "preset.h"

#include <stdio.h>
#include <string.h>

#include "sim/kernel/status.h"
#include "sim/platform/configs.h"

// A node with both presets, as scenarios load them.
static struct scn_scenario *node_load(const char *hca, const char *host)
{
    char set_hca[96], set_host[96];
    snprintf(set_hca, sizeof set_hca, "nodes.*.hca.preset=%s", hca);
    snprintf(set_host, sizeof set_host, "nodes.*.host.preset=%s", host);
    const char *const sets[] = {set_hca, set_host};
    const struct scn_load_options options = {
        .configs_dir = TCASIM_SOURCE_DIR "/configs", .sets = sets, .set_count = sizeof sets / sizeof sets[0]};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    if (scn_load(TCASIM_SOURCE_DIR "/scenarios/smoke/verbs-ibsim0.yaml", &options, &scenario, &messages) != SIM_OK) {
        sim_panic("preset", "%s", messages.count > 0 ? messages.lines[0] : "cannot be loaded");
    }
    scn_messages_free(&messages);
    return scenario;
}

static struct hca_config hca_load(const char *name)
{
    struct scn_scenario *scenario = node_load(name, "core-i7-2600k");
    // The preset's own limits, not those of a host: the test chooses the host.
    const struct scn_host any = {.mps_bytes = UINT32_MAX, .mrrs_bytes = UINT32_MAX};
    struct hca_config config = plat_hca_config(&scenario->nodes[0].hca, &any);
    scn_free(scenario);
    // Small tables, which tests can fill.
    config.max_qp = config.max_cq = 256;
    config.max_srq = config.max_pd = config.max_eq = 64;
    config.max_mr = 1024;
    config.max_entries = config.max_cq_entries = 16384;
    return config;
}

static struct preset_host host_load(const char *name)
{
    struct scn_scenario *scenario = node_load("connectx-qdr", name);
    const struct scn_host *host = &scenario->nodes[0].host;
    const struct preset_host preset = {.rc = plat_rc_config(host),
                                       .core = plat_core_config(host),
                                       .root_port = plat_root_port_config(host),
                                       .interrupt_ps = host->interrupt_ps};
    scn_free(scenario);
    return preset;
}

// A program loads few presets, and some of them very often. false: this one is not kept yet.
enum { KEPT = 8 };

static bool kept_find(const char *names[KEPT], const char *name, unsigned *index_out)
{
    unsigned i = 0;
    while (i < KEPT - 1 && names[i] != NULL && strcmp(names[i], name) != 0) {
        i++;
    }
    bool found = names[i] != NULL && strcmp(names[i], name) == 0;
    names[i] = name;
    *index_out = i;
    return found;
}

struct hca_config preset_hca(const char *name)
{
    static const char *names[KEPT];
    static struct hca_config kept[KEPT];
    unsigned i;
    if (!kept_find(names, name, &i)) {
        kept[i] = hca_load(name);
    }
    return kept[i];
}

struct preset_host preset_host(const char *name)
{
    static const char *names[KEPT];
    static struct preset_host kept[KEPT];
    unsigned i;
    if (!kept_find(names, name, &i)) {
        kept[i] = host_load(name);
    }
    return kept[i];
}
