#include "sim/cli/page.h"

#include "models/pcie/link.h"

struct page_request cli_page_request(const struct cli_paths *paths, const char *const *directories, size_t count)
{
    return (struct page_request){
        .directories = directories,
        .count = count,
        .configs_path = paths->configs,
        .wire_ps = pcie_wire_ps,
        .accuracy_path = paths->accuracy,
    };
}
