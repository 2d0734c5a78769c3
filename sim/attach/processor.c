#include "sim/attach/processor.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// In the order in which they came.
enum attach_generation { SANDY_BRIDGE, IVY_BRIDGE, HASWELL, BROADWELL };

static const struct {
    struct attach_processor shown;
    enum attach_generation generation;
} processors[SCN_PROCESSORS] = {
#define PROCESSOR(ID, name, title, model, stepping, mhz, cores, cache_kib, generation)                                 \
    [SCN_PROCESSOR_##ID] = {{title, 6, model, stepping, mhz, cores, cache_kib}, generation},
#include "sim/scenario/processors.def"
#undef PROCESSOR
};

// What CPUID of these processors says (Intel SDM, volume 2, CPUID), in the words and about in the order of Linux
// (arch/x86/include/asm/cpufeatures.h). Each generation has the flags of those before it,
// but no rdrand and rdseed: a run has its own random numbers (verbs-shim/world/random.c).
static const char *const flags[] = {
    [SANDY_BRIDGE] =
        "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush dts acpi mmx fxsr sse sse2 ss "
        "ht tm pbe syscall nx pdpe1gb rdtscp lm constant_tsc arch_perfmon pebs bts rep_good nopl xtopology nonstop_tsc "
        "aperfmperf pni pclmulqdq dtes64 monitor ds_cpl vmx smx est tm2 ssse3 cx16 xtpr pdcm pcid dca sse4_1 sse4_2 "
        "x2apic popcnt tsc_deadline_timer aes xsave avx lahf_lm epb xsaveopt dtherm ida arat pln pts",
    [IVY_BRIDGE] = "f16c fsgsbase smep erms",
    [HASWELL] = "fma movbe abm bmi1 avx2 bmi2 invpcid cqm",
    [BROADWELL] = "3dnowprefetch rdt_a adx smap",
};

const struct attach_processor *attach_processor_of(enum scn_processor processor)
{
    return &processors[processor].shown;
}

uint32_t attach_processor_signature(const struct attach_processor *processor)
{
    return processor->model >> 4 << 16 | processor->family << 8 | (processor->model & 0xf) << 4 | processor->stepping;
}

// The length of the first word; *text is moved to it.
static size_t word_next(const char **text)
{
    *text += strspn(*text, " ");
    return strcspn(*text, " ");
}

static bool word_in(const char *list, const char *word, size_t bytes)
{
    for (size_t length = word_next(&list); length > 0; list += length, length = word_next(&list)) {
        if (length == bytes && memcmp(list, word, bytes) == 0) {
            return true;
        }
    }
    return false;
}

void attach_processor_flags(enum scn_processor processor, const char *machine, char *text_out, size_t bytes)
{
    size_t used = 0;
    text_out[0] = '\0';
    for (unsigned i = 0; i <= processors[processor].generation; i++) {
        const char *word = flags[i];
        for (size_t length = word_next(&word); length > 0; word += length, length = word_next(&word)) {
            if (used + length + 2 <= bytes && word_in(machine, word, length)) {
                const char *between = used > 0 ? " " : "";
                used += (size_t)snprintf(text_out + used, bytes - used, "%s%.*s", between, (int)length, word);
            }
        }
    }
}

// The first value of that name in the machine's /proc/cpuinfo.
static void value_find(const char *name, char *text_out, size_t bytes)
{
    char line[8192];
    FILE *file = fopen("/proc/cpuinfo", "re");
    bool found = false;
    text_out[0] = '\0';
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        found = strncmp(line, name, strlen(name)) == 0 && colon != NULL;
        if (found) {
            const char *value = colon + 1 + (colon[1] == ' ');
            snprintf(text_out, bytes, "%.*s", (int)strcspn(value, "\n"), value);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

void attach_machine_name(char *text_out, size_t bytes)
{
    value_find("model name", text_out, bytes);
}

void attach_machine_flags(char *text_out, size_t bytes)
{
    value_find("flags", text_out, bytes);
}
