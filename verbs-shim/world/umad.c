// /dev/infiniband/umad0, on which programs send management datagrams (libibumad; Linux, Documentation/infiniband/user_mad.rst
// and rdma/ib_user_mad.h). A program has one end of a pair of sockets: what it writes there is taken from the other end when
// the write returns, and the answer is put there. So a program waits for it as for any descriptor.
//
// Leaves out: what others send to a program that has registered for it, and RMPP. A datagram that nobody answers comes back with
// ETIMEDOUT at once. The interface with P_Key indices is the only one (IB_USER_MAD_ENABLE_PKEY).
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_mad.h>
#include <rdma/rdma_user_ioctl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/world.h"

enum { OPENED_MAX = 16, FIRST_FD = 900, MAD_BYTES = 256, AGENTS = 32 };

// One thread of the process runs at a time.
static struct {
    int other_end;
    ino_t inode; // of the program's end
    uint32_t agents;
} opened[OPENED_MAX];
static unsigned open_count;

static void close_really(int fd)
{
    (void)kernel_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

static ino_t inode_of(int fd)
{
    struct stat about;
    return kernel_call(SYS_fstat, fd, (long)(uintptr_t)&about, 0, 0, 0, 0) == 0 ? about.st_ino : 0;
}

static int pair_make(int flags)
{
    int ends[2], kind = SOCK_SEQPACKET | ((flags & O_CLOEXEC) != 0 ? SOCK_CLOEXEC : 0);
    if (open_count == OPENED_MAX) {
        return -EMFILE;
    }
    long made = kernel_call(SYS_socketpair, AF_UNIX, kind | SOCK_NONBLOCK, 0, (long)(uintptr_t)ends, 0, 0);
    if (made < 0) {
        return (int)made;
    }
    long other = kernel_call(SYS_fcntl, ends[1], F_DUPFD_CLOEXEC, FIRST_FD, 0, 0, 0);
    close_really(ends[1]);
    if (other < 0) {
        close_really(ends[0]);
        return (int)other;
    }
    (void)kernel_call(SYS_fcntl, ends[0], F_SETFL, (flags & O_NONBLOCK), 0, 0, 0);
    opened[open_count].other_end = (int)other;
    opened[open_count].agents = 0;
    opened[open_count++].inode = inode_of(ends[0]);
    return ends[0];
}

bool world_umad_open(const char *path, int flags, int *fd_out)
{
    static const char name[] = "/dev/infiniband/umad0";
    struct stat about;
    size_t bytes = path != NULL ? strlen(path) : 0;
    bool is = world_timed() && (flags & O_PATH) == 0 && bytes >= sizeof name - 1 &&
              strcmp(path + bytes - (sizeof name - 1), name) == 0 &&
              kernel_call(SYS_newfstatat, AT_FDCWD, (long)(uintptr_t)path, (long)(uintptr_t)&about, 0, 0, 0) == 0;
    if (is) {
        int fd = pair_make(flags);
        errno = fd < 0 ? -fd : errno;
        *fd_out = fd < 0 ? -1 : fd;
    }
    return is;
}

// false: it is no datagram.
static bool answer(struct ib_user_mad *mad, long bytes)
{
    if (bytes < (long)(sizeof mad->hdr + MAD_BYTES)) {
        return false;
    }
    int status = attach_mad(ntohs((uint16_t)mad->hdr.lid), mad->data);
    mad->hdr.status = (uint32_t)-status;
    mad->hdr.length = sizeof mad->hdr + MAD_BYTES;
    return true;
}

static void end_forget(unsigned i)
{
    close_really(opened[i].other_end);
    opened[i] = opened[--open_count];
}

void world_umad_serve(void)
{
    union {
        struct ib_user_mad mad;
        unsigned char room[sizeof(struct ib_user_mad) + MAD_BYTES];
    } message;
    for (unsigned i = open_count; i-- > 0;) {
        long bytes;
        do {
            bytes = kernel_call(SYS_recvfrom, opened[i].other_end, (long)(uintptr_t)&message, sizeof message,
                                MSG_DONTWAIT, 0, 0);
            if (bytes > 0 && answer(&message.mad, bytes)) {
                (void)kernel_call(SYS_sendto, opened[i].other_end, (long)(uintptr_t)&message,
                                  sizeof message.mad.hdr + MAD_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
                attach_may_wake();
            }
        } while (bytes > 0);
        if (bytes != -EAGAIN && bytes != -EINTR) { // the program has closed its end
            end_forget(i);
        }
    }
}

// 0, or -errno.
static int agent_register(uint32_t *agents, uint32_t *id_out)
{
    unsigned id = 0;
    while (id < AGENTS && (*agents >> id & 1) != 0) {
        id++;
    }
    *agents |= id < AGENTS ? UINT32_C(1) << id : 0;
    *id_out = id;
    return id < AGENTS ? 0 : -ENOMEM;
}

static int agent_unregister(uint32_t *agents, uint32_t id)
{
    bool known = id < AGENTS && (*agents >> id & 1) != 0;
    *agents &= known ? ~(UINT32_C(1) << id) : UINT32_MAX;
    return known ? 0 : -EINVAL;
}

static int carry_out(uint32_t *agents, unsigned long request, void *argument)
{
    switch (request) {
    case IB_USER_MAD_ENABLE_PKEY:
        return 0;
    case IB_USER_MAD_REGISTER_AGENT:
        return agent_register(agents, &((struct ib_user_mad_reg_req *)argument)->id);
    case IB_USER_MAD_REGISTER_AGENT2:
        return agent_register(agents, &((struct ib_user_mad_reg_req2 *)argument)->id);
    case IB_USER_MAD_UNREGISTER_AGENT:
        return agent_unregister(agents, *(uint32_t *)argument);
    default:
        return -ENOTTY;
    }
}

bool world_umad_ioctl(int fd, unsigned long request, void *argument, int *result_out)
{
    ino_t inode = open_count != 0 && _IOC_TYPE(request) == RDMA_IOCTL_MAGIC ? inode_of(fd) : 0;
    for (unsigned i = 0; i < open_count && inode != 0; i++) {
        if (opened[i].inode == inode) {
            int status = request != IB_USER_MAD_ENABLE_PKEY && argument == NULL
                             ? -EFAULT
                             : carry_out(&opened[i].agents, request, argument);
            errno = status < 0 ? -status : errno;
            *result_out = status < 0 ? -1 : 0;
            return true;
        }
    }
    return false;
}
