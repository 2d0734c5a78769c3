// The node's network interfaces: the loopback interface and an Ethernet one (identity.h), both with the node's address,
// which programs pass to others for connections. They are the same on every machine, whatever interfaces it has; no
// system call asks the machine.
//
// Leaves out: netlink (refused, reach.c), IPv6 addresses, and changing an interface.
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "verbs-shim/attach/identity.h"
#include "verbs-shim/world/descriptors.h"
#include "verbs-shim/world/world.h"

static const struct interface {
    const char *name;
    short flags, family; // family: of its hardware address
    int mtu;
} interfaces[] = {
    {ATTACH_LOOPBACK_NAME, IFF_UP | IFF_LOOPBACK | IFF_RUNNING, ARPHRD_LOOPBACK, ATTACH_LOOPBACK_MTU},
    {ATTACH_ETHERNET_NAME, IFF_UP | IFF_BROADCAST | IFF_RUNNING | IFF_MULTICAST, ARPHRD_ETHER, ATTACH_ETHERNET_MTU},
};
enum { INTERFACES = sizeof interfaces / sizeof interfaces[0], ETHERNET_BYTES = 6 };
#define MASK_LOOPBACK 0xff000000u
#define MASK_ETHERNET 0xffffff00u

static bool is_loopback(unsigned index)
{
    return (interfaces[index].flags & IFF_LOOPBACK) != 0;
}

static struct sockaddr_in inet_of(uint32_t address)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
}

static uint32_t own_address(void)
{
    return attach_environment()->address_base + attach_environment()->node_index;
}

static uint32_t mask_of(unsigned index)
{
    return is_loopback(index) ? MASK_LOOPBACK : MASK_ETHERNET;
}

// Of the Ethernet interface; that of the loopback interface is zero.
static void hardware_address(unsigned index, unsigned char address_out[ETHERNET_BYTES])
{
    const unsigned char ethernet[ETHERNET_BYTES] = ATTACH_ETHERNET_ADDRESS(attach_environment()->node_index);
    memset(address_out, 0, ETHERNET_BYTES);
    if (!is_loopback(index)) {
        memcpy(address_out, ethernet, ETHERNET_BYTES);
    }
}

// --- ioctl (netdevice(7)) -------------------------------------------------------------------------------------------

static int failure(int error)
{
    errno = error;
    return -1;
}

static int interface_find(const char *name)
{
    for (unsigned i = 0; i < INTERFACES; i++) {
        if (strncmp(name, interfaces[i].name, IFNAMSIZ) == 0) {
            return (int)i;
        }
    }
    return -1;
}

// Without room for entries: the number of bytes that they need.
static int list_get(struct ifconf *list)
{
    const struct sockaddr_in own = inet_of(own_address());
    if (list->ifc_req == NULL) {
        list->ifc_len = INTERFACES * sizeof *list->ifc_req;
        return 0;
    }
    unsigned room = list->ifc_len > 0 ? (unsigned)list->ifc_len / sizeof *list->ifc_req : 0, count = 0;
    while (count < room && count < INTERFACES) {
        struct ifreq *entry = &list->ifc_req[count];
        memset(entry, 0, sizeof *entry);
        memcpy(entry->ifr_name, interfaces[count].name, strlen(interfaces[count].name));
        memcpy(&entry->ifr_addr, &own, sizeof own);
        count++;
    }
    list->ifc_len = (int)(count * sizeof *list->ifc_req);
    return 0;
}

static int name_get(struct ifreq *request)
{
    int index = request->ifr_ifindex;
    if (index < 1 || index > INTERFACES) {
        return failure(ENODEV);
    }
    memset(request->ifr_name, 0, sizeof request->ifr_name);
    memcpy(request->ifr_name, interfaces[index - 1].name, strlen(interfaces[index - 1].name));
    return 0;
}

static int address_get(struct sockaddr *address, uint32_t value)
{
    const struct sockaddr_in inet = inet_of(value);
    memcpy(address, &inet, sizeof inet);
    return 0;
}

static int hardware_get(struct ifreq *request, unsigned index)
{
    memset(&request->ifr_hwaddr, 0, sizeof request->ifr_hwaddr);
    request->ifr_hwaddr.sa_family = (sa_family_t)interfaces[index].family;
    hardware_address(index, (unsigned char *)request->ifr_hwaddr.sa_data);
    return 0;
}

static int value_get(int *value, int is)
{
    *value = is;
    return 0;
}

static int interface_get(unsigned long request, struct ifreq *about)
{
    int found = interface_find(about->ifr_name);
    if (found < 0) {
        return failure(ENODEV);
    }
    unsigned index = (unsigned)found;
    switch (request) {
    case SIOCGIFADDR:
        return address_get(&about->ifr_addr, own_address());
    case SIOCGIFNETMASK:
        return address_get(&about->ifr_netmask, mask_of(index));
    case SIOCGIFBRDADDR:
        return is_loopback(index) ? failure(EADDRNOTAVAIL)
                                  : address_get(&about->ifr_broadaddr, own_address() | ~MASK_ETHERNET);
    case SIOCGIFFLAGS:
        about->ifr_flags = interfaces[index].flags;
        return 0;
    case SIOCGIFMTU:
        return value_get(&about->ifr_mtu, interfaces[index].mtu);
    case SIOCGIFINDEX:
        return value_get(&about->ifr_ifindex, found + 1);
    case SIOCGIFMETRIC:
        return value_get(&about->ifr_metric, 0);
    case SIOCGIFTXQLEN:
        return value_get(&about->ifr_qlen, 1000); // the kernel's default
    case SIOCGIFHWADDR:
        return hardware_get(about, index);
    }
    return failure(EOPNOTSUPP); // ethtool, and whatever changes an interface
}

// Requests about network interfaces, also those of ethtool.
static bool is_of_interfaces(unsigned long request)
{
    return request >= SIOCGIFNAME && request <= SIOCSIFMAP;
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    int result;
    if (world_umad_ioctl(fd, request, argument, &result)) {
        return result;
    }
    if (world_terminal_request(request) && world_is_users_terminal(fd)) {
        return failure(ENOTTY);
    }
    if (attach_environment() == NULL || !is_of_interfaces(request) || argument == NULL) {
        return WORLD_REAL(ioctl)(fd, request, argument);
    }
    return request == SIOCGIFCONF   ? list_get(argument)
           : request == SIOCGIFNAME ? name_get(argument)
                                    : interface_get(request, argument);
}

// --- lists (getifaddrs(3), if_nameindex(3)) -------------------------------------------------------------------------

// One block of memory, which freeifaddrs frees: first the interfaces themselves, as the C library lists them
// (AF_PACKET is left out, as for a machine without packet sockets), then their names and addresses.
struct listed {
    struct ifaddrs entry;
    struct sockaddr_in address, mask, broadcast;
    char name[IFNAMSIZ];
};

int getifaddrs(struct ifaddrs **list_out)
{
    if (attach_environment() == NULL) {
        return WORLD_REAL(getifaddrs)(list_out);
    }
    struct listed *list = calloc(INTERFACES, sizeof *list);
    if (list == NULL) {
        return -1;
    }
    for (unsigned i = 0; i < INTERFACES; i++) {
        struct listed *at = &list[i];
        (void)snprintf(at->name, sizeof at->name, "%s", interfaces[i].name);
        at->address = inet_of(own_address());
        at->mask = inet_of(mask_of(i));
        at->broadcast = inet_of(own_address() | (is_loopback(i) ? 0 : ~MASK_ETHERNET));
        at->entry = (struct ifaddrs){.ifa_next = i + 1 < INTERFACES ? &list[i + 1].entry : NULL,
                                     .ifa_name = at->name,
                                     .ifa_flags = (unsigned)interfaces[i].flags,
                                     .ifa_addr = (struct sockaddr *)&at->address,
                                     .ifa_netmask = (struct sockaddr *)&at->mask,
                                     .ifa_broadaddr = (struct sockaddr *)&at->broadcast};
    }
    *list_out = &list->entry;
    return 0;
}

unsigned if_nametoindex(const char *name)
{
    if (attach_environment() == NULL) {
        return WORLD_REAL(if_nametoindex)(name);
    }
    int index = interface_find(name);
    errno = index < 0 ? ENODEV : errno;
    return (unsigned)(index + 1);
}

char *if_indextoname(unsigned index, char name[IF_NAMESIZE])
{
    if (attach_environment() == NULL) {
        return WORLD_REAL(if_indextoname)(index, name);
    }
    if (index < 1 || index > INTERFACES) {
        errno = ENXIO;
        return NULL;
    }
    (void)snprintf(name, IFNAMSIZ, "%s", interfaces[index - 1].name);
    return name;
}

// if_freenameindex frees the names and the list.
struct if_nameindex *if_nameindex(void)
{
    if (attach_environment() == NULL) {
        return WORLD_REAL(if_nameindex)();
    }
    struct if_nameindex *list = calloc(INTERFACES + 1, sizeof *list);
    for (unsigned i = 0; i < INTERFACES && list != NULL; i++) {
        list[i] = (struct if_nameindex){i + 1, strdup(interfaces[i].name)};
    }
    return list;
}
