// The requester handles the replies of the remote side.
#include <string.h>

#include "verbs-shim/tca-verbs/internal.h"

#define RETRIES_FOR_EVER 7u
#define NO_TIMEOUT_PAUSE 10u // code of a timer: 4 ms

// IBA 9.7.5.2.8, table 45: the microseconds for each code.
static const uint32_t rnr_timers_us[32] = {
    655360, 10,   20,   30,   40,    60,    80,    120,   160,   240,   320,   480,    640,    960,    1280,   1920,
    2560,   3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};

#define PS_PER_US 1000000ull

// The request of that message, if it is outstanding.
static struct tcav_request *request_of(struct tcav_qp *qp, uint32_t message)
{
    unsigned index = (message - (qp->next_message - qp->count)) & TCAV_NUMBER_MASK;
    bool under_way = index < qp->sent || (index == qp->sent && index < qp->count &&
                                          tcav_request_at(qp, index)->state != TCAV_REQUEST_QUEUED);
    return under_way ? tcav_request_at(qp, index) : NULL;
}

// Requests before this message were executed.
static void acknowledged(struct tcav_qp *qp, uint32_t message)
{
    if (tcav_before(qp->acked, message)) {
        qp->acked = message;
    }
    tcav_send_retire(qp);
}

static void nak(struct tcav_qp *qp, const struct tcav_header *header)
{
    static const enum ibv_wc_status statuses[] = {
        [TCAV_NAK_ACCESS] = IBV_WC_REM_ACCESS_ERR,
        [TCAV_NAK_INVALID] = IBV_WC_REM_INV_REQ_ERR,
        [TCAV_NAK_OPERATION] = IBV_WC_REM_OP_ERR,
    };
    acknowledged(qp, header->message);
    struct tcav_request *request = request_of(qp, header->message);
    if (request != NULL) {
        unsigned fault = header->immediate >> 8;
        tcav_qp_fail_request(qp, request, statuses[(header->immediate & 0xff) % 3],
                             fault < HCA_FAULTS ? (enum hca_fault)fault : HCA_FAULT_NONE);
    }
}

// Retransmits after a pause, up to the agreed number of times.
static void again(struct tcav_qp *qp, uint32_t message, unsigned allowed, unsigned *left, uint64_t pause_ps,
                  enum ibv_wc_status status)
{
    struct tcav_request *request = request_of(qp, message);
    if (request == NULL) {
        return;
    }
    if (allowed != RETRIES_FOR_EVER && *left == 0) {
        tcav_qp_fail_request(qp, request, status, HCA_FAULT_NONE);
        return;
    }
    *left -= allowed != RETRIES_FOR_EVER ? 1 : 0;
    qp->pd->context->repeats = allowed == RETRIES_FOR_EVER;
    tcav_send_rewind(qp, message);
    qp->resume_ps = tcav_now_ps(qp->pd->context) + pause_ps;
}

// On InfiniBand there would be no reply: the request is retransmitted at the time of the timeout, and fails after the
// last timeout (IBA 9.7.6.1.3). A timeout of 0 never ends.
static void not_ready(struct tcav_qp *qp, uint32_t message)
{
    uint64_t pause_ps = (4096 * TCAV_NS) << (qp->timeout != 0 ? qp->timeout : NO_TIMEOUT_PAUSE);
    if (qp->timeout == 0 || qp->retries_left != 0) {
        again(qp, message, qp->timeout == 0 ? RETRIES_FOR_EVER : 0, &qp->retries_left, pause_ps, IBV_WC_RETRY_EXC_ERR);
    } else if (request_of(qp, message) != NULL) {
        qp->progress_ps = tcav_now_ps(qp->pd->context) - qp->retries * pause_ps;
    }
}

static void data(struct tcav_qp *qp, struct tcav_request *request, const struct tcav_header *header, uint64_t offset,
                 const unsigned char *payload, uint32_t bytes)
{
    if (bytes != 0 && tcav_list_store(qp->pd, request->sge, request->sges, offset, payload, bytes) != 0) {
        acknowledged(qp, header->message);
        tcav_qp_fail_request(qp, request, IBV_WC_LOC_PROT_ERR, HCA_FAULT_NONE);
    }
}

static void answered(struct tcav_qp *qp, struct tcav_request *request)
{
    if (qp->state == IBV_QPS_ERR) {
        return;
    }
    request->state = TCAV_REQUEST_ANSWERED;
    qp->reads_out--;
    acknowledged(qp, (request->message + 1) & TCAV_NUMBER_MASK);
}

static void read_done(struct tcav_qp *qp, struct tcav_request *request, const struct tcav_header *header,
                      const unsigned char *payload)
{
    struct tcav_location to = tcav_list_location(qp->pd, request->sge, request->sges, 0, request->length);
    uint32_t before, bytes = tcav_move_split(to.offset, request->length, &before);
    data(qp, request, header, 0, payload, before);
    if (qp->state != IBV_QPS_ERR) {
        data(qp, request, header, before + bytes, payload + before, header->bytes - before);
    }
    answered(qp, request);
}

static bool request_response(struct tcav_qp *qp, struct tcav_request *request, const struct tcav_header *header,
                             const unsigned char *payload)
{
    bool read = tcav_send_is_read(request) && request->state == TCAV_REQUEST_SENT;
    if (header->kind == TCAV_GRANT && request->state == TCAV_REQUEST_ASKED) {
        memcpy(&request->location, payload, sizeof request->location);
        request->state = TCAV_REQUEST_GRANTED;
    } else if (header->kind == TCAV_READ_DATA && read) {
        data(qp, request, header, header->offset, payload, header->bytes);
        if (header->offset + header->bytes == request->length) {
            answered(qp, request);
        }
    } else if (header->kind == TCAV_READ_DONE && read) {
        read_done(qp, request, header, payload);
    } else if (header->kind == TCAV_ATOMIC_DATA && read) {
        data(qp, request, header, 0, payload, header->bytes);
        answered(qp, request);
    } else {
        return false;
    }
    return true;
}

bool tcav_response_packet(struct tcav_qp *qp, const struct tcav_header *header, const unsigned char *payload)
{
    if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD) {
        return false;
    }
    qp->progress_ps = 0;
    if (header->kind == TCAV_NAK) {
        nak(qp, header);
    } else if (header->kind == TCAV_RNR) {
        acknowledged(qp, header->message); // a queue pair that is not ready acknowledges nothing
        again(qp, header->message, qp->rnr_retries, &qp->rnr_retries_left,
              rnr_timers_us[header->immediate % 32] * PS_PER_US, IBV_WC_RNR_RETRY_EXC_ERR);
    } else if (header->kind == TCAV_NOT_READY) {
        not_ready(qp, header->message);
    } else {
        struct tcav_request *request = request_of(qp, header->message);
        return request != NULL && request_response(qp, request, header, payload);
    }
    return true;
}
