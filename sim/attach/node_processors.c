// /sys/devices/system of a node: processors, their caches, memory (Linux, Documentation/ABI); and the same as a
// topology of hwloc (the XML of hwloc 2).
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/attach/node_files.h"
#include "sim/attach/processor.h"
#include "verbs-shim/attach/identity.h"

enum { PATH_BYTES = 96 };

// Cores as a mask and as a list: "3ff" and "0-9".
struct cores {
    char mask[16], list[32];
};

static struct cores cores_text(unsigned first, unsigned count)
{
    struct cores text;
    snprintf(text.mask, sizeof text.mask, "%x", ((1u << count) - 1) << first);
    if (count == 1) {
        snprintf(text.list, sizeof text.list, "%u", first);
    } else {
        snprintf(text.list, sizeof text.list, "%u-%u", first, first + count - 1);
    }
    return text;
}

// A file with cores as a mask, and one with them as a list.
static void cores_write(struct attach_tree *tree, const char *folder, const char *mask, const char *list,
                        const struct cores *cores)
{
    attach_tree_write(tree, folder, mask, "%s\n", cores->mask);
    attach_tree_write(tree, folder, list, "%s\n", cores->list);
}

static const struct cache {
    unsigned level, kib, ways; // kib 0: the last level, whose size is the processor's, and which all cores share
    const char *type;
} caches[] = {{1, ATTACH_L1_KIB, ATTACH_L1_WAYS, "Data"},
              {1, ATTACH_L1_KIB, ATTACH_L1_WAYS, "Instruction"},
              {2, ATTACH_L2_KIB, ATTACH_L2_WAYS, "Unified"},
              {3, 0, ATTACH_L3_WAYS, "Unified"}};

static void caches_make(struct attach_tree *tree, const struct attach_processor *processor, unsigned core)
{
    for (unsigned i = 0; i < sizeof caches / sizeof caches[0]; i++) {
        const struct cache *cache = &caches[i];
        struct cores shared = cache->kib != 0 ? cores_text(core, 1) : cores_text(0, processor->cores);
        unsigned kib = cache->kib != 0 ? cache->kib : processor->cache_kib;
        char folder[PATH_BYTES];
        snprintf(folder, sizeof folder, "/system/cpu/cpu%u/cache/index%u", core, i);
        attach_tree_write(tree, folder, "level", "%u\n", cache->level);
        attach_tree_write(tree, folder, "type", "%s\n", cache->type);
        attach_tree_write(tree, folder, "size", "%uK\n", kib);
        attach_tree_write(tree, folder, "coherency_line_size", "%u\n", ATTACH_CACHE_LINE);
        attach_tree_write(tree, folder, "ways_of_associativity", "%u\n", cache->ways);
        attach_tree_write(tree, folder, "number_of_sets", "%u\n", kib * 1024 / cache->ways / ATTACH_CACHE_LINE);
        cores_write(tree, folder, "shared_cpu_map", "shared_cpu_list", &shared);
    }
}

static void core_make(struct attach_tree *tree, const struct attach_processor *processor, unsigned core)
{
    struct cores own = cores_text(core, 1), all = cores_text(0, processor->cores);
    char folder[PATH_BYTES];
    snprintf(folder, sizeof folder, "/system/cpu/cpu%u/topology", core);
    attach_tree_write(tree, folder, "physical_package_id", "0\n");
    attach_tree_write(tree, folder, "die_id", "0\n");
    attach_tree_write(tree, folder, "core_id", "%u\n", core);
    cores_write(tree, folder, "core_cpus", "core_cpus_list", &own);
    cores_write(tree, folder, "thread_siblings", "thread_siblings_list", &own);
    cores_write(tree, folder, "die_cpus", "die_cpus_list", &all);
    cores_write(tree, folder, "package_cpus", "package_cpus_list", &all);
    cores_write(tree, folder, "core_siblings", "core_siblings_list", &all);
    snprintf(folder, sizeof folder, "/system/cpu/cpu%u/cpufreq", core);
    attach_tree_write(tree, folder, "base_frequency", "%u\n", processor->mhz * 1000);
    attach_tree_write(tree, folder, "cpuinfo_max_freq", "%u\n", processor->mhz * 1000);
    attach_tree_write(tree, folder, "cpuinfo_min_freq", "%u\n", processor->mhz * 1000);
    attach_tree_write(tree, folder, "scaling_cur_freq", "%u\n", processor->mhz * 1000);
    caches_make(tree, processor, core);
}

static void memory_make(struct attach_tree *tree, const struct scn_host *host, const struct cores *cores)
{
    static const char folder[] = "/system/node/node0";
    uint64_t all_kib = attach_memory_kib(host), free_kib = attach_memory_free_kib(host);
    static const char *const lists[] = {"online", "possible", "has_cpu", "has_memory", "has_normal_memory"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        attach_tree_write(tree, "/system/node", lists[i], "0\n");
    }
    cores_write(tree, folder, "cpumap", "cpulist", cores);
    attach_tree_write(tree, folder, "distance", "10\n");
    attach_tree_write(tree, folder, "meminfo",
                      "Node 0 MemTotal:       %8" PRIu64 " kB\nNode 0 MemFree:        %8" PRIu64
                      " kB\nNode 0 MemUsed:        %8" PRIu64 " kB\nNode 0 HugePages_Total:     0\n"
                      "Node 0 HugePages_Free:      0\nNode 0 HugePages_Surp:      0\n",
                      all_kib, free_kib, all_kib - free_kib);
    attach_tree_write(tree, "/system/node/node0/hugepages/hugepages-2048kB", "nr_hugepages", "0\n");
    attach_tree_write(tree, "/system/node/node0/hugepages/hugepages-2048kB", "free_hugepages", "0\n");
}

// --- hwloc ----------------------------------------------------------------------------------------------------------

struct xml {
    FILE *file;
    unsigned objects; // so far; each has a number
};

static void object_begin(struct xml *xml, const char *type, const struct cores *cores, const char *more)
{
    fprintf(xml->file,
            "<object type=\"%s\" %s cpuset=\"0x%s\" complete_cpuset=\"0x%s\" nodeset=\"0x1\" complete_nodeset=\"0x1\" "
            "gp_index=\"%u\">\n",
            type, more, cores->mask, cores->mask, ++xml->objects);
}

static void cache_begin(struct xml *xml, const char *type, const struct cores *cores, const struct cache *cache,
                        unsigned kib)
{
    char more[128];
    snprintf(more, sizeof more,
             "cache_size=\"%u\" depth=\"%u\" cache_linesize=\"%u\" cache_associativity=\"%u\" cache_type=\"%u\"",
             kib * 1024, cache->level, ATTACH_CACHE_LINE, cache->ways, cache->type[0] == 'D');
    object_begin(xml, type, cores, more);
}

static void xml_core_add(struct xml *xml, unsigned core)
{
    struct cores own = cores_text(core, 1);
    char index[32];
    snprintf(index, sizeof index, "os_index=\"%u\"", core);
    cache_begin(xml, "L2Cache", &own, &caches[2], ATTACH_L2_KIB);
    cache_begin(xml, "L1Cache", &own, &caches[0], ATTACH_L1_KIB);
    object_begin(xml, "Core", &own, index);
    object_begin(xml, "PU", &own, index);
    fprintf(xml->file, "</object></object></object></object>\n");
}

static void topology_make(struct attach_tree *tree, const struct scn_host *host, const struct cores *cores)
{
    const struct attach_processor *processor = attach_processor_of(host->processor);
    uint64_t bytes = attach_memory_kib(host) * 1024;
    char more[128], *text = NULL;
    size_t length;
    struct xml xml = {.file = open_memstream(&text, &length)};
    tree->good = tree->good && xml.file != NULL;
    if (xml.file == NULL) {
        return;
    }
    fprintf(xml.file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
                  "<topology version=\"2.0\">\n");
    snprintf(more, sizeof more, "os_index=\"0\" allowed_cpuset=\"0x%s\" allowed_nodeset=\"0x1\"", cores->mask);
    object_begin(&xml, "Machine", cores, more);
    object_begin(&xml, "Package", cores, "os_index=\"0\"");
    fprintf(xml.file, "<info name=\"CPUModel\" value=\"%s\"/>\n", processor->title);
    snprintf(more, sizeof more, "os_index=\"0\" local_memory=\"%" PRIu64 "\"", bytes);
    object_begin(&xml, "NUMANode", cores, more);
    fprintf(xml.file, "<page_type size=\"4096\" count=\"%" PRIu64 "\"/></object>\n", bytes / 4096);
    cache_begin(&xml, "L3Cache", cores, &caches[3], processor->cache_kib);
    for (unsigned i = 0; i < processor->cores; i++) {
        xml_core_add(&xml, i);
    }
    fprintf(xml.file, "</object></object></object>\n<support name=\"discovery.pu\"/>\n<support name=\"discovery.numa\"/>\n"
                  "<support name=\"discovery.numa_memory\"/>\n</topology>\n");
    tree->good = fclose(xml.file) == 0 && tree->good;
    if (tree->good) {
        attach_tree_write(tree, "", ATTACH_TOPOLOGY_FILE, "%s", text);
    }
    free(text);
}

// --- all of it ------------------------------------------------------------------------------------------------------

void attach_processor_files_make(struct attach_tree *tree, const struct scn_host *host)
{
    static const char *const lists[] = {"online", "possible", "present"};
    const struct attach_processor *processor = attach_processor_of(host->processor);
    struct cores all = cores_text(0, processor->cores);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        attach_tree_write(tree, "/system/cpu", lists[i], "%s\n", all.list);
    }
    attach_tree_write(tree, "/system/cpu", "offline", "\n");
    attach_tree_write(tree, "/system/cpu", "isolated", "\n");
    attach_tree_write(tree, "/system/cpu", "kernel_max", "%u\n", processor->cores - 1);
    for (unsigned i = 0; i < processor->cores; i++) {
        core_make(tree, processor, i);
    }
    memory_make(tree, host, &all);
    topology_make(tree, host, &all);
}
