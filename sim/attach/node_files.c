#include "sim/attach/node_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/attach/processor.h"
#include "verbs-shim/attach/identity.h"

enum { PATH_BYTES = 512, FLAGS_BYTES = 4096 };
// One of so many parts of the memory is in use.
enum { USED_PART = 16 };

// --- writing --------------------------------------------------------------------------------------------------------

// Makes all folders that contain the path: mostly only the last one is missing.
static bool folders_make(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path) {
        return true;
    }
    *slash = '\0';
    bool made = mkdir(path, 0700) == 0 || errno == EEXIST ||
                (errno == ENOENT && folders_make(path) && (mkdir(path, 0700) == 0 || errno == EEXIST));
    *slash = '/';
    return made;
}

// A program may have put something else there: a FIFO, a link.
static FILE *file_open(const char *path)
{
    struct stat about;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    FILE *file = fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) ? fdopen(fd, "w") : NULL;
    if (file == NULL && fd >= 0) {
        close(fd);
        errno = EINVAL;
    }
    return file;
}

void attach_tree_write(struct attach_tree *tree, const char *folder, const char *name, const char *format, ...)
{
    char path[PATH_BYTES];
    va_list list;
    if (!tree->good) {
        return;
    }
    snprintf(path, sizeof path, "%s%s/%s", tree->root, folder, name);
    FILE *file = file_open(path);
    if (file == NULL && errno == ENOENT && folders_make(path)) {
        file = file_open(path);
    }
    va_start(list, format);
    bool written = file != NULL && vfprintf(file, format, list) >= 0;
    va_end(list);
    tree->good = file != NULL && (fclose(file) == 0) && written;
}

void attach_tree_folder(struct attach_tree *tree, const char *folder)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s%s/", tree->root, folder);
    tree->good = tree->good && folders_make(path);
}

void attach_tree_link(struct attach_tree *tree, const char *path, const char *target)
{
    char own[PATH_BYTES];
    snprintf(own, sizeof own, "%s%s", tree->root, path);
    tree->good = tree->good && folders_make(own) && symlink(target, own) == 0;
}

// --- processor and memory -------------------------------------------------------------------------------------------

uint64_t attach_memory_kib(const struct scn_host *host)
{
    return host->memory_bytes / 1024;
}

uint64_t attach_memory_free_kib(const struct scn_host *host)
{
    return attach_memory_kib(host) / USED_PART * (USED_PART - 1);
}

// The file of Linux (arch/x86/kernel/cpu/proc.c). BogoMIPS are twice the frequency of the counter, as on every machine
// whose counter is that of the processor's base frequency; programs calculate the frequency from either.
static void cpuinfo_make(struct attach_tree *tree, const struct scn_host *host)
{
    const struct attach_processor *processor = attach_processor_of(host->processor);
    char machine[FLAGS_BYTES], flags[FLAGS_BYTES], *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    attach_machine_flags(machine, sizeof machine);
    attach_processor_flags(host->processor, machine, flags, sizeof flags);
    for (unsigned i = 0; i < processor->cores && file != NULL; i++) {
        fprintf(file,
                "processor\t: %u\nvendor_id\t: GenuineIntel\ncpu family\t: %u\nmodel\t\t: %u\n"
                "model name\t: %s\nstepping\t: %u\nmicrocode\t: 0x1\ncpu MHz\t\t: %u.000\n"
                "cache size\t: %u KB\nphysical id\t: 0\nsiblings\t: %u\ncore id\t\t: %u\n"
                "cpu cores\t: %u\napicid\t\t: %u\ninitial apicid\t: %u\nfpu\t\t: yes\n"
                "fpu_exception\t: yes\ncpuid level\t: 13\nwp\t\t: yes\nflags\t\t: %s\nbugs\t\t:\n"
                "bogomips\t: %u.00\nclflush size\t: %u\ncache_alignment\t: %u\n"
                "address sizes\t: 46 bits physical, 48 bits virtual\npower management:\n\n",
                i, processor->family, processor->model, processor->title, processor->stepping, processor->mhz,
                processor->cache_kib, processor->cores, i, processor->cores, 2 * i, 2 * i, flags, 2 * processor->mhz,
                ATTACH_CACHE_LINE, ATTACH_CACHE_LINE);
    }
    tree->good = tree->good && file != NULL && fclose(file) == 0;
    if (tree->good) {
        attach_tree_write(tree, "/proc", "cpuinfo", "%s", text);
    }
    free(text);
}

static void meminfo_make(struct attach_tree *tree, const struct scn_host *host)
{
    uint64_t all_kib = attach_memory_kib(host), free_kib = attach_memory_free_kib(host);
    attach_tree_write(tree, "/proc", "meminfo",
                      "MemTotal:       %8" PRIu64 " kB\nMemFree:        %8" PRIu64 " kB\nMemAvailable:   %8" PRIu64
                      " kB\nBuffers:               0 kB\nCached:                0 kB\nSwapCached:            0 kB\n"
                      "SwapTotal:             0 kB\nSwapFree:              0 kB\nShmem:                 0 kB\n"
                      "HugePages_Total:       0\nHugePages_Free:        0\nHugePages_Rsvd:        0\n"
                      "HugePages_Surp:        0\nHugepagesize:       2048 kB\nHugetlb:               0 kB\n",
                      all_kib, free_kib, free_kib);
}

// Time in ticks of 10 ms since the node's start, 1000 s ago, all of it idle.
static void stat_make(struct attach_tree *tree, unsigned cores)
{
    char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text, "cpu  0 0 0 %u 0 0 0 0 0 0\n", 100000 * cores);
    for (unsigned i = 0; i < cores; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "cpu%u 0 0 0 100000 0 0 0 0 0 0\n", i);
    }
    attach_tree_write(tree, "/proc", "stat",
                      "%sintr 0\nctxt 0\nbtime 1388533400\nprocesses 1\nprocs_running 1\n"
                      "procs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
                      text);
}

// --- network --------------------------------------------------------------------------------------------------------

static void interface_make(struct attach_tree *tree, const char *name, const char *address, unsigned index)
{
    bool is_loopback = index == 1;
    char folder[64];
    snprintf(folder, sizeof folder, "/sys/class/net/%s", name);
    attach_tree_write(tree, folder, "address", "%s\n", address);
    attach_tree_write(tree, folder, "addr_len", "6\n");
    attach_tree_write(tree, folder, "ifindex", "%u\n", index);
    attach_tree_write(tree, folder, "iflink", "%u\n", index);
    attach_tree_write(tree, folder, "carrier", "1\n");
    attach_tree_write(tree, folder, "dev_id", "0x0\n");
    attach_tree_write(tree, folder, "dev_port", "0\n");
    attach_tree_write(tree, folder, "mtu", "%u\n", is_loopback ? ATTACH_LOOPBACK_MTU : ATTACH_ETHERNET_MTU);
    attach_tree_write(tree, folder, "type", "%u\n", is_loopback ? 772u : 1u); // ARPHRD_LOOPBACK, ARPHRD_ETHER
    attach_tree_write(tree, folder, "flags", "%s\n", is_loopback ? "0x9" : "0x1003");
    attach_tree_write(tree, folder, "operstate", "%s\n", is_loopback ? "unknown" : "up");
    if (!is_loopback) {
        attach_tree_write(tree, folder, "speed", "1000\n");
        attach_tree_write(tree, folder, "duplex", "full\n");
    }
}

// All nodes by name, also localhost, as in the shim (verbs-shim/world/resolve.c).
static void hosts_make(struct attach_tree *tree, const struct attach_node_facts *facts)
{
    char text[SCN_NODES_MAX * (SCN_NAME_MAX + 24) + 64];
    size_t used = (size_t)snprintf(text, sizeof text, "127.0.0.1\tlocalhost\n");
    for (uint32_t i = 0; i < facts->scenario->node_count; i++) {
        uint32_t address = facts->address_base + i;
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%u.%u.%u.%u\t%s\n", address >> 24, address >> 16 & 255,
                             address >> 8 & 255, address & 255, facts->scenario->nodes[i].name);
    }
    attach_tree_write(tree, "/etc", "hosts", "%s", text);
}

static void network_make(struct attach_tree *tree, const struct attach_node_facts *facts)
{
    char address[32];
    uint8_t ethernet[] = ATTACH_ETHERNET_ADDRESS(facts->node);
    snprintf(address, sizeof address, "%02x:%02x:%02x:%02x:%02x:%02x", ethernet[0], ethernet[1], ethernet[2],
             ethernet[3], ethernet[4], ethernet[5]);
    interface_make(tree, ATTACH_LOOPBACK_NAME, "00:00:00:00:00:00", 1);
    interface_make(tree, ATTACH_ETHERNET_NAME, address, 2);
    hosts_make(tree, facts);
}

// --- files with a fixed text ----------------------------------------------------------------------------------------

#define TEXT_OF(token) #token
#define NUMBER(macro)  TEXT_OF(macro)

static const struct {
    const char *folder, *name, *text;
} files[] = {
    {"/etc", "resolv.conf", ""},
    {"/etc", "host.conf", "multi on\n"},
    {"/etc", "gai.conf", ""},
    {"/etc", "nsswitch.conf",
     "passwd: files\ngroup: files\nshadow: files\nhosts: files\nnetworks: files\nprotocols: files\nservices: files\n"
     "ethers: files\nrpc: files\n"},
    {"/proc", "loadavg", "0.00 0.00 0.00 1/1 1\n"},
    {"/proc", "uptime", "1000.00 1000.00\n"},
    {"/proc", "version", "Linux version " ATTACH_KERNEL_RELEASE " " ATTACH_KERNEL_VERSION "\n"},
    {"/proc", "cmdline", "\n"},
    {"/proc", "filesystems", "nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\n\text4\n"},
    {"/proc", "modules", ""},
    {"/proc", "swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"},
    {"/proc", "partitions", "major minor  #blocks  name\n\n"},
    {"/proc", "diskstats", ""},
    {"/proc", "interrupts", ""},
    {"/proc/self", "cgroup", "0::/\n"},
    {"/proc/self", "cpuset", "/\n"},
    {"/proc/self", "mounts",
     "/dev/root / ext4 rw 0 0\nproc /proc proc rw 0 0\nsysfs /sys sysfs rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n"},
    {"/proc/net", "dev",
     "Inter-|   Receive                                                |  Transmit\n"
     " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
     "fifo colls carrier compressed\n"},
    {"/proc/net", "route", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"},
    {"/proc/net", "arp", "IP address       HW type     Flags       HW address            Mask     Device\n"},
    {"/proc/sys/kernel", "ostype", "Linux\n"},
    {"/proc/sys/kernel", "osrelease", ATTACH_KERNEL_RELEASE "\n"},
    {"/proc/sys/kernel", "version", ATTACH_KERNEL_VERSION "\n"},
    {"/proc/sys/kernel", "pid_max", "4194304\n"}, // the kernel's defaults, here and below
    {"/proc/sys/kernel", "threads-max", "63000\n"},
    {"/proc/sys/kernel", "shmmax", "18446744073692774399\n"},
    {"/proc/sys/kernel", "shmall", "18446744073692774399\n"},
    {"/proc/sys/kernel", "shmmni", "4096\n"},
    {"/proc/sys/kernel", "sem", "32000\t1024000000\t500\t32000\n"},
    {"/proc/sys/kernel", "msgmax", "8192\n"},
    {"/proc/sys/kernel", "msgmnb", "16384\n"},
    {"/proc/sys/kernel/random", "entropy_avail", "256\n"},
    {"/proc/sys/kernel/random", "poolsize", "256\n"},
    {"/proc/sys/kernel/random", "uuid", ""}, // each open has another one (verbs-shim/world/random.c)
    {"/proc/sys/kernel", "ngroups_max", "65536\n"},
    {"/proc/sys/kernel", "numa_balancing", "0\n"},
    {"/proc/sys/fs", "file-max", "9223372036854775807\n"},
    {"/proc/sys/fs", "nr_open", "1048576\n"},
    {"/proc/sys/fs", "pipe-max-size", "1048576\n"},
    {"/proc/sys/fs/mqueue", "msg_max", "10\n"},
    {"/proc/sys/fs/mqueue", "msgsize_max", "8192\n"},
    {"/proc/sys/vm", "overcommit_memory", "0\n"},
    {"/proc/sys/vm", "max_map_count", "65530\n"},
    {"/proc/sys/vm", "nr_hugepages", "0\n"},
    {"/proc/sys/net/core", "somaxconn", "4096\n"},
    {"/proc/sys/net/core", "rmem_default", "212992\n"},
    {"/proc/sys/net/core", "wmem_default", "212992\n"},
    {"/proc/sys/net/core", "rmem_max", "212992\n"},
    {"/proc/sys/net/core", "wmem_max", "212992\n"},
    {"/proc/sys/net/ipv4", "tcp_rmem", "4096\t131072\t6291456\n"},
    {"/proc/sys/net/ipv4", "tcp_wmem", "4096\t16384\t4194304\n"},
    {"/proc/sys/net/ipv4", "ip_local_port_range", NUMBER(ATTACH_FREE_PORT_FIRST) "\t" NUMBER(ATTACH_FREE_PORT_LAST) "\n"},
    {"/sys/kernel/mm/hugepages/hugepages-2048kB", "nr_hugepages", "0\n"},
    {"/sys/kernel/mm/hugepages/hugepages-2048kB", "free_hugepages", "0\n"},
    {"/sys/kernel/mm/hugepages/hugepages-2048kB", "resv_hugepages", "0\n"},
    {"/sys/kernel/mm/hugepages/hugepages-2048kB", "nr_overcommit_hugepages", "0\n"},
    {"/sys/kernel/mm/transparent_hugepage", "enabled", "always [madvise] never\n"},
    {"/sys/kernel/mm/transparent_hugepage", "shmem_enabled", "always within_size advise [never] deny force\n"},
    {"/sys/class/dmi/id", "sys_vendor", "tcasim\n"},
    {"/sys/class/dmi/id", "product_name", "node\n"},
    {"/sys/class/dmi/id", "board_vendor", "tcasim\n"},
    {"/sys/class/dmi/id", "board_name", "node\n"},
    {"/sys/class/dmi/id", "bios_vendor", "tcasim\n"},
    {"/sys/class/dmi/id", "bios_version", "1\n"},
    {"/sys/class/dmi/id", "chassis_type", "23\n"}, // a rack
};

// The node has none of these things: its links to devices of the bus are not shown.
static const char *const empty[] = {"/sys/block",     "/sys/class/block", "/sys/bus/pci/devices", "/sys/bus/pci/slots",
                                    "/sys/class/drm", "/sys/fs/cgroup",   "/sys/module",          "/proc/driver"};

void attach_node_files_make(struct attach_tree *tree, const struct attach_node_facts *facts)
{
    const struct scn_host *host = &facts->scenario->nodes[facts->node].host;
    char target[PATH_BYTES];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        attach_tree_write(tree, files[i].folder, files[i].name, "%s", files[i].text);
    }
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        attach_tree_folder(tree, empty[i]);
    }
    snprintf(target, sizeof target, "%s/system", facts->shared);
    attach_tree_link(tree, "/sys/devices/system", target);
    snprintf(target, sizeof target, "%s/" ATTACH_TOPOLOGY_FILE, facts->shared);
    attach_tree_link(tree, "/sys/" ATTACH_TOPOLOGY_FILE, target);
    attach_tree_link(tree, "/proc/mounts", "self/mounts");
    cpuinfo_make(tree, host);
    meminfo_make(tree, host);
    stat_make(tree, attach_processor_of(host->processor)->cores);
    network_make(tree, facts);
}
