#include "verbs-shim/world/reach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/world.h"

// --- services of the machine ----------------------------------------------------------------------------------------

// A service of the machine that listens on any address listens on those of the nodes as well: one of a program has a
// node's address. Looked up only for ports where machines have services and programs look for them: the well-known
// ones, and those of X displays.
static bool is_of_services(uint16_t port)
{
    return port < 1024 || (port >= 6000 && port < 6064);
}

// A file of /proc/net has the text. It is read in pieces that overlap.
static bool net_has(const char *path, const char *text)
{
    char piece[8192];
    size_t length = strlen(text), kept = 0;
    long fd = kernel_call(SYS_open, (long)(uintptr_t)path, O_RDONLY | O_CLOEXEC, 0, 0, 0, 0), got = fd;
    bool found = false;
    while (fd >= 0 && got > 0 && !found) {
        got = kernel_call(SYS_read, fd, (long)(uintptr_t)(piece + kept), (long)(sizeof piece - kept), 0, 0, 0);
        size_t bytes = got > 0 ? kept + (size_t)got : 0;
        found = bytes > 0 && memmem(piece, bytes, text, length) != NULL;
        kept = bytes < length ? bytes : length;
        memmove(piece, piece + bytes - kept, kept);
    }
    if (fd >= 0) {
        (void)kernel_call(SYS_close, fd, 0, 0, 0, 0, 0);
    }
    return found;
}

// A socket of exactly this address and port listens (state 0A; proc_pid_net(5)).
static bool listens(struct in_addr address, uint16_t port)
{
    char text[128];
    (void)snprintf(text, sizeof text, " %08X:%04X 00000000:0000 0A ", address.s_addr, port);
    if (net_has("/proc/net/tcp", text)) {
        return true;
    }
    (void)snprintf(text, sizeof text, " 0000000000000000FFFF0000%08X:%04X %032d:0000 0A ", address.s_addr, port, 0);
    return net_has("/proc/net/tcp6", text);
}

// --- addresses ------------------------------------------------------------------------------------------------------

bool world_address_own(const struct sockaddr *address, socklen_t bytes, struct sockaddr_storage *own_out)
{
    const struct attach_environment *environment = attach_environment();
    in_addr_t own = htonl(environment->address_base + environment->node_index);
    memset(own_out, 0, sizeof *own_out);
    if (bytes >= sizeof(struct sockaddr_in) && address->sa_family == AF_INET) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)own_out;
        memcpy(v4, address, sizeof *v4);
        bool any = v4->sin_addr.s_addr == htonl(INADDR_ANY) || v4->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
        v4->sin_addr.s_addr = own;
        return any;
    }
    if (bytes >= sizeof(struct sockaddr_in6) && address->sa_family == AF_INET6) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)own_out;
        memcpy(v6, address, sizeof *v6);
        bool any = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr) || IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
        const in_addr_t mapped[4] = {0, 0, htonl(0xffff), own};
        memcpy(&v6->sin6_addr, mapped, sizeof mapped);
        return any;
    }
    return false;
}

static void asked(int family, const void *address, uint16_t port)
{
    char text[INET6_ADDRSTRLEN], both[INET6_ADDRSTRLEN + 16];
    (void)snprintf(both, sizeof both, family == AF_INET6 ? "[%s]:%u" : "%s:%u",
                   inet_ntop(family, address, text, sizeof text), port);
    world_asked("the address", both);
}

static int v4_unreachable(struct in_addr address, uint16_t port)
{
    const struct attach_environment *environment = attach_environment();
    uint32_t value = ntohl(address.s_addr), node = value - environment->address_base;
    bool is_own = value == INADDR_ANY || value == INADDR_LOOPBACK;
    if (is_own || node < environment->node_count) {
        node = is_own ? environment->node_index : node;
        const struct in_addr of_node = {.s_addr = htonl(environment->address_base + node)};
        return is_of_services(port) && !listens(of_node, port) ? ECONNREFUSED : 0;
    }
    asked(AF_INET, &address, port);
    return value >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET ? ECONNREFUSED : ENETUNREACH;
}

static int v6_unreachable(const struct sockaddr_in6 *address)
{
    struct in_addr v4 = {.s_addr = htonl(INADDR_LOOPBACK)};
    const struct in6_addr *v6 = &address->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(v6)) {
        memcpy(&v4, &v6->s6_addr[12], sizeof v4);
    } else if (!IN6_IS_ADDR_UNSPECIFIED(v6) && !IN6_IS_ADDR_LOOPBACK(v6)) {
        asked(AF_INET6, v6, ntohs(address->sin6_port));
        return ENETUNREACH;
    }
    return v4_unreachable(v4, ntohs(address->sin6_port));
}

// Local sockets of the machine's services, which a node has not. Abstract names begin with a zero byte.
static int local_unreachable(const struct sockaddr_un *address, size_t bytes)
{
    static const char *const folders[] = {"/tmp/.X11-unix/", "/run/dbus/",     "/var/run/dbus/", "/run/systemd/",
                                          "/run/nscd/",      "/var/run/nscd/", "/run/munge/",    "/var/run/munge/",
                                          "/run/udev/",      "/dev/log"};
    char name[sizeof address->sun_path + 1] = "";
    bool is_abstract = bytes > 0 && address->sun_path[0] == '\0';
    memcpy(name, address->sun_path + is_abstract, bytes < is_abstract ? 0 : bytes - is_abstract);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (strncmp(name, folders[i], strlen(folders[i])) == 0) {
            return is_abstract ? ECONNREFUSED : ENOENT;
        }
    }
    return 0;
}

int world_unreachable(const struct sockaddr *address, socklen_t bytes)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } copy = {0};
    size_t known = bytes < sizeof copy ? bytes : sizeof copy;
    if (attach_environment() == NULL || address == NULL || known < sizeof copy.any.sa_family) {
        return 0;
    }
    memcpy(&copy, address, known);
    switch (copy.any.sa_family) {
    case AF_INET:
        return known >= sizeof copy.v4 ? v4_unreachable(copy.v4.sin_addr, ntohs(copy.v4.sin_port)) : 0;
    case AF_INET6:
        return known >= sizeof copy.v6 ? v6_unreachable(&copy.v6) : 0;
    case AF_UNIX:
        return local_unreachable(&copy.local, known - offsetof(struct sockaddr_un, sun_path));
    }
    return 0;
}

// Netlink tells of the machine's interfaces and routes, packet sockets of its traffic; other families lead elsewhere.
int socket(int family, int type, int protocol)
{
    bool is_of_node = family == AF_UNIX || family == AF_INET || family == AF_INET6;
    if (attach_environment() != NULL && !is_of_node) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    return WORLD_REAL(socket)(family, type, protocol);
}
