// The name and the address of a node: an address of the loopback network, so that programs of several nodes may listen
// on the same port. What programs find by a name: resolve.c; what they reach: reach.c.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs-shim/attach/identity.h"
#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/descriptors.h"
#include "verbs-shim/world/reach.h"
#include "verbs-shim/world/world.h"

static in_addr_t own_address(const struct attach_environment *environment)
{
    return htonl(environment->address_base + environment->node_index);
}

int gethostname(char *name, size_t bytes)
{
    const struct attach_environment *environment = attach_environment();
    if (environment == NULL) {
        return WORLD_REAL(gethostname)(name, bytes);
    }
    if (strlen(environment->node) >= bytes) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name, environment->node, strlen(environment->node) + 1);
    return 0;
}

// --- "any" and "localhost" of each node -----------------------------------------------------------------------------

enum { FREE_PORTS = ATTACH_FREE_PORT_LAST - ATTACH_FREE_PORT_FIRST + 1 };

static bool leaves_port_open(const struct sockaddr *address, socklen_t bytes)
{
    // The port of IPv6 stands at the same place.
    return world_timed() && bytes >= sizeof(struct sockaddr_in) &&
           (address->sa_family == AF_INET || address->sa_family == AF_INET6) &&
           ((const struct sockaddr_in *)address)->sin_port == 0;
}

// Binds it to a port that nobody has, as the kernel would. A port in use is not shared, whatever the socket's option is.
static long free_port_bind(int fd, const struct sockaddr *address, socklen_t bytes)
{
    struct sockaddr_storage at = {0};
    int shares = 0, alone = 0;
    socklen_t option_bytes = sizeof shares;
    uint32_t first;
    long status = -EADDRINUSE;
    memcpy(&at, address, bytes < sizeof at ? bytes : sizeof at);
    world_random_fill(&first, sizeof first);
    (void)getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &shares, &option_bytes);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &alone, sizeof alone);
    for (uint32_t i = 0; i < FREE_PORTS && status == -EADDRINUSE; i++) {
        ((struct sockaddr_in *)&at)->sin_port =
            htons((uint16_t)(ATTACH_FREE_PORT_FIRST + (first % FREE_PORTS + i) % FREE_PORTS));
        status = kernel_call(SYS_bind, fd, (long)(uintptr_t)&at, bytes, 0, 0, 0);
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &shares, sizeof shares);
    return status;
}

int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes)
{
    const struct sockaddr *asked = address.__sockaddr__;
    struct sockaddr_storage own;
    if (attach_environment() == NULL || asked == NULL) {
        return WORLD_REAL(bind)(fd, address, bytes);
    }
    if (world_address_own(asked, bytes, &own)) {
        int off = 0;
        (void)(asked->sa_family == AF_INET6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) : 0);
        asked = (const struct sockaddr *)&own;
    }
    return leaves_port_open(asked, bytes) ? (int)world_result(free_port_bind(fd, asked, bytes))
                                          : WORLD_REAL(bind)(fd, asked, bytes);
}

static long connect_kernel(int fd, const struct sockaddr *address, socklen_t bytes)
{
    return kernel_call(SYS_connect, fd, (long)(uintptr_t)address, bytes, 0, 0, 0);
}

// A local socket (AF_UNIX) whose queue is full lets others connect when it has accepted somebody. The flag is that of the
// open file, which other threads do not use while this one has the run token.
static long connect_await(int fd, const struct sockaddr *address, socklen_t bytes)
{
    if (!world_timed() || address->sa_family != AF_UNIX || !world_blocks(fd, 0)) {
        return connect_kernel(fd, address, bytes);
    }
    uint64_t deadline_ps = world_socket_deadline(fd, SO_SNDTIMEO);
    const bool restarts = deadline_ps == ATTACH_NEVER_PS;
    unsigned interrupts = world_interrupts(restarts);
    int flags = WORLD_REAL(fcntl)(fd, F_GETFL);
    long status;
    bool waits;
    do {
        (void)WORLD_REAL(fcntl)(fd, F_SETFL, flags | O_NONBLOCK);
        status = connect_kernel(fd, address, bytes);
        (void)WORLD_REAL(fcntl)(fd, F_SETFL, flags);
        waits = status == -EAGAIN && attach_wait(ATTACH_WAIT_OUTSIDE, deadline_ps) != ATTACH_WOKEN_DEADLINE;
        if (waits && world_interrupts(restarts) != interrupts) {
            status = -EINTR;
            waits = false;
        }
    } while (waits);
    return status;
}

// Gives the socket the node's address, unless it has one.
static void source_bind(int fd)
{
    struct sockaddr_in source = {0};
    socklen_t bytes = sizeof source;
    if (getsockname(fd, (struct sockaddr *)&source, &bytes) == 0 && source.sin_addr.s_addr == htonl(INADDR_ANY) &&
        source.sin_port == 0) {
        source = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = own_address(attach_environment())};
        (void)bind(fd, (const struct sockaddr *)&source, sizeof source);
    }
}

// Connections come from the node's address, and "localhost" is the node itself. On the loopback network a connection is
// established or refused at once; another thread may wait for it in accept.
long world_call_connect(const long *a)
{
    int fd = (int)a[0];
    const struct sockaddr *asked = (const struct sockaddr *)a[1];
    socklen_t bytes = (socklen_t)a[2];
    struct sockaddr_storage own;
    if (asked == NULL || bytes < sizeof asked->sa_family) {
        return connect_kernel(fd, asked, bytes);
    }
    int error = world_unreachable(asked, bytes);
    if (error != 0) {
        return -error;
    }
    bool to_self = world_address_own(asked, bytes, &own);
    if (asked->sa_family == AF_INET) {
        source_bind(fd);
    }
    long status = connect_await(fd, to_self ? (const struct sockaddr *)&own : asked, bytes);
    if (world_timed()) {
        world_connected(fd);
        if (world_loopback_uses(fd)) {
            world_loopback_settle(WORLD_CONNECT_PACKETS);
        }
        attach_may_wake();
    }
    return status;
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes)
{
    if (attach_environment() == NULL) {
        return WORLD_REAL(connect)(fd, address, bytes);
    }
    const long arguments[WORLD_CALL_WORDS] = {fd, (long)(uintptr_t)address.__sockaddr__, bytes};
    return (int)(world_timed() ? world_carry_out(world_call_connect, arguments)
                               : world_result(world_call_connect(arguments)));
}
