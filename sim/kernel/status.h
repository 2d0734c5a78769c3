// Status codes of operations that can fail, and the buffer for the description of an error.
//
// Three kinds of trouble are kept separate everywhere: a modelled fault (a state, a completion code, a counter), an
// operational error (a status from here, with a text for the user), and a broken invariant (sim_panic).
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sim_status {
    SIM_OK = 0,
    SIM_ERR_INVALID,     // an argument or an input is wrong
    SIM_ERR_NO_MEMORY,   // the machine that runs the simulator is out of memory
    SIM_ERR_NOT_FOUND,
    SIM_ERR_EXISTS,
    SIM_ERR_BUSY,        // the object is in use, or another simulation is alive
    SIM_ERR_IO,          // a file of the real machine
    SIM_ERR_RANGE,       // a value or an address outside its limits
    SIM_ERR_FAULT,       // the simulated device reported an error
    SIM_ERR_TIMEOUT,     // simulated time ran out
    SIM_ERR_UNSUPPORTED
};

// A short lower-case sentence, static storage.
const char *sim_status_text(enum sim_status status);

// Prints "tcasim: internal error at <time> ps in <component>: ..." and aborts. Only for broken invariants.
__attribute__((noreturn, format(printf, 2, 3))) void sim_panic(const char *component, const char *format, ...);

#ifdef __cplusplus
}
#endif
