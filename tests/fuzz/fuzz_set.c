// A --set PATH=VALUE on a scenario that uses most kinds of keys.
#include <string.h>

#include "scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *set = strndup((const char *)data, size);
    FUZZ_HOLDS(set != NULL, "no memory");
    fuzz_scenario_load(TCASIM_SOURCE_DIR "/tests/fuzz/set.yaml", set);
    free(set);
    return 0;
}
