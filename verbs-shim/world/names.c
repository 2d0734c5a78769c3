// Names and addresses: a simulated node has a host name and an address of the loopback network, so that programs of
// several nodes may listen on the same port, and find each other by name.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "verbs-shim/world/descriptors.h"
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

int uname(struct utsname *about)
{
    int status = WORLD_REAL(uname)(about);
    const struct attach_environment *environment = attach_environment();
    if (status == 0 && environment != NULL) {
        (void)snprintf(about->nodename, sizeof about->nodename, "%s", environment->node);
    }
    return status;
}

// The address of the node as text; NULL: no node has this name.
static const char *node_address(const char *name, char text[INET_ADDRSTRLEN])
{
    const struct attach_environment *environment = attach_environment();
    for (uint32_t i = 0; environment != NULL && name != NULL && i < environment->node_count; i++) {
        if (strcmp(name, environment->hosts[i]) == 0) {
            const struct in_addr address = {.s_addr = htonl(environment->address_base + i)};
            return inet_ntop(AF_INET, &address, text, INET_ADDRSTRLEN);
        }
    }
    return NULL;
}

int getaddrinfo(const char *restrict name, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict found)
{
    char text[INET_ADDRSTRLEN];
    const char *address = node_address(name, text);
    if (address == NULL) {
        return WORLD_REAL(getaddrinfo)(name, service, hints, found);
    }
    struct addrinfo as_asked = hints != NULL ? *hints : (struct addrinfo){.ai_family = AF_UNSPEC};
    as_asked.ai_family = as_asked.ai_family == AF_INET6 ? AF_INET6 : AF_INET;
    as_asked.ai_flags |= as_asked.ai_family == AF_INET6 ? AI_V4MAPPED : 0;
    return WORLD_REAL(getaddrinfo)(address, service, &as_asked, found);
}

struct hostent *gethostbyname(const char *name)
{
    char text[INET_ADDRSTRLEN];
    const char *address = node_address(name, text);
    return WORLD_REAL(gethostbyname)(address != NULL ? address : name);
}

int gethostbyname_r(const char *restrict name, struct hostent *restrict entry, char *restrict buffer, size_t bytes,
                    struct hostent **restrict found, int *restrict error)
{
    char text[INET_ADDRSTRLEN];
    const char *address = node_address(name, text);
    return WORLD_REAL(gethostbyname_r)(address != NULL ? address : name, entry, buffer, bytes, found, error);
}

// --- "any" and "localhost" of each node -----------------------------------------------------------------------------

// Replaces "any address" by the node's own: a program of another node may listen on the same port. false: another
// address.
static bool any_replace(const struct sockaddr *address, socklen_t bytes, const struct attach_environment *environment,
                        struct sockaddr_storage *own_out)
{
    memset(own_out, 0, sizeof *own_out);
    if (bytes >= sizeof(struct sockaddr_in) && address->sa_family == AF_INET) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)own_out;
        memcpy(v4, address, sizeof *v4);
        bool any = v4->sin_addr.s_addr == htonl(INADDR_ANY) || v4->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
        v4->sin_addr.s_addr = own_address(environment);
        return any;
    }
    if (bytes >= sizeof(struct sockaddr_in6) && address->sa_family == AF_INET6) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)own_out;
        memcpy(v6, address, sizeof *v6);
        bool any = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr) || IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
        const in_addr_t mapped[4] = {0, 0, htonl(0xffff), own_address(environment)};
        memcpy(&v6->sin6_addr, mapped, sizeof mapped);
        return any;
    }
    return false;
}

int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes)
{
    const struct sockaddr *asked = address.__sockaddr__;
    const struct attach_environment *environment = attach_environment();
    struct sockaddr_storage own;
    if (environment == NULL || asked == NULL || !any_replace(asked, bytes, environment, &own)) {
        return WORLD_REAL(bind)(fd, address, bytes);
    }
    if (asked->sa_family == AF_INET6) {
        int off = 0;
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    return WORLD_REAL(bind)(fd, (const struct sockaddr *)&own, bytes);
}

// A local socket (AF_UNIX) whose queue is full lets others connect when it has accepted somebody. The flag is that of the
// open file, which other threads do not use while this one has the run token.
static int connect_await(int fd, const struct sockaddr *address, socklen_t bytes)
{
    if (!world_timed() || address->sa_family != AF_UNIX || !world_blocks(fd, 0)) {
        return WORLD_REAL(connect)(fd, address, bytes);
    }
    uint64_t deadline_ps = world_socket_deadline(fd, SO_SNDTIMEO);
    unsigned interrupts = attach_interrupts_ending();
    int flags = WORLD_REAL(fcntl)(fd, F_GETFL), status;
    bool waits;
    do {
        (void)WORLD_REAL(fcntl)(fd, F_SETFL, flags | O_NONBLOCK);
        status = WORLD_REAL(connect)(fd, address, bytes);
        int error = errno;
        (void)WORLD_REAL(fcntl)(fd, F_SETFL, flags);
        errno = error;
        waits =
            status != 0 && error == EAGAIN && attach_wait(ATTACH_WAIT_OUTSIDE, deadline_ps) != ATTACH_WOKEN_DEADLINE;
        if (waits && attach_interrupts_ending() != interrupts) {
            errno = EINTR;
            waits = false;
        }
    } while (waits);
    return status;
}

// Connections come from the node's address, and "localhost" is the node itself. On the loopback network a connection is
// established or refused at once; another thread may wait for it in accept.
int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes)
{
    const struct sockaddr *asked = address.__sockaddr__;
    const struct attach_environment *environment = attach_environment();
    if (environment == NULL || asked == NULL) {
        return WORLD_REAL(connect)(fd, address, bytes);
    }
    struct sockaddr_storage own;
    bool to_self = any_replace(asked, bytes, environment, &own);
    struct sockaddr_in source = {0};
    socklen_t source_bytes = sizeof source;
    if (asked->sa_family == AF_INET && getsockname(fd, (struct sockaddr *)&source, &source_bytes) == 0 &&
        source.sin_addr.s_addr == htonl(INADDR_ANY) && source.sin_port == 0) {
        source = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = own_address(environment)};
        (void)WORLD_REAL(bind)(fd, (const struct sockaddr *)&source, sizeof source);
    }
    int status = connect_await(fd, to_self ? (const struct sockaddr *)&own : asked, bytes);
    if (world_timed()) {
        int saved = errno;
        world_connected(fd);
        if (world_loopback_uses(fd)) {
            world_loopback_settle(WORLD_CONNECT_PACKETS);
        }
        attach_may_wake();
        errno = saved;
    }
    return status;
}
