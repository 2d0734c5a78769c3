// How many of each a scenario may have, and the longest texts (with the terminating 0). More is refused when a scenario
// is loaded.
#pragma once

#define SCN_NAME_MAX    64
#define SCN_TEXT_MAX    256
#define SCN_COMMAND_MAX 1024 // of a program
#define SCN_LIST_MAX    64
#define SCN_NODES_MAX   1024
#define SCN_GPUS_MAX    4 // of a node
#define SCN_CABLES_MAX  4096
#define SCN_FAULTS_MAX  64
#define SCN_RUNS_MAX    32
#define SCN_SWEEP_MAX   1024 // points
#define SCN_CHECKS_MAX  64
#define SCN_PANELS_MAX  4
#define SCN_NODE_NONE   UINT32_MAX
#define SCN_RANKS_MAX   256 // of a program on ACP

#define SCN_WINDOW_NODES_MAX 16 // nodes that cables of boards join, as the window has a block for each

#define SCN_IB_SWITCHES_MAX 1024
#define SCN_IB_PORTS_MAX    36 // of a switch
#define SCN_IB_CABLES_MAX   4096
#define SCN_IB_SWITCH(i)    (SCN_NODES_MAX + (i)) // switch i as an end of an InfiniBand cable; nodes have their index
