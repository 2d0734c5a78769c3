#include "preset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/status.h"

enum { ENTRIES_MAX = 64, NAME_BYTES = 64 };

struct entry {
    char key[NAME_BYTES], value[NAME_BYTES];
};
struct values {
    struct entry entries[ENTRIES_MAX];
    unsigned count;
};

static struct entry *entry_of(struct values *values, const char *key)
{
    for (unsigned i = 0; i < values->count; i++) {
        if (strcmp(values->entries[i].key, key) == 0) {
            return &values->entries[i];
        }
    }
    struct entry *entry = &values->entries[values->count++];
    snprintf(entry->key, sizeof entry->key, "%s", key);
    return entry;
}

// Lines are "key: {value: V, ...", "key:" followed by "value: V", or "preset: NAME" of what this one builds upon.
static void values_load(struct values *values, const char *kind, const char *name)
{
    char path[512], line[512], key[NAME_BYTES] = "", word[NAME_BYTES];
    snprintf(path, sizeof path, "%s/configs/%s/%s.yaml", TCASIM_SOURCE_DIR, kind, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        sim_panic("preset", "no file %s", path);
    }
    while (fgets(line, sizeof line, file) != NULL) {
        const char *value = strstr(line, "value: ");
        if (line[strspn(line, " ")] == '#') {
            continue;
        }
        if (sscanf(line, "preset: %63[a-z0-9-]", word) == 1) {
            values_load(values, kind, word);
        } else if (sscanf(line, " %63[a-z_0-9]:", word) == 1 && strcmp(word, "value") != 0) {
            strcpy(key, word);
        }
        if (value != NULL) {
            (void)sscanf(value, "value: %63[^,}\n]", entry_of(values, key)->value);
        }
    }
    fclose(file);
}

// Picoseconds, bytes, bytes per microsecond, or a bare number.
static uint64_t number(struct values *values, const char *key)
{
    static const struct {
        const char *unit;
        uint64_t factor;
    } UNITS[] = {{"ns", 1000}, {"us", 1000000}, {"B", 1}, {"GiB", 1ull << 30}, {"GB/s", 1000}, {"", 1}};
    const char *text = entry_of(values, key)->value;
    text += strncmp(text, "Gen", 3) == 0 ? 3 : text[0] == 'x';
    char *unit;
    uint64_t value = strtoull(text, &unit, 10);
    unit += strspn(unit, " ");
    for (unsigned i = 0; i < sizeof UNITS / sizeof *UNITS && unit != text; i++) {
        if (strcmp(unit, UNITS[i].unit) == 0) {
            return value * UNITS[i].factor;
        }
    }
    sim_panic("preset", "key %s has no value", key);
}

struct hca_config preset_hca(const char *name)
{
    struct values *v = calloc(1, sizeof *v);
    values_load(v, "hca", name);
    const struct hca_config config = {
        .pcie_generation = (uint32_t)number(v, "generation"),
        .pcie_lanes = (uint32_t)number(v, "lanes"),
        .pcie_tx_ps = number(v, "pcie_tx"),
        .pcie_rx_ps = number(v, "pcie_rx"),
        .mps_bytes = (uint32_t)number(v, "mps"),
        .mrrs_bytes = (uint32_t)number(v, "mrrs"),
        .read_tags = (uint32_t)number(v, "read_tags"),
        .write_tlps = (uint32_t)number(v, "write_buffer_tlps"),
        .requester_id = 0x0300,
        .port_ps_per_byte = (uint32_t)(1000000 / number(v, "rate")),
        .port_gap_bytes = (uint32_t)number(v, "packet_gap"),
        .port_tx_ps = number(v, "port_tx"),
        .port_rx_ps = number(v, "port_rx"),
        .port_buffer_blocks = (uint32_t)(number(v, "receive_buffer") / IB_BLOCK_BYTES),
        .max_mtu_bytes = (uint32_t)number(v, "max_mtu"),
        .active_mtu_bytes = (uint32_t)number(v, "active_mtu"),
        .doorbell_ps = number(v, "doorbell"),
        .send_request_ps = number(v, "send_request"),
        .send_packet_ps = number(v, "send_packet"),
        .receive_packet_ps = number(v, "receive_packet"),
        .read_packet_ps = number(v, "read_packet"),
        .place_ps = number(v, "place"),
        .atomic_ps = number(v, "atomic"),
        .prefetch_requests = (uint32_t)number(v, "prefetch_requests"),
        .gather_packets = (uint32_t)number(v, "gather_packets"),
        .order_entries = (uint32_t)number(v, "order_entries"),
        .window_packets = (uint32_t)number(v, "window_packets"),
        .ack_every_packets = (uint32_t)number(v, "ack_every_packets"),
        .max_qp = 256,
        .max_cq = 256,
        .max_srq = 64,
        .max_pd = 64,
        .max_mr = 1024,
        .max_eq = 64,
        .max_entries = 16384,
        .max_cq_entries = 16384,
        .max_inline_bytes = (uint32_t)number(v, "max_inline"),
        .responder_reads = (uint32_t)number(v, "responder_reads"),
        .initiator_reads = (uint32_t)number(v, "initiator_reads"),
        .blueflame_all = strcmp(entry_of(v, "blueflame")->value, "all") == 0,
    };
    free(v);
    return config;
}

struct preset_host preset_host(const char *name, const struct hca_config *hca)
{
    struct values *v = calloc(1, sizeof *v);
    values_load(v, "host", name);
    const struct preset_host host = {
        .rc = {.memory_read_ps = number(v, "memory_read"),
               .memory_write_ps = number(v, "memory_write"),
               .memory_reads_max = (uint32_t)number(v, "memory_reads_max"),
               .rcb_bytes = (uint32_t)number(v, "rcb"),
               .mps_bytes = hca->mps_bytes,
               .peer_ps = number(v, "peer"),
               .peer_reads_max = (uint32_t)number(v, "peer_reads_max")},
        .core = {.store_wc_ps = number(v, "store_wc"),
                 .flush_wc_ps = number(v, "flush_wc"),
                 .store_uc_ps = number(v, "store_uc"),
                 .load_uc_ps = number(v, "load_uc"),
                 .load_ps = number(v, "load"),
                 .poll_ps = number(v, "poll"),
                 .timestamp_ps = number(v, "timestamp"),
                 .call_ps = number(v, "call"),
                 .copy_bytes_per_us = number(v, "copy")},
        .root_port = {.tx_ps = number(v, "root_port_tx"),
                      .rx_ps = number(v, "root_port_rx"),
                      .headers = {(uint32_t)number(v, "posted_header_credits"),
                                  (uint32_t)number(v, "nonposted_header_credits"), PCIE_CREDITS_INFINITE},
                      .data = {(uint32_t)number(v, "posted_data_credits"), PCIE_CREDITS_INFINITE,
                               PCIE_CREDITS_INFINITE},
                      .tx_queue_tlps = 64},
        .interrupt_ps = number(v, "interrupt"),
    };
    free(v);
    return host;
}
