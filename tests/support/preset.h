// Presets of configs/ as scenarios load them, for tests that build hosts and HCAs themselves.
#pragma once

#include "models/hca/hca.h"
#include "models/host/core.h"

struct preset_host {
    struct pcie_rc_config rc;
    struct host_core_config core;
    struct pcie_end_config root_port;
    uint64_t interrupt_ps;
};

struct hca_config preset_hca(const char *name);
struct preset_host preset_host(const char *name);
