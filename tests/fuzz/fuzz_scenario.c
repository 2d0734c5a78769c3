// The text of a scenario.
#include "scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_file file = {.fd = -1};
    if (file.fd < 0) {
        fuzz_file_make(&file);
    }
    fuzz_file_write(&file, data, size);
    fuzz_scenario_load(file.path, NULL);
    return 0;
}
