// What the C library says about the machine: kernel, processors, memory. They are the node's. Its functions read files of
// /sys and /proc themselves, past the redirection of paths (redirect.c), so they are interposed.
//
// Leaves out: AT_SYSINFO_EHDR, AT_MINSIGSTKSZ and other values that a program needs to run on this machine, and
// /proc/self/auxv.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "verbs-shim/attach/identity.h"
#include "verbs-shim/world/world.h"

int uname(struct utsname *about)
{
    const struct attach_environment *environment = attach_environment();
    if (environment == NULL || about == NULL) {
        return WORLD_REAL(uname)(about);
    }
    memset(about, 0, sizeof *about);
    (void)snprintf(about->sysname, sizeof about->sysname, "Linux");
    (void)snprintf(about->nodename, sizeof about->nodename, "%s", environment->node);
    (void)snprintf(about->release, sizeof about->release, "%s", ATTACH_KERNEL_RELEASE);
    (void)snprintf(about->version, sizeof about->version, "%s", ATTACH_KERNEL_VERSION);
    (void)snprintf(about->machine, sizeof about->machine, "x86_64");
    (void)snprintf(about->domainname, sizeof about->domainname, "(none)");
    return 0;
}

// --- processors and memory ------------------------------------------------------------------------------------------

static int processors(void)
{
    int count = 0;
    for (size_t i = 0; i < sizeof attach_environment()->processors; i++) {
        count += __builtin_popcount(attach_environment()->processors[i]);
    }
    return count;
}

static long pages(uint64_t bytes)
{
    return (long)(bytes / (uint64_t)WORLD_REAL(sysconf)(_SC_PAGESIZE));
}

long sysconf(int name)
{
    const struct attach_environment *environment = attach_environment();
    if (environment == NULL) {
        return WORLD_REAL(sysconf)(name);
    }
    switch (name) {
    case _SC_NPROCESSORS_CONF:
    case _SC_NPROCESSORS_ONLN:
        return processors();
    case _SC_PHYS_PAGES:
        return pages(environment->memory_bytes);
    case _SC_AVPHYS_PAGES:
        return pages(environment->memory_free_bytes);
    case _SC_LEVEL1_ICACHE_SIZE: // the C library takes these from CPUID
    case _SC_LEVEL1_DCACHE_SIZE:
        return ATTACH_L1_KIB * 1024;
    case _SC_LEVEL2_CACHE_SIZE:
        return ATTACH_L2_KIB * 1024;
    case _SC_LEVEL3_CACHE_SIZE:
        return (long)environment->cache_bytes;
    case _SC_LEVEL4_CACHE_SIZE:
        return 0;
    case _SC_LEVEL1_ICACHE_ASSOC:
    case _SC_LEVEL1_DCACHE_ASSOC:
        return ATTACH_L1_WAYS;
    case _SC_LEVEL2_CACHE_ASSOC:
        return ATTACH_L2_WAYS;
    case _SC_LEVEL3_CACHE_ASSOC:
        return ATTACH_L3_WAYS;
    case _SC_LEVEL1_ICACHE_LINESIZE:
    case _SC_LEVEL1_DCACHE_LINESIZE:
    case _SC_LEVEL2_CACHE_LINESIZE:
    case _SC_LEVEL3_CACHE_LINESIZE:
        return ATTACH_CACHE_LINE;
    }
    return WORLD_REAL(sysconf)(name);
}

int get_nprocs(void)
{
    return attach_environment() != NULL ? processors() : WORLD_REAL(get_nprocs)();
}

int get_nprocs_conf(void)
{
    return attach_environment() != NULL ? processors() : WORLD_REAL(get_nprocs_conf)();
}

long get_phys_pages(void)
{
    return attach_environment() != NULL ? sysconf(_SC_PHYS_PAGES) : WORLD_REAL(get_phys_pages)();
}

long get_avphys_pages(void)
{
    return attach_environment() != NULL ? sysconf(_SC_AVPHYS_PAGES) : WORLD_REAL(get_avphys_pages)();
}

// Of a node that has been up since its monotonic clock began, and does nothing else.
int sysinfo(struct sysinfo *about)
{
    const struct attach_environment *environment = attach_environment();
    if (environment == NULL || about == NULL) {
        return WORLD_REAL(sysinfo)(about);
    }
    *about = (struct sysinfo){.uptime = (long)(environment->epoch_monotonic_ns / WORLD_NS_PER_S),
                              .totalram = environment->memory_bytes,
                              .freeram = environment->memory_free_bytes,
                              .procs = 1,
                              .mem_unit = 1};
    return 0;
}

int getloadavg(double loads[], int count)
{
    if (attach_environment() == NULL) {
        return WORLD_REAL(getloadavg)(loads, count);
    }
    int given = count < 3 ? count : 3;
    for (int i = 0; i < given; i++) {
        loads[i] = 0;
    }
    return given;
}

// --- the auxiliary vector -------------------------------------------------------------------------------------------

// Which features the processor has (leaf 1 of CPUID in EDX): what all x86-64 processors have is enough for programs that
// ask here. The second word says what the kernel has switched on.
#define HWCAP_OF_ALL 0x178bfbffu

unsigned long getauxval(unsigned long type)
{
    unsigned long value = WORLD_REAL(getauxval)(type);
    if (attach_environment() == NULL) {
        return value;
    }
    return type == AT_HWCAP ? HWCAP_OF_ALL : type == AT_HWCAP2 ? 0 : value;
}
