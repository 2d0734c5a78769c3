// Doubles of what the units under test ask of the simulator, in place of libtcasim-attach.so.
#pragma once

#include "verbs-shim/world/world.h"

#define DOUBLE_OWN_ID  (ATTACH_ID_BASE + 10) // of this process and of its thread, in the run
#define DOUBLE_OWN_TID (ATTACH_ID_BASE + 11)

extern struct doubles {
    bool timed;
    unsigned asked; // questions to the simulator
} doubles;

// Timed, with nothing asked.
void doubles_reset(void);
// What the simulator knows of: one process of the run beside this one.
#define DOUBLE_OTHER_ID   (ATTACH_ID_BASE + 77)
#define DOUBLE_OTHER_REAL 4321
