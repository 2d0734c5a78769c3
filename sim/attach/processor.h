// The processor of a node as its programs see it: what /proc/cpuinfo says, how fast the time stamp counter runs, how
// many cores there are. Leaves out what instructions do: they are the machine's, so only flags are shown that the
// machine has as well.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/scenario/scenario.h"

struct attach_processor {
    const char *title; // the model name
    unsigned family, model, stepping;
    unsigned mhz, cores, cache_kib; // cache: the last level
};

const struct attach_processor *attach_processor_of(enum scn_processor processor);
// EAX of CPUID's leaf 1 (Intel SDM, volume 2).
uint32_t attach_processor_signature(const struct attach_processor *processor);

// Its flags that are also in `machine`, the flags of the machine, as in /proc/cpuinfo; both are lists of words. The
// text is cut if it does not fit.
void attach_processor_flags(enum scn_processor processor, const char *machine, char *text_out, size_t bytes);
void attach_machine_name(char *text_out, size_t bytes); // the model name of the machine's processor
// The flags of the machine; "" if it does not say. The text is cut if it does not fit.
void attach_machine_flags(char *text_out, size_t bytes);
