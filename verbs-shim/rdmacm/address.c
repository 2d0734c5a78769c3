// Addresses and ports. A node has one address (verbs-shim/world/names.c). A port of the node is the name of a socket in
// a directory that only the user of the run can enter, next to the socket through which programs attach.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/rdmacm/internal.h"

// The range from which the kernel takes free ports (net.ipv4.ip_local_port_range).
enum { PORT_FREE_FIRST = 32768, PORT_FREE_LAST = 60999 };

// --- addresses ------------------------------------------------------------------------------------------------------

uint32_t cm_own_node(void)
{
    return attach_environment()->node_index;
}

static enum cm_where where_v4(uint32_t address, uint32_t *node_out)
{
    const struct attach_environment *environment = attach_environment();
    if (address == INADDR_ANY) {
        return CM_WHERE_ANY;
    }
    if (address == INADDR_LOOPBACK) {
        *node_out = environment->node_index;
        return CM_WHERE_NODE;
    }
    *node_out = address - environment->address_base;
    return *node_out < environment->node_count ? CM_WHERE_NODE : CM_WHERE_NOBODY;
}

enum cm_where cm_address_where(const struct sockaddr *address, uint32_t *node_out)
{
    *node_out = 0;
    if (address->sa_family == AF_INET) {
        return where_v4(ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr), node_out);
    }
    if (address->sa_family != AF_INET6) {
        return CM_WHERE_BAD;
    }
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
    if (IN6_IS_ADDR_UNSPECIFIED(v6)) {
        return CM_WHERE_ANY;
    }
    if (IN6_IS_ADDR_LOOPBACK(v6)) {
        *node_out = cm_own_node();
        return CM_WHERE_NODE;
    }
    uint32_t last;
    memcpy(&last, &v6->s6_addr[12], sizeof last);
    return IN6_IS_ADDR_V4MAPPED(v6) ? where_v4(ntohl(last), node_out) : CM_WHERE_NOBODY;
}

uint16_t cm_address_port(const struct sockaddr *address)
{
    // At the same offset in both families.
    return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

void cm_address_set(struct sockaddr_storage *address_out, int family, bool any, uint32_t node, uint16_t port)
{
    uint32_t v4 = any ? INADDR_ANY : attach_environment()->address_base + node;
    memset(address_out, 0, sizeof *address_out);
    if (family == AF_INET6) {
        struct sockaddr_in6 *address = (struct sockaddr_in6 *)address_out;
        const uint32_t mapped[4] = {0, 0, any ? 0 : htonl(0xffff), htonl(v4)};
        *address = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
        memcpy(&address->sin6_addr, mapped, sizeof mapped);
    } else {
        struct sockaddr_in *address = (struct sockaddr_in *)address_out;
        *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(v4)};
    }
}

// --- ports ----------------------------------------------------------------------------------------------------------
// The owner of a port holds a lock on a file, which the kernel releases however the owner ends; a listener has a socket
// of the same name.

// false: there is no run, or the name of its directory is too long.
static bool name_make(struct sockaddr_un *name_out, uint32_t node, enum rdma_port_space ps, uint16_t port)
{
    const char *attach = getenv("TCASIM_ATTACH");
    const char *slash = attach != NULL ? strrchr(attach, '/') : NULL;
    *name_out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = slash == NULL ? -1
                               : snprintf(name_out->sun_path, sizeof name_out->sun_path, "%.*s/.rdma_cm/%u-%x-%u",
                                          (int)(slash - attach), attach, node, (unsigned)ps, port);
    return length > 0 && length < (int)sizeof name_out->sun_path;
}

static int claim(struct cm_id *id, uint16_t port)
{
    struct sockaddr_un name;
    char path[sizeof name.sun_path + 8];
    if (!name_make(&name, cm_own_node(), id->base.ps, port)) {
        return -ENODEV;
    }
    (void)snprintf(path, sizeof path, "%s.lock", name.sun_path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return -errno;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)close(fd);
        return -EADDRINUSE;
    }
    id->claim = fd;
    id->port = port;
    return 0;
}

int cm_port_take(struct cm_id *id, uint16_t port)
{
    if (port != 0) {
        return claim(id, port);
    }
    int status = -EADDRINUSE;
    for (unsigned next = PORT_FREE_FIRST; status == -EADDRINUSE && next <= PORT_FREE_LAST; next++) {
        status = claim(id, (uint16_t)next);
    }
    return status;
}

void cm_port_give(struct cm_id *id)
{
    cm_socket_close(id);
    if (id->claim >= 0) {
        (void)close(id->claim);
        id->claim = -1;
    }
}

// --- sockets --------------------------------------------------------------------------------------------------------

static int socket_make(struct cm_id *id)
{
    id->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return id->socket >= 0 ? 0 : -errno;
}

void cm_socket_close(struct cm_id *id)
{
    struct sockaddr_un name;
    if (id->socket < 0) {
        return;
    }
    cm_channel_unwatch(id);
    (void)close(id->socket);
    id->socket = -1;
    if (id->state == CM_LISTENING && name_make(&name, cm_own_node(), id->base.ps, id->port)) {
        (void)unlink(name.sun_path);
    }
}

// An existing name was left by a process that was killed: the caller owns the port.
int cm_socket_listen(struct cm_id *id, int backlog)
{
    struct sockaddr_un name;
    int status = name_make(&name, cm_own_node(), id->base.ps, id->port) ? socket_make(id) : -ENODEV;
    if (status != 0) {
        return status;
    }
    (void)unlink(name.sun_path);
    if (bind(id->socket, (const struct sockaddr *)&name, sizeof name) != 0 || listen(id->socket, backlog) != 0) {
        status = -errno;
        cm_socket_close(id);
    }
    return status;
}

int cm_socket_connect(struct cm_id *id, uint32_t node, uint16_t port)
{
    struct sockaddr_un name;
    int status = name_make(&name, node, id->base.ps, port) ? socket_make(id) : -ENODEV;
    if (status == 0 && connect(id->socket, (const struct sockaddr *)&name, sizeof name) != 0) {
        status = -errno;
        cm_socket_close(id);
    }
    return status;
}

int cm_meeting_bind(const struct cm_id *id, int fd)
{
    struct sockaddr_un name;
    if (!name_make(&name, cm_own_node(), id->base.ps, id->port)) {
        return -ENODEV;
    }
    (void)unlink(name.sun_path);
    return bind(fd, (const struct sockaddr *)&name, sizeof name) == 0 ? 0 : -errno;
}

void cm_meeting_unbind(const struct cm_id *id)
{
    struct sockaddr_un name;
    if (id->port != 0 && name_make(&name, cm_own_node(), id->base.ps, id->port)) {
        (void)unlink(name.sun_path);
    }
}

int cm_meeting_send(const struct cm_id *id, int fd, uint32_t node, uint16_t port, const void *data, size_t bytes)
{
    struct sockaddr_un name;
    if (!name_make(&name, node, id->base.ps, port)) {
        return -ENODEV;
    }
    ssize_t sent = sendto(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&name, sizeof name);
    return sent >= 0 ? 0 : -errno;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return ((const struct sockaddr_in *)&id->route.addr.src_addr)->sin_port;
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
    return ((const struct sockaddr_in *)&id->route.addr.dst_addr)->sin_port;
}
