// Random numbers of the kernel (random(4), getrandom(2)): in a timed run they are the same in each run. They come from the
// scenario's seed (and the adversary's), and are others for each process and each program that it executes.
//
// The kernel carries the call out, with all its checks, and what it has written is replaced.
//
// Ports that a socket gets when it is bound or connects come from the same numbers (names.c).
//
// Leaves out: names of temporary files (mkstemp), which differ in each run; reads of the devices by pread and splice; RDRAND and RDSEED, which CPUID does not offer (cpuid.c); what the C library has drawn from AT_RANDOM
// before (the stack protector's value).
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/descriptors.h"
#include "verbs-shim/world/world.h"

// Linux, Documentation/admin-guide/devices.txt: random and urandom are 8 and 9 of the memory devices.
enum { MEMORY_DEVICES = 1, RANDOM_DEVICE = 8, URANDOM_DEVICE = 9 };
enum { AUXILIARY_BYTES = 16, UUID_BYTES = 16 };

static _Atomic uint64_t drawn; // how many words

// The stream is a counter that is mixed (splitmix64).
static uint64_t word_draw(void)
{
    uint64_t z = attach_environment()->random_seed + 0x9e3779b97f4a7c15 * ++drawn;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

void world_random_fill(void *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        const uint64_t word = word_draw();
        memcpy((char *)memory + i, &word, bytes - i < sizeof word ? bytes - i : sizeof word);
    }
}

ssize_t getrandom(void *memory, size_t bytes, unsigned flags)
{
    return world_timed() ? WORLD_CALL(world_call_getrandom, memory, bytes, flags)
                         : WORLD_REAL(getrandom)(memory, bytes, flags);
}

long world_call_getrandom(const long *a)
{
    long result = kernel_call(SYS_getrandom, a[0], a[1], a[2], 0, 0, 0);
    if (result > 0) {
        world_random_fill((void *)a[0], (size_t)result);
    }
    return result;
}

bool world_random_is(const struct stat *about)
{
    return S_ISCHR(about->st_mode) && major(about->st_rdev) == MEMORY_DEVICES &&
           (minor(about->st_rdev) == RANDOM_DEVICE || minor(about->st_rdev) == URANDOM_DEVICE);
}

void world_random_read(const struct iovec *pieces, long bytes)
{
    for (; bytes > 0; pieces++) {
        size_t piece = pieces->iov_len < (size_t)bytes ? pieces->iov_len : (size_t)bytes;
        world_random_fill(pieces->iov_base, piece);
        bytes -= (long)piece;
    }
}

// RFC 4122, 4.4: version 4.
static void uuid_write(int fd)
{
    unsigned char uuid[UUID_BYTES];
    world_random_fill(uuid, sizeof uuid);
    uuid[6] = 0x40 | (uuid[6] & 0x0f);
    uuid[8] = 0x80 | (uuid[8] & 0x3f);
    for (int i = 0; i < UUID_BYTES; i++) {
        dprintf(fd, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    }
    dprintf(fd, "\n");
}

bool world_uuid_open(const char *path, int flags, int *fd_out)
{
    static const char name[] = "/proc/sys/kernel/random/uuid";
    bool is = world_timed() && (flags & (O_PATH | O_ACCMODE)) == 0 && world_path_ends(path, name);
    if (is) {
        *fd_out = memfd_create("uuid", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
        if (*fd_out >= 0) {
            uuid_write(*fd_out);
            (void)lseek(*fd_out, 0, SEEK_SET);
        }
    }
    return is;
}

void world_random_start(void)
{
    world_random_fill((void *)getauxval(AT_RANDOM), AUXILIARY_BYTES); // NOLINT(performance-no-int-to-ptr)
}
