// The interfaces between the parts of the HCA. Private to the room.
#pragma once

#include "models/hca/objects.h"
#include "models/pcie/egress.h"
#include "models/pcie/tags.h"
#include "sim/adversary/adversary.h"
#include "sim/kernel/counter.h"
#include "sim/kernel/trace.h"

enum hca_counter {
    HCA_DOORBELLS,
    HCA_BLUEFLAMES,
    HCA_BLUEFLAMES_DROPPED,
    HCA_DOORBELLS_REFUSED,
    HCA_UNSUPPORTED,
    HCA_DMA_READS,
    HCA_DMA_READ_BYTES,
    HCA_DMA_READ_ERRORS,
    HCA_DMA_WRITES,
    HCA_DMA_WRITE_BYTES,
    HCA_WQE_FETCHES,
    HCA_PACKETS_SENT,
    HCA_PACKETS_RECEIVED,
    HCA_LOOPBACK_PACKETS,
    HCA_PORT_XMIT_PACKETS,
    HCA_PORT_XMIT_DATA,
    HCA_PORT_RCV_PACKETS,
    HCA_PORT_RCV_DATA,
    HCA_PACKETS_DISCARDED,
    HCA_DUPLICATES,
    HCA_OUT_OF_SEQUENCE,
    HCA_ACKS_SENT,
    HCA_NAKS_SENT,
    HCA_RNR_NAKS_SENT,
    HCA_TIMEOUTS,
    HCA_RETRIES,
    HCA_PACKETS_RESENT,
    HCA_OUT_OF_BUFFER,
    HCA_ATOMICS,
    HCA_ORDER_STALLS,
    HCA_COMPLETIONS,
    HCA_COMPLETION_ERRORS,
    HCA_EVENTS_RAISED,
    HCA_CQ_OVERRUNS,
    HCA_EQ_OVERFLOWS,
    HCA_EVENTS_LOST,
    HCA_WAITS, // for each of enum hca_wait: count, sum, largest
    HCA_COUNTERS = HCA_WAITS + 3 * 7
};

// The waits inside the HCA.
enum hca_wait {
    HCA_WAIT_SENDER,   // a queue pair with a packet to send, for the send engine
    HCA_WAIT_PORT,     // a complete request packet, for the port
    HCA_WAIT_RESPONSE, // a complete response packet, likewise
    HCA_WAIT_RECEIVER, // an arrived packet, for the receive engine
    HCA_WAIT_WRITE,    // a packet that writes memory, for its turn at the responder
    HCA_WAIT_ATOMIC,   // an atomic, likewise
    HCA_WAIT_READER,   // a queue pair with a response to send, for the read response engine
    HCA_WAIT_KINDS
};

// Counts one more wait, from since_ps until now. In hca.c.
void hca_wait_add(struct hca *hca, enum hca_wait wait, uint64_t since_ps);

// --- the device ----------------------------------------------------------------------------------------------------

// A request that arrives in a buffer: each thread of a process writes into a buffer of its own.
struct hca_blueflame {
    uint32_t received;
    uint8_t data[HCA_BLUEFLAME_BYTES];
};

struct hca_doorbell {
    uint32_t qpn;
    uint16_t producer;
    bool whole; // data holds the complete request
    uint32_t bytes;
    uint64_t due_ps;
    uint32_t uar;
    struct hca_doorbell *next;
    uint8_t data[HCA_BLUEFLAME_BYTES];
};

struct hca {
    sim_t *sim;
    pcie_pool_t *pool;
    ib_pool_t *packets;
    char name[64];
    struct hca_config config;
    uint64_t counters[HCA_COUNTERS];
    // endpoint
    pcie_end_t *end;
    uint64_t uar_base;
    struct pcie_egress egress; // reads that do not depend on earlier TLPs are unordered
    bool host_down;
    hca_gone_fn gone; // may be NULL
    void *gone_ctx;
    struct hca_blueflame blueflame[HCA_UAR_PAGES][HCA_BLUEFLAME_BUFFERS];
    struct hca_doorbell *doorbell_first, *doorbell_last, *doorbell_free;
    sim_event_t doorbell_event;
    // DMA
    struct hca_dma_queue dma[HCA_DMA_SOURCES];
    unsigned dma_next;
    struct hca_dma_read *dma_free, *dma_made;
    struct pcie_tags tags;               // owner: struct hca_dma_read
    uint32_t tag_offsets[PCIE_TAGS_MAX]; // of the request in its read
    // objects; numbers are indices, 0 is no object (except PDs)
    struct hca_pd *pds, *xrcds;
    struct hca_mr *mrs;
    uint32_t mr_next, mr_count;
    uint64_t uars; // one bit for each page of the UAR BAR that a process has
    uint32_t uar_users[HCA_UAR_PAGES];
    struct hca_eq *eqs;
    struct hca_cq **cqs;
    struct hca_rq **srqs;
    struct hca_qp **qps;
    struct hca_member *members; // in the order of joining
    uint32_t member_count;
    hca_joined_fn joined; // may be NULL
    void *joined_ctx;
    hca_lost_fn lost; // may be NULL
    void *lost_ctx;
    struct hca_qp *qp_free;
    uint32_t qp_next;
    uint32_t pd_capacity, xrcd_capacity, mr_capacity, cq_capacity, srq_capacity,
        qp_capacity; // of the tables, which grow
    // sending
    struct hca_qp_list senders;
    struct hca_qp *sending; // the queue pair whose packet the engine makes; NULL: idle, or it was destroyed
    sim_event_t send_event;
    struct ib_queue requests, responses; // being gathered or waiting for the port
    bool last_was_response;
    // port
    ib_end_t *port, *loop_out;
    ib_link_t *loop;
    uint16_t lid;
    sim_event_t port_event;
    struct hca_qp_list ackers;
    // receiving
    struct ib_queue arrived;
    uint64_t receive_free_ps;
    sim_event_t receive_event;
    bool receive_stalled;
    // responder
    struct hca_order *order_first, *order_last, *order_free;
    uint32_t order_count;
    uint64_t order_free_ps;
    bool order_busy; // an atomic is in progress
    uint32_t orders_issued, orders_done;
    struct hca_fence *fences; // in order
    uint64_t fence_address;   // of any event queue
    bool fence_possible;
    sim_event_t order_event;
    struct hca_qp_list readers;
    struct hca_qp *reading; // like `sending`
    sim_event_t read_event;
    // streams: the last two queue pairs with many short messages, latest first
    struct hca_beside {
        uint32_t qpn;
        uint64_t at_ps;
    } beside[2];
    uint32_t leaving; // streams of its own queue pairs
    bool ends;        // it is being destroyed
};

// --- trace points ---------------------------------------------------------------------------------------------------

extern const struct sim_trace_point hca_trace_doorbell, hca_trace_fetched, hca_trace_sent, hca_trace_received,
    hca_trace_atomic, hca_trace_completion, hca_trace_rnr, hca_trace_retry;

// --- commands (models/hca/abi/commands.def) -------------------------------------------------------------------------

#define COMMAND(id, name, object, effect, traits, operand)                                                             \
    enum sim_status hca_cmd_##name(hca_t *hca, struct hca_command *command);
#include "models/hca/abi/commands.def"
#undef COMMAND

bool hca_uar_valid(const hca_t *hca, uint32_t uar); // a process has the page

// --- endpoint.c -----------------------------------------------------------------------------------------------------

void hca_endpoint_init(hca_t *hca);
void hca_endpoint_send(hca_t *hca, pcie_tlp_t *tlp);           // keeps order within each class
void hca_endpoint_send_free_read(hca_t *hca, pcie_tlp_t *tlp); // may pass waiting writes
bool hca_endpoint_has_room(const hca_t *hca);                  // for posted writes
void hca_endpoint_fini(hca_t *hca);

// --- dma.c ----------------------------------------------------------------------------------------------------------

void hca_dma_init(hca_t *hca);
void hca_dma_fini(hca_t *hca);
void hca_dma_write(hca_t *hca, uint64_t address, const void *data, uint32_t bytes);
// target NULL: into the read's own data, which has HCA_DMA_BYTES_MAX bytes.
struct hca_dma_read *hca_dma_read(hca_t *hca, enum hca_dma_source source, uint64_t address, uint32_t bytes,
                                  uint8_t *target, void (*done)(hca_t *hca, struct hca_dma_read *read), void *owner);
void hca_dma_complete(hca_t *hca, pcie_tlp_t *completion);
void hca_dma_pump(hca_t *hca);
void hca_dma_host_down(hca_t *hca);

// --- doorbell.c -----------------------------------------------------------------------------------------------------

void hca_doorbell_init(hca_t *hca);
void hca_doorbell_fini(hca_t *hca);
void hca_doorbells_drop(hca_t *hca, uint32_t uar); // of a page that ends: those that have arrived ring nothing
void hca_doorbell_write(hca_t *hca, uint64_t offset, const uint8_t *data, uint32_t bytes);

// --- hca.c ----------------------------------------------------------------------------------------------------------

// The table with room for `index`, new elements zero. NULL: no memory, the table is unchanged.
void *hca_table_grown(void *table, uint32_t *capacity, uint32_t index, size_t element_bytes);

// --- memory_regions.c -----------------------------------------------------------------------------------------------

bool hca_pd_valid(const hca_t *hca, uint32_t pdn);
bool hca_xrcd_valid(const hca_t *hca, uint32_t xrcdn);
// Returns the region if the key is valid, in this PD, allows the access and holds the range; else NULL.
const struct hca_mr *hca_mr_check(const hca_t *hca, uint32_t key, uint32_t pdn, uint32_t access, uint64_t address,
                                  uint64_t bytes);
// Appends the range as pieces of bus memory; returns the new count.
unsigned hca_mr_pieces(const struct hca_mr *mr, uint64_t address, uint32_t bytes, struct hca_piece *pieces,
                       unsigned count, unsigned max);
// The pieces of [offset, offset + bytes) of a list of segments. false: a key or a range is wrong.
bool hca_segments_pieces(const hca_t *hca, uint32_t pdn, uint32_t access, const struct hca_wqe_data *segments,
                         unsigned segment_count, uint32_t offset, uint32_t bytes, struct hca_piece *pieces,
                         unsigned *count_out, unsigned max);
uint64_t hca_segments_bytes(const struct hca_wqe_data *segments, unsigned count);
void hca_objects_fini(hca_t *hca);

// --- completion.c ---------------------------------------------------------------------------------------------------

void hca_cq_forget(hca_t *hca, uint32_t cqn, uint32_t qpn); // those that wait for room, or are late
void hca_cq_free(struct hca_cq *cq);                        // cq may be NULL
struct hca_cq *hca_cq_find(const hca_t *hca, uint32_t cqn); // NULL: none
void hca_cq_push(hca_t *hca, uint32_t cqn, const struct hca_cqe *cqe, bool solicited);
void hca_cq_armed(hca_t *hca, uint32_t uar, uint32_t cqn, bool solicited_only, uint32_t consumer);
void hca_event_raise(hca_t *hca, uint32_t eqn, enum hca_event_type type, uint32_t object);
void hca_event_raise_all(hca_t *hca, enum hca_event_type type);
bool hca_eq_valid(const hca_t *hca, uint32_t eqn);
void hca_events_fini(hca_t *hca);

// --- qp.c, qp_states.c, flush.c -------------------------------------------------------------------------------------

struct hca_qp *hca_qp_find(const hca_t *hca, uint32_t qpn); // NULL: none
void hca_qp_list_push(struct hca_qp_list *list, struct hca_qp *qp, size_t link_offset);
void hca_qp_unlist(struct hca_qp *qp);
struct hca_qp *hca_qp_list_pop(struct hca_qp_list *list, size_t link_offset);
void hca_qp_list_remove(struct hca_qp_list *list, struct hca_qp *qp, size_t link_offset);
bool hca_qp_attr_valid(const hca_t *hca, const struct hca_qp *qp, uint32_t mask, const struct hca_qp_attr *attr);
// To the error state: all posted requests are flushed (10.3.1.5).
void hca_qp_fail(struct hca_qp *qp);
void hca_qp_send_error(struct hca_qp *qp); // UC, UD: to SQE, sends are flushed
void hca_flush_sends(struct hca_qp *qp);
void hca_flush_receives(struct hca_qp *qp);
void hca_flush_receives_resume(struct hca_qp *qp, bool fresh);
void hca_flush_drained(struct hca_qp *qp); // checks whether a QP in SQD has nothing left

// --- receive_queue.c ------------------------------------------------------------------------------------------------

void hca_rq_init(struct hca_rq *rq, hca_t *hca);
void hca_rq_reset(struct hca_rq *rq);
// The next entry. WAIT: the QP is called back through hca_responder_resume. fresh: the record was just read.
enum hca_take hca_rq_take(struct hca_rq *rq, struct hca_qp *qp, bool fresh, struct hca_receive *receive_out);
void hca_rq_forget(struct hca_rq *rq, struct hca_qp *qp);
void hca_rq_fail(struct hca_rq *rq);                          // no more entries can be taken from it
struct hca_rq *hca_srq_find(const hca_t *hca, uint32_t srqn); // NULL: none
void hca_rq_arm(struct hca_rq *rq, uint32_t limit);

// --- wqe.c ----------------------------------------------------------------------------------------------------------

void hca_wqe_fetch(struct hca_qp *qp); // if requests are missing and no fetch is in progress
void hca_wqe_store(struct hca_qp *qp, uint32_t count, const uint8_t *data, uint32_t bytes);
uint8_t *hca_wqe_raw(const struct hca_qp *qp, uint32_t count);
struct hca_request *hca_wqe_request(const struct hca_qp *qp, uint32_t count);
const struct hca_wqe_data *hca_wqe_segments(const struct hca_qp *qp, uint32_t count);

// --- sender.c -------------------------------------------------------------------------------------------------------

void hca_sender_init(hca_t *hca);
void hca_sender_kick(struct hca_qp *qp);
void hca_sender_advance(struct hca_qp *qp, uint32_t packets); // the send position, in the current request
void hca_sender_worked(void *ctx);                            // event of a queue pair: it has processed its request
void hca_sender_resume(hca_t *hca);                           // there is room for a packet again
// Starts the reads of a packet's payload.
void hca_packet_gather(hca_t *hca, ib_packet_t *packet, enum hca_dma_source source, const struct hca_piece *pieces,
                       unsigned count);
enum ib_service hca_service(enum hca_qp_type type);
void hca_packet_address(const struct hca_qp *qp, ib_packet_t *packet, unsigned opcode);

// The reason for which hca_mr_check refuses, and for which hca_segments_pieces does.
enum hca_fault hca_mr_fault(const hca_t *hca, uint32_t key, uint32_t pdn, uint32_t access, uint64_t address,
                            uint64_t bytes);
enum hca_fault hca_segments_fault(const hca_t *hca, uint32_t pdn, uint32_t access, const struct hca_wqe_data *segments,
                                  unsigned segment_count, uint32_t offset, uint32_t bytes);

// --- route.c -------------------------------------------------------------------------------------------------------

uint64_t hca_gid_prefix(void);
uint64_t hca_port_guid(const hca_t *hca);
// Writes the GRH of a datagram whose opcode and payload size are set.
void hca_route_write(const hca_t *hca, ib_packet_t *packet, const struct hca_wqe_datagram *to);
const uint8_t *hca_route_destination(const ib_packet_t *packet);     // the GID in its GRH
bool hca_route_is_here(const hca_t *hca, const ib_packet_t *packet); // its GRH is valid and addresses this port

// --- requester.c, retry.c -------------------------------------------------------------------------------------------

void hca_requester_response(struct hca_qp *qp, ib_packet_t *packet); // does not keep the packet
void hca_requester_sent(hca_t *hca, const ib_packet_t *packet);      // the last packet of a UC or UD request left
void hca_requester_complete(struct hca_qp *qp);                      // completes what is finished and next in order
void hca_requester_progress(struct hca_qp *qp, uint32_t psn);        // everything before psn is acknowledged
void hca_requester_end(struct hca_qp *qp, enum hca_status status);   // ends the oldest request; sq.fault has the reason
// Fails a request locally.
void hca_request_fail(struct hca_qp *qp, uint32_t count, enum hca_status status, enum hca_fault fault);
void hca_retry_from(struct hca_qp *qp, bool spend);
void hca_retry_rnr(struct hca_qp *qp, unsigned timer_code);
void hca_retry_progress(struct hca_qp *qp);
void hca_retry_watch(struct hca_qp *qp);    // a packet was sent: the timer runs
void hca_retry_postpone(struct hca_qp *qp); // the timer begins again
void hca_retry_init(struct hca_qp *qp);
void hca_retry_stop(struct hca_qp *qp);

// --- stream.c, stream_path.c, stream_memory.c -----------------------------------------------------------------------

bool hca_stream_fits(const struct hca_qp *qp, uint32_t packets);      // a message of so many packets may go by stream
void hca_stream_beside(struct hca_qp *qp, const ib_packet_t *packet); // it sends or receives this packet
bool hca_stream_has_beside(const struct hca_qp *qp);                  // others have short messages at present
// A packet was made, with this address and key of the responder: begins a stream behind it if possible.
void hca_stream_request(struct hca_qp *qp, uint64_t address, uint32_t rkey);
void hca_stream_response(struct hca_qp *qp, const struct hca_slot *slot);
void hca_stream_drop(struct hca_stream *stream);              // if there is one
void hca_streams_interrupt(hca_t *hca);                       // all that leave or arrive here
void hca_streams_drop(struct hca_qp *qp);                     // of requests and responses
bool hca_stream_is_expected(const struct hca_stream *stream); // its receiver has accepted all before it
void hca_stream_path(struct hca_stream *stream, struct flow_path *path, const ib_packet_t *like);
void hca_stream_arrives(void *hca, ib_end_t *end, struct flow_path *path, struct ib_stream *as_packets);
// Its memory, as far as it is contiguous. false: packets will meet an error.
bool hca_stream_begins(const struct hca_stream *stream, struct hca_piece *run_out);
bool hca_stream_lands(struct hca_qp *qp, const ib_packet_t *like, uint64_t bytes, struct hca_piece *run_out);
// Replaces the memories of the path by the stream's.
void hca_stream_memory(struct hca_stream *stream, struct flow_path *path, const ib_packet_t *like);

// --- port.c ---------------------------------------------------------------------------------------------------------

void hca_port_init(hca_t *hca);
void hca_port_fini(hca_t *hca);
void hca_port_pump(hca_t *hca);
ib_end_t *hca_port_way_out(const hca_t *hca, const ib_packet_t *packet); // NULL: no cable was ever connected

// --- receiver.c -----------------------------------------------------------------------------------------------------

void hca_receiver_init(hca_t *hca);
void hca_receiver_arrive(hca_t *hca, ib_packet_t *packet);
void hca_receiver_resume(hca_t *hca); // the room for which it may have stalled is free again
// loss.c. Counts it. qp: the destination; NULL: there is none.
void hca_lost_message(hca_t *hca, const ib_packet_t *packet, const struct hca_qp *qp, enum hca_loss_kind kind);
void hca_lost_completion(const struct hca_cq *cq, uint32_t qpn);

void hca_receiver_discard(hca_t *hca, ib_packet_t *packet);

// --- responder.c, acknowledge.c -------------------------------------------------------------------------------------

// Keeps the packet.
void hca_responder_request(struct hca_qp *qp, ib_packet_t *packet);
void hca_responder_resume(struct hca_qp *qp, bool fresh);
uint32_t hca_remote_pdn(const struct hca_qp *qp); // the protection domain of regions that the peer names
// A duplicate request (9.7.5.1.4). Reads are executed again from the requested point, atomics return their old answer;
// writes and sends are acknowledged again once everything accepted is in memory.
void hca_responder_duplicate(struct hca_qp *qp, const ib_packet_t *packet);
void hca_responder_acknowledge(struct hca_qp *qp, uint32_t psn);
void hca_responder_ack_list(struct hca_qp *qp); // if one is pending and no response must go before it
bool hca_responder_ack_may_leave(const struct hca_qp *qp);
ib_packet_t *hca_responder_ack_make(const struct hca_qp *qp);
void hca_responder_ack_left(struct hca_qp *qp);
void hca_responder_ack_last(struct hca_qp *qp); // the queue pair ends: a pending acknowledge leaves at once
void hca_responder_nak(struct hca_qp *qp, uint8_t syndrome, uint32_t psn);
// The peer gets a NAK for psn, and then the queue pair fails; fatal: also raises an event, because no completion
// reports it.
void hca_responder_refuse(struct hca_qp *qp, enum ib_nak nak, enum hca_fault fault, uint32_t psn);
void hca_responder_fatal(struct hca_qp *qp, enum ib_nak nak, enum hca_fault fault, enum hca_event_type event,
                         uint32_t psn);
// The same for a request that was accepted and fails during execution: requests accepted after it are not answered.
void hca_responder_break(struct hca_qp *qp, enum ib_nak nak, enum hca_fault fault, enum hca_event_type event,
                         uint32_t psn);
void hca_responder_reset(struct hca_qp *qp);

// --- adversity.c ----------------------------------------------------------------------------------------------------

void hca_adversity_init(struct hca_qp *qp);
void hca_adversity_stop(struct hca_qp *qp);
static inline uint64_t hca_late_ps(const hca_t *hca, enum adversary_purpose purpose)
{
    return adversary_late_ps(hca->config.adversary, purpose);
}
void hca_adversity_damage(struct hca_qp *qp, ib_packet_t *packet); // may damage this request packet, or its answer
bool hca_adversity_holds(struct hca_qp *qp);                       // delays an arrival; then calls hca_responder_resume

// --- multicast.c ----------------------------------------------------------------------------------------------------

void hca_groups_forget(hca_t *hca, uint32_t qpn); // of a destroyed queue pair
bool hca_group_has_members(const hca_t *hca, const ib_packet_t *packet);
bool hca_group_receives(const struct hca_member *member, const ib_packet_t *packet);

// --- order.c --------------------------------------------------------------------------------------------------------

void hca_order_init(hca_t *hca);
void hca_order_fini(hca_t *hca);
struct hca_order *hca_order_take(hca_t *hca); // zeroed except for pieces and cqe
void hca_order_push(hca_t *hca, struct hca_order *order);
bool hca_order_has_room(const hca_t *hca);
// fence.c: called when an access has ended.
void hca_fences_check(hca_t *hca);
void hca_order_pump(hca_t *hca);

// --- reader.c -------------------------------------------------------------------------------------------------------

void hca_reader_init(hca_t *hca);
void hca_reader_qp_init(struct hca_qp *qp);
void hca_reader_qp_stop(struct hca_qp *qp);
void hca_reader_kick(struct hca_qp *qp);
void hca_reader_resume(hca_t *hca);
