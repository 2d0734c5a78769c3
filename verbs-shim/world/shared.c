// Memory that processes share. Nothing tells when one of them writes to it, so the simulator only knows who has some.
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "verbs-shim/world/world.h"

static void note(int protection, int flags)
{
    if ((flags & MAP_TYPE) != MAP_PRIVATE && (protection & PROT_WRITE) != 0) {
        attach_shares();
    }
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    note(protection, flags);
    return WORLD_REAL(mmap)(address, bytes, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
    note(protection, flags);
    return WORLD_REAL(mmap64)(address, bytes, protection, flags, fd, offset);
}

void *shmat(int id, const void *address, int flags)
{
    attach_shares();
    return WORLD_REAL(shmat)(id, address, flags);
}
