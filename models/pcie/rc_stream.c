// Streams through the root complex: into and out of memory, and from port to port.
#include "models/pcie/rc_internal.h"

// Inputs of a port's egress: memory, then the ports.
enum { INPUT_MEMORY, INPUT_FIRST_PORT };

static bool crosses(const struct pcie_rc_port *from, const struct pcie_rc_port *to)
{
    return from->socket != to->socket;
}

// --- counters -------------------------------------------------------------------------------------------------------

static void memory_writes_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    pcie_rc_t *rc = ctx;
    rc->counters[PCIE_RC_MEMORY_WRITES] += flow_packets(bytes, packet_bytes);
    rc->counters[PCIE_RC_MEMORY_WRITE_BYTES] += bytes;
}

static void memory_reads_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    pcie_rc_t *rc = ctx;
    rc->counters[PCIE_RC_MEMORY_READS] += flow_packets(bytes, packet_bytes);
    rc->counters[PCIE_RC_MEMORY_READ_BYTES] += bytes;
}

static void peer_writes_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    ((pcie_rc_t *)ctx)->counters[PCIE_RC_PEER_WRITES] += flow_packets(bytes, packet_bytes);
}

static void peer_reads_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    ((pcie_rc_t *)ctx)->counters[PCIE_RC_PEER_READS] += flow_packets(bytes, packet_bytes);
}

static void write_lines_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    (void)packet_bytes;
    ((pcie_rc_t *)ctx)->counters[PCIE_RC_QPI_WRITE_LINES] += flow_packets(bytes, PCIE_RC_LINE_BYTES);
}

static void read_lines_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    (void)packet_bytes;
    ((pcie_rc_t *)ctx)->counters[PCIE_RC_QPI_READ_LINES] += flow_packets(bytes, PCIE_RC_LINE_BYTES);
}

// --- writes ---------------------------------------------------------------------------------------------------------

static bool memory_write(void *ctx, uint64_t address, const void *data, uint32_t bytes)
{
    pcie_rc_t *rc = ctx;
    return rc->memory->write(rc->memory_ctx, address, data, bytes);
}

static bool memory_read(void *ctx, uint64_t address, void *data, uint32_t bytes)
{
    pcie_rc_t *rc = ctx;
    return rc->memory->read(rc->memory_ctx, address, data, bytes);
}

static const void *memory_at(void *ctx, uint64_t address, uint32_t bytes)
{
    pcie_rc_t *rc = ctx;
    return rc->memory->at != NULL ? rc->memory->at(rc->memory_ctx, address, bytes) : NULL;
}

static void writes_to_port(struct pcie_rc_port *from, struct pcie_rc_port *to, struct flow_path *path, uint64_t address,
                           uint64_t bytes)
{
    pcie_rc_t *rc = from->rc;
    flow_path_count(path, peer_writes_count, rc);
    path->latency_ps += rc->config.peer_ps;
    path->input = INPUT_FIRST_PORT + from->index;
    if (crosses(from, to)) {
        flow_path_count(path, write_lines_count, rc);
        path->packet_bytes = PCIE_RC_LINE_BYTES;
        path->latency_ps += rc->config.qpi_ps + rc->config.qpi_peer_write_ps;
        flow_path_window(path, (uint64_t)rc->config.qpi_peer_lines_max * PCIE_RC_LINE_BYTES,
                         2 * rc->config.qpi_ps + rc->config.qpi_peer_write_ps);
    }
    pcie_end_stream_writes(to->end, path, 0, address, bytes);
}

void pcie_rc_writes_on(void *ctx, pcie_end_t *end, struct flow_path *path, uint64_t address, uint64_t bytes)
{
    struct pcie_rc_port *port = ctx;
    pcie_rc_t *rc = port->rc;
    (void)end;
    if (rc->memory->claims(rc->memory_ctx, address, bytes)) {
        path->latency_ps += rc->config.memory_write_ps + (pcie_rc_memory_is_far(port, address) ? rc->config.qpi_ps : 0);
        path->to = (struct flow_target){memory_write, rc, address};
        flow_path_count(path, memory_writes_count, rc);
        return;
    }
    struct pcie_rc_port *to = pcie_rc_decode(rc, address, bytes);
    if (to == NULL || to == port) {
        path->refused = true;
        return;
    }
    writes_to_port(port, to, path, address, bytes);
}

// --- reads ----------------------------------------------------------------------------------------------------------

// path->packet_bytes is the size of a request on entry, and that of a completion on return.
static void reads_from_memory(struct pcie_rc_port *port, struct flow_path *path, uint64_t address)
{
    pcie_rc_t *rc = port->rc;
    uint64_t read_ps = rc->config.memory_read_ps + (pcie_rc_memory_is_far(port, address) ? 2 * rc->config.qpi_ps : 0);
    path->latency_ps += read_ps;
    path->from = (struct flow_source){memory_read, memory_at, rc, address};
    flow_path_count(path, memory_reads_count, rc);
    flow_path_window(path, (uint64_t)rc->config.memory_reads_max * path->packet_bytes, read_ps);
    path->input = INPUT_MEMORY;
}

static void reads_from_port(struct pcie_rc_port *port, struct pcie_rc_port *to, struct flow_path *path,
                            uint64_t address, uint64_t bytes)
{
    pcie_rc_t *rc = port->rc;
    uint32_t piece = rc->config.peer_read_bytes, most = rc->config.peer_reads_max;
    uint64_t before_ps = path->latency_ps;
    flow_path_count(path, peer_reads_count, rc);
    piece = piece == 0 || piece > path->packet_bytes ? path->packet_bytes : piece;
    path->latency_ps += rc->config.peer_ps;
    if (crosses(port, to)) {
        flow_path_count(path, read_lines_count, rc);
        piece = PCIE_RC_LINE_BYTES;
        most = rc->config.qpi_peer_lines_max < most ? rc->config.qpi_peer_lines_max : most;
        path->latency_ps += rc->config.qpi_ps + rc->config.qpi_peer_read_ps;
    }
    path->packet_bytes = piece;
    pcie_end_stream_reads(to->end, path, piece, most * piece, address, bytes);
    flow_path_window(path, (uint64_t)most * piece, path->latency_ps - before_ps);
    path->latency_ps += rc->config.peer_ps + (crosses(port, to) ? rc->config.qpi_ps : 0); // the way back
    path->input = INPUT_FIRST_PORT + to->index;
}

void pcie_rc_reads_from(void *ctx, pcie_end_t *end, struct flow_path *path, uint64_t address, uint64_t bytes)
{
    struct pcie_rc_port *port = ctx;
    pcie_rc_t *rc = port->rc;
    (void)end;
    if (rc->memory->claims(rc->memory_ctx, address, bytes)) {
        reads_from_memory(port, path, address);
    } else {
        struct pcie_rc_port *to = pcie_rc_decode(rc, address, bytes);
        if (to == NULL || to == port) {
            path->refused = true;
            return;
        }
        reads_from_port(port, to, path, address, bytes);
    }
    path->packet_bytes = path->packet_bytes < rc->config.mps_bytes ? path->packet_bytes : rc->config.mps_bytes;
}
