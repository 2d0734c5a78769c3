// Test doubles of the functions of libtcasim-attach.so by which the units under test query the simulator.
#pragma once

#include "verbs-shim/world/world.h"

#define DOUBLE_OWN_ID  (ATTACH_ID_BASE + 10) // of this process and of its thread, in the run
#define DOUBLE_OWN_TID (ATTACH_ID_BASE + 11)

extern struct doubles {
    bool timed;
    unsigned asked; // number of queries to the simulator
    unsigned told;  // what the node has not
    unsigned port_files; // times that they were written anew
} doubles;

// Timed mode, without queries so far.
void doubles_reset(void);
// The other process of the run that the simulator knows.
#define DOUBLE_OTHER_ID   (ATTACH_ID_BASE + 77)
#define DOUBLE_OTHER_REAL 4321
// The simulator.
#define DOUBLE_SIMULATOR_REAL 4300
