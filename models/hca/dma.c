// DMA: posted writes in order, and reads under a bounded number of tags whose completions come in any order.
//
// Reads of four kinds take turns, request by request: queues (requests, receive entries, records), gathering of data to
// send, read responses, and atomics.
#include <stdlib.h>
#include <string.h>

#include "models/hca/internal.h"

enum { PAGE_BYTES = 4096 };

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void hca_dma_init(hca_t *hca)
{
    pcie_tags_init(&hca->tags, hca->config.requester_id, 0, hca->config.read_tags, 8);
}

void hca_dma_fini(hca_t *hca)
{
    while (hca->dma_made != NULL) {
        struct hca_dma_read *read = hca->dma_made;
        hca->dma_made = read->made;
        free(read);
    }
}

// --- writes --------------------------------------------------------------------------------------------------------

void hca_dma_write(hca_t *hca, uint64_t address, const void *data, uint32_t bytes)
{
    const uint8_t *from = data;
    hca->counters[HCA_DMA_WRITE_BYTES] += bytes;
    while (bytes > 0) {
        // Length counts whole DWs, so a packet that begins within a DW carries less.
        uint32_t most = hca->config.mps_bytes - (uint32_t)(address % 4);
        uint32_t part = smaller(smaller(bytes, most), PAGE_BYTES - (uint32_t)(address % PAGE_BYTES));
        hca->counters[HCA_DMA_WRITES]++;
        hca_endpoint_send(hca, pcie_tlp_write(hca->pool, hca->config.requester_id, address, part, from));
        address += part;
        from += part;
        bytes -= part;
    }
}

// --- reads ---------------------------------------------------------------------------------------------------------

static struct hca_dma_read *read_take(hca_t *hca)
{
    struct hca_dma_read *read = hca->dma_free;
    if (read != NULL) {
        hca->dma_free = read->next;
        return read;
    }
    read = malloc(sizeof *read);
    if (read == NULL) {
        sim_panic(hca->name, "no memory for a DMA read");
    }
    read->made = hca->dma_made;
    hca->dma_made = read;
    return read;
}

struct hca_dma_read *hca_dma_read(hca_t *hca, enum hca_dma_source source, uint64_t address, uint32_t bytes,
                                  uint8_t *target, void (*done)(hca_t *hca, struct hca_dma_read *read), void *owner)
{
    struct hca_dma_read *read = read_take(hca);
    read->next = NULL;
    read->done = done;
    read->owner = owner;
    read->generation = 0;
    read->detail = 0;
    read->address = address;
    read->bytes = bytes;
    read->issued = 0;
    read->answered = 0;
    read->failed = false;
    read->target = target == NULL ? read->data : target;
    if (bytes == 0 || (target == NULL && bytes > HCA_DMA_BYTES_MAX)) {
        sim_panic(hca->name, "a DMA read of %u bytes", bytes);
    }
    struct hca_dma_queue *queue = &hca->dma[source];
    if (queue->first == NULL) {
        queue->first = read;
    } else {
        queue->last->next = read;
    }
    queue->last = read;
    hca_dma_pump(hca);
    return read;
}

static void read_end(hca_t *hca, struct hca_dma_read *read)
{
    hca->counters[HCA_DMA_READ_ERRORS] += read->failed;
    read->done(hca, read);
    read->next = hca->dma_free;
    hca->dma_free = read;
}

// Issues one request of the oldest read of a kind. The last request removes the read from its queue.
static void request_issue(hca_t *hca, struct hca_dma_queue *queue)
{
    struct hca_dma_read *read = queue->first;
    uint64_t address = read->address + read->issued;
    uint32_t part = smaller(smaller(read->bytes - read->issued, hca->config.mrrs_bytes - (uint32_t)(address % 4)),
                            PAGE_BYTES - (uint32_t)(address % PAGE_BYTES));
    uint8_t tag = pcie_tags_take(&hca->tags, read, part);
    hca->tag_offsets[tag] = read->issued;
    read->issued += part;
    if (read->issued == read->bytes) {
        queue->first = read->next;
    }
    hca->counters[HCA_DMA_READS]++;
    hca->counters[HCA_DMA_READ_BYTES] += part;
    pcie_tlp_t *tlp = pcie_tlp_read(hca->pool, hca->config.requester_id, tag, address, part);
    // 9.5: a remote read returns what earlier requests wrote. Fetches of own requests and of their data have no such
    // order.
    bool free = queue == &hca->dma[HCA_DMA_QUEUES] || queue == &hca->dma[HCA_DMA_GATHER];
    (free ? hca_endpoint_send_free_read : hca_endpoint_send)(hca, tlp);
}

void hca_dma_pump(hca_t *hca)
{
    if (hca->host_down) {
        hca_dma_host_down(hca);
        return;
    }
    unsigned idle = 0;
    while (idle < HCA_DMA_SOURCES && pcie_tags_free(&hca->tags)) {
        struct hca_dma_queue *queue = &hca->dma[hca->dma_next];
        hca->dma_next = (hca->dma_next + 1) % HCA_DMA_SOURCES;
        if (queue->first == NULL) {
            idle++;
            continue;
        }
        idle = 0;
        request_issue(hca, queue);
    }
}

static void tag_free(hca_t *hca, uint32_t tag)
{
    struct hca_dma_read *read = hca->tags.list[tag].owner;
    read->answered += hca->tags.list[tag].bytes;
    pcie_tags_give(&hca->tags, tag);
    if (read->answered == read->bytes) {
        read_end(hca, read);
    }
}

void hca_dma_complete(hca_t *hca, pcie_tlp_t *completion)
{
    uint32_t tag, at, bytes;
    enum pcie_answer answer = pcie_tags_answer(&hca->tags, completion, &tag, &at, &bytes);
    struct hca_dma_read *read = hca->tags.list[tag].owner;
    if (answer == PCIE_ANSWER_UNEXPECTED) {
        hca->counters[HCA_UNSUPPORTED]++;
        return;
    }
    if (answer == PCIE_ANSWER_FAILED) {
        read->failed = true;
    } else {
        memcpy(read->target + hca->tag_offsets[tag] + at, pcie_tlp_data(completion) + (completion->lower_address & 3),
               bytes);
    }
    if (answer != PCIE_ANSWER_PART) {
        tag_free(hca, tag);
        hca_dma_pump(hca);
    }
}

// The host does not answer any more: every read fails, now and later.
void hca_dma_host_down(hca_t *hca)
{
    for (uint32_t tag = 0; tag < hca->config.read_tags; tag++) {
        struct hca_dma_read *read = hca->tags.list[tag].owner;
        if (read != NULL) {
            read->failed = true;
            tag_free(hca, tag);
        }
    }
    for (unsigned source = 0; source < HCA_DMA_SOURCES; source++) {
        while (hca->dma[source].first != NULL) {
            struct hca_dma_read *read = hca->dma[source].first;
            hca->dma[source].first = read->next;
            read->failed = true;
            read_end(hca, read);
        }
    }
}
