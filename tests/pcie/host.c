#include "host.h"

#include <stdlib.h>
#include <string.h>

#include "tests/shim/test.h"

// --- memory --------------------------------------------------------------------------------------------------------

static bool memory_claims(void *ctx, uint64_t address, uint64_t bytes)
{
    (void)ctx;
    return address >= HOST_MEMORY_BASE && address + bytes <= HOST_MEMORY_BASE + HOST_BYTES;
}

static bool memory_read(void *ctx, uint64_t address, void *data, uint32_t bytes)
{
    struct host *host = ctx;
    if (host->lost_after != 0 && host->reads >= host->lost_after) {
        return false;
    }
    host->reads++;
    memcpy(data, host->memory + (address - HOST_MEMORY_BASE), bytes);
    return true;
}

static bool memory_write(void *ctx, uint64_t address, const void *data, uint32_t bytes)
{
    struct host *host = ctx;
    if (host->lost_after != 0 && host->writes >= host->lost_after) {
        return false;
    }
    if (host->writes < HOST_LOG_MAX) {
        host->write_log[host->writes] = (struct host_access){sim_now_ps(host->sim), address, bytes};
    }
    host->writes++;
    memcpy(host->memory + (address - HOST_MEMORY_BASE), data, bytes);
    return true;
}

static const struct pcie_memory_ops MEMORY_OPS = {.claims = memory_claims, .read = memory_read, .write = memory_write};

// --- devices -------------------------------------------------------------------------------------------------------

static void queue_put(pcie_tlp_t ***end, pcie_tlp_t *tlp)
{
    tlp->next = NULL;
    **end = tlp;
    *end = &tlp->next;
}

// Offers in order, but continues with the other classes when one is refused. A device must do so, or two devices could
// wait for each other: only posted writes may not be passed.
static void device_ready(void *ctx, pcie_end_t *end)
{
    struct device *device = ctx;
    bool refused[PCIE_CLASS_COUNT] = {false};
    pcie_tlp_t **link = &device->out;
    while (*link != NULL && !refused[PCIE_POSTED]) {
        pcie_tlp_t *tlp = *link, *next = tlp->next;
        enum pcie_class class = pcie_tlp_class(tlp);
        if (!refused[class] && pcie_end_offer(end, tlp)) {
            *link = next;
        } else {
            refused[class] = true;
            link = &tlp->next;
        }
    }
    link = &device->out;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    device->out_end = link;
}

void device_offer(struct device *device, pcie_tlp_t *tlp)
{
    queue_put(&device->out_end, tlp);
    device_ready(device, device->end);
}

static void answer(struct device *device, const pcie_tlp_t *request)
{
    uint32_t offset = (uint32_t)(pcie_tlp_first_byte(request) - HOST_WINDOW(device->index));
    uint32_t total = pcie_tlp_byte_count(request), done = 0;
    while (device->answer_bytes > 0 && done < total) {
        uint32_t most = device->answer_bytes - ((offset + done) & 3); // all but the last one end with a whole DW
        uint32_t bytes = total - done < most ? total - done : most;
        device_offer(device, pcie_tlp_completion(request, 0x100, done, bytes, device->memory + offset + done));
        done += bytes;
    }
}

static void write_take(struct device *device, pcie_tlp_t *tlp)
{
    uint64_t address = pcie_tlp_first_byte(tlp);
    uint32_t bytes = pcie_tlp_byte_count(tlp);
    if (device->writes < HOST_LOG_MAX) {
        device->log[device->writes] = (struct host_access){sim_now_ps(device->host->sim), address, bytes};
    }
    device->writes++;
    memcpy(device->memory + (address - HOST_WINDOW(device->index)), pcie_tlp_data(tlp) + (address & 3), bytes);
}

static void completion_take(struct device *device, pcie_tlp_t *tlp)
{
    EXPECT_EQ(tlp->requester, 0x100 + device->index);
    ASSERT_LT(tlp->tag, HOST_TAGS);
    struct device_read *read = &device->reads[tlp->tag];
    uint32_t bytes = pcie_tlp_byte_count(tlp);
    read->status = tlp->cpl_status;
    read->last_ps = sim_now_ps(device->host->sim);
    read->first_ps = read->completions == 0 ? read->last_ps : read->first_ps;
    read->completion_bytes[read->completions++] = bytes;
    if (tlp->cpl_status != PCIE_CPL_SC) {
        return;
    }
    // In order: the bytes left give the position of these data.
    EXPECT_EQ(tlp->byte_count, read->bytes - read->received_bytes);
    EXPECT_EQ(tlp->lower_address, (read->address + read->received_bytes) & 0x7f);
    memcpy(read->data + read->received_bytes, pcie_tlp_data(tlp) + (tlp->lower_address & 3), bytes);
    read->received_bytes += bytes;
}

static void device_receive(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp)
{
    struct device *device = ctx;
    switch (tlp->kind) {
    case PCIE_TLP_MWR:
        write_take(device, tlp);
        if (device->holds_writes) {
            queue_put(&device->held_end, tlp);
            return;
        }
        break;
    case PCIE_TLP_MRD:
        if (device->holds_reads) {
            pcie_end_release(end, tlp);
            tlp->next = device->asked;
            device->asked = tlp;
            return;
        }
        answer(device, tlp);
        break;
    case PCIE_TLP_CPL:
    case PCIE_TLP_CPLD:
        completion_take(device, tlp);
        break;
    }
    pcie_end_release(end, tlp);
    pcie_tlp_unref(tlp);
}

static const struct pcie_end_ops DEVICE_OPS = {.receive = device_receive, .ready = device_ready};

void device_release_writes(struct device *device)
{
    while (device->held != NULL) {
        pcie_tlp_t *tlp = device->held;
        device->held = tlp->next;
        pcie_end_release(device->end, tlp);
        pcie_tlp_unref(tlp);
    }
    device->held_end = &device->held;
}

void device_answer_backwards(struct device *device)
{
    while (device->asked != NULL) {
        pcie_tlp_t *tlp = device->asked;
        device->asked = tlp->next;
        answer(device, tlp);
        pcie_tlp_unref(tlp);
    }
}

void device_write(struct device *device, uint64_t address, uint32_t bytes, const void *data)
{
    uint16_t id = (uint16_t)(0x100 + device->index);
    device_offer(device, pcie_tlp_write(device->host->pool, id, address, bytes, data));
}

void device_read(struct device *device, uint8_t tag, uint64_t address, uint32_t bytes)
{
    uint16_t id = (uint16_t)(0x100 + device->index);
    memset(&device->reads[tag], 0, sizeof device->reads[tag]);
    device->reads[tag].address = address;
    device->reads[tag].bytes = bytes;
    device_offer(device, pcie_tlp_read(device->host->pool, id, tag, address, bytes));
}

// --- the host ------------------------------------------------------------------------------------------------------

struct host_config host_config(void)
{
    const struct pcie_end_config end = {.headers = {64, 64, 64}, .data = {512, 512, 512}, .tx_queue_tlps = 16};
    return (struct host_config){
        .rc = {.memory_read_ps = 200000,
               .memory_write_ps = 100000,
               .memory_reads_max = 16,
               .rcb_bytes = 64,
               .mps_bytes = 256,
               .peer_ps = 50000,
               .peer_reads_max = 4},
        .link = {.generation = 2, .lanes = 8, .mps_bytes = 256, .ends = {end, end}},
    };
}

static void device_init(struct host *host, unsigned index, const struct pcie_link_config *config)
{
    static const char *const NAMES[HOST_DEVICES] = {"link0", "link1", "link2"};
    struct device *device = &host->devices[index];
    device->host = host;
    device->index = index;
    device->answer_bytes = 256;
    device->out_end = &device->out;
    device->held_end = &device->held;
    EXPECT_EQ(pcie_link_create(host->sim, host->pool, NAMES[index], config, &device->link), SIM_OK);
    device->end = pcie_link_end(device->link, 1);
    pcie_end_attach(device->end, &DEVICE_OPS, device);
    unsigned port = pcie_rc_add_port(host->rc, pcie_link_end(device->link, 0));
    EXPECT_EQ(pcie_rc_add_window(host->rc, port, HOST_WINDOW(index), HOST_BYTES), SIM_OK);
}

struct host *host_create(const struct host_config *config)
{
    struct host *host = calloc(1, sizeof *host);
    const struct sim_config sim_config = {.seed = 1};
    if (sim_create(&sim_config, &host->sim) != SIM_OK || pcie_pool_create(&host->pool) != SIM_OK ||
        pcie_rc_create(host->sim, host->pool, "rc", &config->rc, &MEMORY_OPS, host, &host->rc) != SIM_OK) {
        sim_panic("host", "the root complex of a test cannot be created");
    }
    for (unsigned i = 0; i < HOST_DEVICES; i++) {
        device_init(host, i, &config->link);
    }
    return host;
}

void host_destroy(struct host *host)
{
    for (unsigned i = 0; i < HOST_DEVICES; i++) {
        EXPECT_NULL(host->devices[i].out);
        device_release_writes(&host->devices[i]);
    }
    pcie_rc_destroy(host->rc);
    for (unsigned i = 0; i < HOST_DEVICES; i++) {
        pcie_link_destroy(host->devices[i].link);
    }
    EXPECT_EQ(pcie_pool_destroy(host->pool), 0);
    sim_destroy(host->sim);
    free(host);
}

uint64_t host_counter(const struct host *host, const char *name)
{
    bool found = false;
    uint64_t value = sim_counter_value(host->sim, "rc", name, &found);
    EXPECT_TRUE(found);
    return value;
}
