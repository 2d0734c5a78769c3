// Names of hosts: the nodes', "localhost", and addresses as text. Every other name does not exist; no file and no server
// of the machine is asked, so the answer is the same on every machine, and comes at once. Names of services are the C
// library's (/etc/services).
//
// Leaves out: gethostent, getnetbyname, and the resolver's own functions (res_query), whose server cannot be reached
// (reach.c).
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "verbs-shim/world/world.h"

// --- names ----------------------------------------------------------------------------------------------------------

static bool is_number(const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    struct in_addr v4;
    return strchr(name, ':') != NULL || inet_aton(name, &v4) != 0 || inet_pton(AF_INET6, name, address) == 1;
}

// The IPv4 address with that name, in network byte order. false: no node has this name.
static bool address_of(const char *name, struct in_addr *address_out)
{
    const struct attach_environment *environment = attach_environment();
    bool found = strcasecmp(name, "localhost") == 0;
    address_out->s_addr = htonl(INADDR_LOOPBACK);
    for (uint32_t i = 0; i < environment->node_count && !found; i++) {
        found = strcmp(name, environment->hosts[i]) == 0;
        address_out->s_addr = htonl(environment->address_base + i);
    }
    return found;
}

// The name of that address; NULL: it has none.
static const char *name_of(struct in_addr address)
{
    const struct attach_environment *environment = attach_environment();
    uint32_t node = ntohl(address.s_addr) - environment->address_base;
    return node < environment->node_count                 ? environment->hosts[node]
           : ntohl(address.s_addr) == INADDR_LOOPBACK ? "localhost"
                                                          : NULL;
}

// --- getaddrinfo, getnameinfo ---------------------------------------------------------------------------------------

// "Any address", or the node itself, in the order in which Linux lists them. The C library would ask the kernel which
// addresses the machine has to sort them.
static int any_find(const char *service, const struct addrinfo *asked, struct addrinfo **found)
{
    struct addrinfo hints = *asked, *second = NULL;
    bool both = hints.ai_family == AF_UNSPEC;
    bool passive = (hints.ai_flags & AI_PASSIVE) != 0;
    hints.ai_flags &= ~AI_ADDRCONFIG;
    hints.ai_family = both ? (passive ? AF_INET : AF_INET6) : hints.ai_family;
    int status = WORLD_REAL(getaddrinfo)(NULL, service, &hints, found);
    hints.ai_family = passive ? AF_INET6 : AF_INET;
    if (status == 0 && both && WORLD_REAL(getaddrinfo)(NULL, service, &hints, &second) == 0) {
        struct addrinfo *last = *found;
        while (last->ai_next != NULL) {
            last = last->ai_next;
        }
        last->ai_next = second; // freeaddrinfo frees each by itself
    }
    return status;
}

static int number_find(const char *number, const char *service, const struct addrinfo *asked, struct addrinfo **found)
{
    struct addrinfo hints = *asked;
    hints.ai_flags = (hints.ai_flags & ~AI_ADDRCONFIG) | AI_NUMERICHOST;
    return WORLD_REAL(getaddrinfo)(number, service, &hints, found);
}

static int name_find(const char *name, const char *service, const struct addrinfo *asked, struct addrinfo **found)
{
    char text[INET6_ADDRSTRLEN];
    struct in_addr address;
    if (!address_of(name, &address)) {
        world_asked("the name", name);
        return EAI_NONAME;
    }
    struct addrinfo hints = *asked;
    bool wants_name = (hints.ai_flags & AI_CANONNAME) != 0;
    hints.ai_family = hints.ai_family == AF_INET6 ? AF_INET6 : AF_INET;
    hints.ai_flags |= hints.ai_family == AF_INET6 ? AI_V4MAPPED : 0;
    hints.ai_flags &= ~AI_CANONNAME;
    (void)inet_ntop(AF_INET, &address, text, sizeof text);
    int status = number_find(text, service, &hints, found);
    if (status == 0 && wants_name) {
        (*found)->ai_canonname = strdup(name); // freeaddrinfo frees it
    }
    return status;
}

int getaddrinfo(const char *restrict name, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict found)
{
    if (attach_environment() == NULL) {
        return WORLD_REAL(getaddrinfo)(name, service, hints, found);
    }
    // Without hints, the C library's are these (getaddrinfo(3)).
    const struct addrinfo asked =
        hints != NULL ? *hints : (struct addrinfo){.ai_family = AF_UNSPEC, .ai_flags = AI_V4MAPPED | AI_ADDRCONFIG};
    if (name == NULL) {
        return any_find(service, &asked, found);
    }
    bool numeric = is_number(name) || (asked.ai_flags & AI_NUMERICHOST) != 0;
    return numeric ? number_find(name, service, &asked, found) : name_find(name, service, &asked, found);
}

static bool address_in(const struct sockaddr *address, socklen_t bytes, struct in_addr *v4_out)
{
    if (address->sa_family == AF_INET && bytes >= sizeof(struct sockaddr_in)) {
        *v4_out = ((const struct sockaddr_in *)address)->sin_addr;
        return true;
    }
    if (address->sa_family != AF_INET6 || bytes < sizeof(struct sockaddr_in6)) {
        return false;
    }
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
    memcpy(v4_out, &v6->s6_addr[12], sizeof *v4_out);
    v4_out->s_addr = IN6_IS_ADDR_LOOPBACK(v6) ? htonl(INADDR_LOOPBACK) : v4_out->s_addr;
    return IN6_IS_ADDR_V4MAPPED(v6) || IN6_IS_ADDR_LOOPBACK(v6);
}

int getnameinfo(const struct sockaddr *restrict address, socklen_t bytes, char *restrict name, socklen_t name_bytes,
                char *restrict service, socklen_t service_bytes, int flags)
{
    struct in_addr v4;
    if (attach_environment() == NULL || (flags & NI_NUMERICHOST) != 0 || name == NULL || name_bytes == 0) {
        return WORLD_REAL(getnameinfo)(address, bytes, name, name_bytes, service, service_bytes, flags);
    }
    const char *found = address_in(address, bytes, &v4) ? name_of(v4) : NULL;
    if (found == NULL && (flags & NI_NAMEREQD) != 0) {
        return EAI_NONAME;
    }
    int status = WORLD_REAL(getnameinfo)(address, bytes, name, found == NULL ? name_bytes : 0, service, service_bytes,
                                         flags | NI_NUMERICHOST);
    if (found != NULL && strlen(found) >= name_bytes) {
        return EAI_OVERFLOW;
    }
    if (status == 0 && found != NULL) {
        memcpy(name, found, strlen(found) + 1);
    }
    return status;
}

// --- the older functions --------------------------------------------------------------------------------------------
// The C library's are called with an address as text, which they take apart without a file or a server; the name in the
// result is then the name that was asked for, in the caller's buffer or in a block of this library.

static const char *text_of(const char *name, char text[INET6_ADDRSTRLEN])
{
    struct in_addr address;
    if (attach_environment() == NULL || is_number(name)) {
        return name;
    }
    if (!address_of(name, &address)) {
        world_asked("the name", name);
        return NULL;
    }
    return inet_ntop(AF_INET, &address, text, INET6_ADDRSTRLEN);
}

// gethostbyname and its relatives without a buffer: the result is overwritten by the next call.
static struct hostent own_entry;
static char own_name[256];

static struct hostent *named(struct hostent *entry, const char *name)
{
    if (entry != NULL && attach_environment() != NULL) {
        own_entry = *entry;
        strncpy(own_name, name, sizeof own_name - 1);
        own_entry.h_name = own_name;
        entry = &own_entry;
    }
    return entry;
}

static struct hostent *not_found(void)
{
    h_errno = HOST_NOT_FOUND;
    return NULL;
}

struct hostent *gethostbyname(const char *name)
{
    char text[INET6_ADDRSTRLEN];
    const char *address = text_of(name, text);
    return address != NULL ? named(WORLD_REAL(gethostbyname)(address), name) : not_found();
}

struct hostent *gethostbyname2(const char *name, int family)
{
    char text[INET6_ADDRSTRLEN];
    const char *address = text_of(name, text);
    return address != NULL ? named(WORLD_REAL(gethostbyname2)(address, family), name) : not_found();
}

static int not_found_r(struct hostent **found, int *error)
{
    *found = NULL;
    *error = HOST_NOT_FOUND;
    return 0;
}

int gethostbyname_r(const char *restrict name, struct hostent *restrict entry, char *restrict buffer, size_t bytes,
                    struct hostent **restrict found, int *restrict error)
{
    char text[INET6_ADDRSTRLEN];
    const char *address = text_of(name, text);
    return address != NULL ? WORLD_REAL(gethostbyname_r)(address, entry, buffer, bytes, found, error)
                           : not_found_r(found, error);
}

int gethostbyname2_r(const char *restrict name, int family, struct hostent *restrict entry, char *restrict buffer,
                     size_t bytes, struct hostent **restrict found, int *restrict error)
{
    char text[INET6_ADDRSTRLEN];
    const char *address = text_of(name, text);
    return address != NULL ? WORLD_REAL(gethostbyname2_r)(address, family, entry, buffer, bytes, found, error)
                           : not_found_r(found, error);
}

// The name of an IPv4 address; NULL: it has none.
static const char *name_by_address(const void *address, socklen_t bytes, int family)
{
    struct in_addr v4;
    if (family != AF_INET || bytes != sizeof v4) {
        return NULL;
    }
    memcpy(&v4, address, sizeof v4);
    return name_of(v4);
}

struct hostent *gethostbyaddr(const void *address, socklen_t bytes, int family)
{
    if (attach_environment() == NULL) {
        return WORLD_REAL(gethostbyaddr)(address, bytes, family);
    }
    const char *name = name_by_address(address, bytes, family);
    return name != NULL ? gethostbyname(name) : not_found();
}

int gethostbyaddr_r(const void *restrict address, socklen_t bytes, int family, struct hostent *restrict entry,
                    char *restrict buffer, size_t room, struct hostent **restrict found, int *restrict error)
{
    if (attach_environment() == NULL) {
        return WORLD_REAL(gethostbyaddr_r)(address, bytes, family, entry, buffer, room, found, error);
    }
    const char *name = name_by_address(address, bytes, family);
    return name != NULL ? gethostbyname_r(name, entry, buffer, room, found, error) : not_found_r(found, error);
}
