#include "verbs-shim/world/cpuid.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/world.h"

// Linux 4.12.
#ifndef ARCH_SET_CPUID
#define ARCH_SET_CPUID 0x1012
#endif

// Intel SDM, volume 2, CPUID; leaves from 0x40000000 on are those of hypervisors.
enum {
    LEAF_VENDOR = 0,
    LEAF_LAST = 13, // of the node's processor, as in /proc/cpuinfo
    LEAF_FEATURES = 1,
    LEAF_MORE_FEATURES = 7,
    LEAF_COUNTER = 0x15,
    LEAF_FREQUENCY = 0x16,
    HYPERVISOR_BIT = 31, // of ECX
    RDRAND_BIT = 30,     // of ECX; programs that find neither ask the kernel for random numbers (random.c)
    RDSEED_BIT = 18,     // of EBX
    INVARIANT_BIT = 8    // of EDX
};
#define LEAF_HYPERVISORS     0x40000000u
#define LEAF_HYPERVISORS_END 0x50000000u
#define LEAF_NAME            0x80000002u
#define LEAF_NAME_END        0x80000005u
#define LEAF_POWER           0x80000007u

struct answer {
    uint32_t a, b, c, d;
};

static bool faulting;

static bool faults_set(bool on)
{
    return kernel_call(SYS_arch_prctl, ARCH_SET_CPUID, !on, 0, 0, 0, 0) == 0;
}

static struct answer of_machine(uint32_t leaf, uint32_t part)
{
    struct answer answer;
    if (faulting) {
        (void)faults_set(false);
    }
    __cpuid_count(leaf, part, answer.a, answer.b, answer.c, answer.d);
    if (faulting) {
        (void)faults_set(true);
    }
    return answer;
}

static struct answer name_part(uint32_t index)
{
    char name[3 * sizeof(struct answer)] = "";
    struct answer answer;
    strncpy(name, attach_environment()->processor, sizeof name - 1);
    memcpy(&answer, name + index * sizeof answer, sizeof answer);
    return answer;
}

static struct answer vendor(uint32_t last)
{
    struct answer answer = {.a = last < LEAF_LAST ? last : LEAF_LAST};
    memcpy(&answer.b, "Genu", sizeof answer.b);
    memcpy(&answer.d, "ineI", sizeof answer.d);
    memcpy(&answer.c, "ntel", sizeof answer.c);
    return answer;
}

static struct answer of_node(uint32_t leaf, uint32_t part)
{
    if (leaf == LEAF_VENDOR) {
        return vendor(of_machine(leaf, part).a);
    }
    if (leaf >= LEAF_NAME && leaf < LEAF_NAME_END) {
        return name_part(leaf - LEAF_NAME);
    }
    if (leaf == LEAF_COUNTER || leaf == LEAF_FREQUENCY || (leaf >= LEAF_HYPERVISORS && leaf < LEAF_HYPERVISORS_END)) {
        return (struct answer){0};
    }
    struct answer answer = of_machine(leaf, part);
    answer.a = leaf == LEAF_FEATURES ? attach_environment()->processor_signature : answer.a;
    answer.c &= leaf == LEAF_FEATURES ? ~(1u << HYPERVISOR_BIT | 1u << RDRAND_BIT) : UINT32_MAX;
    answer.b &= leaf == LEAF_MORE_FEATURES && part == 0 ? ~(1u << RDSEED_BIT) : UINT32_MAX;
    answer.d |= leaf == LEAF_POWER ? 1u << INVARIANT_BIT : 0;
    return answer;
}

static bool is_of_node(uint32_t leaf)
{
    const struct answer machine = of_machine(leaf, 0), node = of_node(leaf, 0);
    bool core = leaf == LEAF_FEATURES; // b has the number of the core
    return machine.a == node.a && (core || machine.b == node.b) && machine.c == node.c && machine.d == node.d;
}

bool world_cpuid_needs_breakpoints(void)
{
    return !faulting && !(is_of_node(LEAF_VENDOR) && is_of_node(LEAF_FEATURES) && is_of_node(LEAF_MORE_FEATURES) &&
                          is_of_node(LEAF_NAME) && is_of_node(LEAF_POWER));
}

void world_cpuid_replace(greg_t *registers, uintptr_t at)
{
    struct answer answer = of_node((uint32_t)registers[REG_RAX], (uint32_t)registers[REG_RCX]);
    registers[REG_RAX] = answer.a;
    registers[REG_RBX] = answer.b;
    registers[REG_RCX] = answer.c;
    registers[REG_RDX] = answer.d;
    registers[REG_RIP] = (greg_t)(at + WORLD_CPUID_BYTES);
}

bool world_cpuid_fault(greg_t *registers)
{
    uintptr_t at = (uintptr_t)registers[REG_RIP];
    bool is = faulting && world_cpuid_is((const unsigned char *)at); // NOLINT(performance-no-int-to-ptr)
    if (is) {
        world_cpuid_replace(registers, at);
    }
    return is;
}

// Threads and children of fork have it too; a new program begins without it.
void world_cpuid_start(void)
{
    faulting = faults_set(true);
}
