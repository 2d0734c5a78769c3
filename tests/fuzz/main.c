// libFuzzer inside the simulation's main program, which SystemC needs.
#include "fuzz.h"
#include "sim/kernel/sim.h"

int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*target)(const uint8_t *data, size_t size));

static int drive(int argc, char **argv)
{
    return LLVMFuzzerRunDriver(&argc, &argv, LLVMFuzzerTestOneInput);
}

// What SystemC and libFuzzer themselves keep to the end is no finding; libFuzzer looks for leaks after each case.
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "leak_check_at_exit=0";
}

int main(int argc, char **argv)
{
    return sim_main(argc, argv, drive);
}
