// Memory that the program has not used yet: when it is registered its pages are there, as a real kernel pins them in the
// call. Nothing else of the mapping is touched.
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loop.h"

enum { PAGES = 8, FIRST = 2, REGISTERED = 3 };

int main(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char there[PAGES];
    unsigned char *memory =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED && madvise(memory, PAGES * page, MADV_NOHUGEPAGE) == 0);
    struct ibv_device **devices = ibv_get_device_list(NULL);
    CHECK(devices != NULL && devices[0] != NULL);
    struct ibv_context *context = ibv_open_device(devices[0]);
    CHECK(context != NULL);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    CHECK(pd != NULL && mincore(memory, PAGES * page, there) == 0);
    for (unsigned i = 0; i < PAGES; i++) {
        CHECK((there[i] & 1) == 0);
    }
    // From the middle of a page to the middle of another one.
    struct ibv_mr *mr =
        ibv_reg_mr(pd, memory + FIRST * page + page / 2, (REGISTERED - 1) * page, IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr != NULL && mincore(memory, PAGES * page, there) == 0);
    for (unsigned i = 0; i < PAGES; i++) {
        CHECK((there[i] & 1) == (i >= FIRST && i < FIRST + REGISTERED));
    }
    CHECK(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
    ibv_free_device_list(devices);
    return EXIT_SUCCESS;
}
