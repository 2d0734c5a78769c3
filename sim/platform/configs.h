// Makes the configurations of the models of a host and an HCA from the keys of a scenario, without the adversary. Also
// for tests that build a single model with the values of a preset.
#pragma once

#include "models/hca/hca.h"
#include "models/host/core.h"
#include "models/pcie/root_complex.h"
#include "sim/scenario/scenario.h"

struct hca_config plat_hca_config(const struct scn_hca *hca, const struct scn_host *host);
struct pcie_rc_config plat_rc_config(const struct scn_host *host);
struct host_core_config plat_core_config(const struct scn_host *host);
struct pcie_end_config plat_root_port_config(const struct scn_host *host);
