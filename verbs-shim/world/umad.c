// /dev/infiniband/umad0, on which programs send management datagrams (libibumad; Linux, Documentation/infiniband/user_mad.rst
// and rdma/ib_user_mad.h). A program has one end of a pair of sockets; what it writes there is answered within the call, and
// the answer is put into the other end. So a program waits for it as for any descriptor.
//
// Leaves out: datagrams that others send to a program that has registered for them; RMPP; other ways to write than write(2);
// reads with less room than a datagram has, which lose it; programs that get the descriptor by exec. A request that nobody
// answers comes back with ETIMEDOUT at once. The interface with P_Key indices is the only one (IB_USER_MAD_ENABLE_PKEY).
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <rdma/rdma_user_ioctl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/world.h"

enum { OPENED_MAX = 64, MAD_BYTES = 256, MAD_BYTES_LEAST = 36, AGENTS = 32 };

// One thread of the process runs at a time; a datagram's answer lets others run.
static struct opened {
    int other_end;
    ino_t inode; // of the program's end; 0: free
    uint32_t agents;
} opened[OPENED_MAX];
static unsigned open_count; // that are not free

static void close_really(int fd)
{
    (void)kernel_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

static ino_t inode_of(int fd)
{
    struct stat about;
    return kernel_call(SYS_fstat, fd, (long)(uintptr_t)&about, 0, 0, 0, 0) == 0 ? about.st_ino : 0;
}

static struct opened *opened_find(ino_t inode)
{
    unsigned i = 0;
    while (i < OPENED_MAX && opened[i].inode != inode) {
        i++;
    }
    return i < OPENED_MAX ? &opened[i] : NULL;
}

static struct opened *opened_of(int fd)
{
    ino_t inode = open_count != 0 ? inode_of(fd) : 0;
    return inode != 0 ? opened_find(inode) : NULL;
}

// --- opening ------------------------------------------------------------------------------------------------------------

// Frees what programs have closed: in all processes that had it.
static void opened_sweep(void)
{
    const struct timespec now = {0};
    for (unsigned i = 0; i < OPENED_MAX; i++) {
        struct pollfd end = {.fd = opened[i].other_end, .events = POLLIN};
        if (opened[i].inode != 0 &&
            kernel_call(SYS_ppoll, (long)(uintptr_t)&end, 1, (long)(uintptr_t)&now, 0, 0, 0) > 0 &&
            (end.revents & (POLLHUP | POLLNVAL)) != 0) {
            close_really(opened[i].other_end);
            opened[i].inode = 0;
            open_count--;
        }
    }
}

static int pair_make(int flags)
{
    int ends[2], kind = SOCK_SEQPACKET | ((flags & O_CLOEXEC) != 0 ? SOCK_CLOEXEC : 0);
    opened_sweep();
    struct opened *one = opened_find(0);
    if (one == NULL) {
        return -EMFILE;
    }
    long made = kernel_call(SYS_socketpair, AF_UNIX, kind, 0, (long)(uintptr_t)ends, 0, 0);
    if (made < 0) {
        return (int)made;
    }
    (void)kernel_call(SYS_fcntl, ends[0], F_SETFL, flags & O_NONBLOCK, 0, 0, 0);
    *one = (struct opened){descriptor_hide(ends[1]), inode_of(ends[0]), 0};
    open_count++;
    return ends[0];
}

bool world_umad_open(const char *path, int flags, int *fd_out)
{
    static const char name[] = "/dev/infiniband/umad0";
    struct stat about;
    bool is = world_timed() && (flags & O_PATH) == 0 && world_path_ends(path, name) &&
              kernel_call(SYS_newfstatat, AT_FDCWD, (long)(uintptr_t)path, (long)(uintptr_t)&about, 0, 0, 0) == 0;
    if (is) {
        int fd = pair_make(flags);
        errno = fd < 0 ? -fd : errno;
        *fd_out = fd < 0 ? -1 : fd;
    }
    return is;
}

int world_umad_end_from(unsigned first)
{
    int end = -1;
    for (unsigned i = 0; i < OPENED_MAX && open_count != 0; i++) {
        bool is = opened[i].inode != 0 && (unsigned)opened[i].other_end >= first;
        end = is && (end < 0 || opened[i].other_end < end) ? opened[i].other_end : end;
    }
    return end;
}

bool world_umad_end_move(int fd)
{
    for (unsigned i = 0; i < OPENED_MAX; i++) {
        if (opened[i].inode != 0 && opened[i].other_end == fd) {
            opened[i].other_end = descriptor_hide(fd);
            return true;
        }
    }
    return false;
}

// --- datagrams ------------------------------------------------------------------------------------------------------------

// Of opened.agents. As in the kernel a datagram belongs to an agent.
static bool is_agent(const struct opened *one, uint32_t id)
{
    return id < AGENTS && (one->agents >> id & 1) != 0;
}

bool world_umad_write(int fd, const void *data, size_t bytes, long *result_out)
{
    union {
        struct ib_user_mad mad;
        unsigned char room[sizeof(struct ib_user_mad) + MAD_BYTES];
    } message = {0};
    const struct opened *one = opened_of(fd);
    if (one == NULL) {
        return false;
    }
    if (bytes < sizeof message.mad.hdr + MAD_BYTES_LEAST) {
        *result_out = -EINVAL;
        return true;
    }
    memcpy(&message, data, bytes < sizeof message ? bytes : sizeof message);
    ino_t inode = one->inode;
    *result_out = is_agent(one, message.mad.hdr.id) ? (long)bytes : -EINVAL;
    if (*result_out < 0) {
        return true;
    }
    int status = attach_mad(ntohs((uint16_t)message.mad.hdr.lid), message.mad.data);
    message.mad.hdr.status = (uint32_t)-status;
    message.mad.hdr.length = sizeof message.mad.hdr + MAD_BYTES;
    one = opened_find(inode); // others may have closed it
    if (one != NULL && (status == 0 || message.mad.hdr.timeout_ms != 0)) {
        (void)kernel_call(SYS_sendto, one->other_end, (long)(uintptr_t)&message, message.mad.hdr.length,
                          MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
        attach_may_wake();
    }
    return true;
}

// --- agents ---------------------------------------------------------------------------------------------------------------

// 0, or -errno.
static int agent_register(struct opened *one, uint32_t *id_out)
{
    uint32_t id = 0;
    while (is_agent(one, id)) {
        id++;
    }
    one->agents |= id < AGENTS ? UINT32_C(1) << id : 0;
    *id_out = id;
    return id < AGENTS ? 0 : -ENOMEM;
}

static int agent_unregister(struct opened *one, uint32_t id)
{
    bool known = is_agent(one, id);
    one->agents &= known ? ~(UINT32_C(1) << id) : UINT32_MAX;
    return known ? 0 : -EINVAL;
}

static int carry_out(struct opened *one, unsigned long request, void *argument)
{
    switch (request) {
    case IB_USER_MAD_ENABLE_PKEY:
        return 0;
    case IB_USER_MAD_REGISTER_AGENT:
        return agent_register(one, &((struct ib_user_mad_reg_req *)argument)->id);
    case IB_USER_MAD_REGISTER_AGENT2:
        return agent_register(one, &((struct ib_user_mad_reg_req2 *)argument)->id);
    case IB_USER_MAD_UNREGISTER_AGENT:
        return agent_unregister(one, *(uint32_t *)argument);
    default:
        return -ENOTTY;
    }
}

bool world_umad_ioctl(int fd, unsigned long request, void *argument, int *result_out)
{
    struct opened *one = _IOC_TYPE(request) == RDMA_IOCTL_MAGIC ? opened_of(fd) : NULL;
    if (one == NULL) {
        return false;
    }
    int status = request != IB_USER_MAD_ENABLE_PKEY && argument == NULL ? -EFAULT : carry_out(one, request, argument);
    errno = status < 0 ? -status : errno;
    *result_out = status < 0 ? -1 : 0;
    return true;
}
