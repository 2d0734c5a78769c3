// The machine's network interfaces as a node sees them: each has the node's address, which programs pass to others for
// connections. Names, flags and masks are the machine's; IPv6 addresses are removed from lists.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

#include "verbs-shim/world/world.h"

static void address_replace(struct sockaddr *address, const struct attach_environment *environment)
{
    if (address != NULL && address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        v4.sin_addr.s_addr = htonl(environment->address_base + environment->node_index);
        memcpy(address, &v4, sizeof v4);
    }
}

static void list_replace(struct ifconf *list, const struct attach_environment *environment)
{
    for (size_t i = 0; list->ifc_req != NULL && i < (size_t)list->ifc_len / sizeof *list->ifc_req; i++) {
        address_replace(&list->ifc_req[i].ifr_addr, environment);
    }
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    int status = WORLD_REAL(ioctl)(fd, request, argument);
    const struct attach_environment *environment =
        status == 0 && (request == SIOCGIFCONF || request == SIOCGIFADDR) ? attach_environment() : NULL;
    if (environment != NULL && request == SIOCGIFCONF) {
        list_replace(argument, environment);
    } else if (environment != NULL) {
        address_replace(&((struct ifreq *)argument)->ifr_addr, environment);
    }
    return status;
}

// An entry that is removed stays part of the list's memory, which freeifaddrs frees as a whole.
int getifaddrs(struct ifaddrs **list_out)
{
    int status = WORLD_REAL(getifaddrs)(list_out);
    const struct attach_environment *environment = status == 0 ? attach_environment() : NULL;
    if (environment == NULL) {
        return status;
    }
    for (struct ifaddrs *entry = *list_out; entry != NULL; entry = entry->ifa_next) {
        address_replace(entry->ifa_addr, environment);
        while (entry->ifa_next != NULL && entry->ifa_next->ifa_addr != NULL &&
               entry->ifa_next->ifa_addr->sa_family == AF_INET6) {
            entry->ifa_next = entry->ifa_next->ifa_next;
        }
    }
    return status;
}
