// Names and sentences. The numbers come from programs, so every value is possible.
#include <inttypes.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "sim/observe/internal.h"
#include "verbs-shim/ibverbs/opcodes.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static const char *name_of(const char *const *names, size_t count, uint64_t value)
{
    return value < count && names[value] != NULL ? names[value] : "unknown";
}

const char *observe_call_name(unsigned call)
{
    static const char *const names[] = {
#define CALL(name, text, member) text,
        JOURNAL_CALLS(CALL)
#undef CALL
    };
    return name_of(names, COUNT(names), call);
}

const char *observe_state_name(uint64_t state)
{
    static const char *const names[] = {
        [IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR", [IBV_QPS_RTS] = "RTS",
        [IBV_QPS_SQD] = "SQD",     [IBV_QPS_SQE] = "SQE",   [IBV_QPS_ERR] = "ERR"};
    return name_of(names, COUNT(names), state);
}

// Operations that no device here has.
static const char *opcode_of_others(uint64_t opcode)
{
    switch (opcode) {
    case IBV_WR_LOCAL_INV:
        return "LOCAL_INV";
    case IBV_WR_BIND_MW:
        return "BIND_MW";
    case IBV_WR_SEND_WITH_INV:
        return "SEND_WITH_INV";
    case IBV_WR_TSO:
        return "TSO";
    default:
        return "unknown";
    }
}

const char *observe_opcode_name(uint64_t opcode)
{
    const struct ibverbs_opcode *known = opcode <= UINT32_MAX ? ibverbs_opcode((enum ibv_wr_opcode)opcode) : NULL;
    return known != NULL ? known->name : opcode_of_others(opcode);
}

// Operations with and without immediate data have the same completion.
static const struct {
    uint64_t opcode; // IBV_WC_*
    unsigned traits; // HCA_*
    const char *name;
} completions[] = {
#define OPCODE(id, verb, completion, packet, transports, operands)                                                     \
    {IBV_WC_##completion, (transports) | (operands), #completion},
#include "models/hca/abi/opcodes.def"
#undef OPCODE
    {IBV_WC_RECV, 0, "RECV"},
    {IBV_WC_RECV_RDMA_WITH_IMM, 0, "RECV_RDMA_WITH_IMM"},
};

const char *observe_wc_opcode_name(uint64_t opcode)
{
    for (size_t i = 0; i < COUNT(completions); i++) {
        if (completions[i].opcode == opcode) {
            return completions[i].name;
        }
    }
    return "unknown";
}

bool observe_wc_opcode_has(uint64_t opcode, unsigned traits)
{
    bool has = false;
    for (size_t i = 0; i < COUNT(completions); i++) {
        has = has || (completions[i].opcode == opcode && (completions[i].traits & traits) != 0);
    }
    return has;
}

const char *observe_status_name(uint64_t status)
{
    static const char *const names[] = {
        [IBV_WC_SUCCESS] = "SUCCESS",
        [IBV_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
        [IBV_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
        [IBV_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
        [IBV_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
        [IBV_WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
        [IBV_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
        [IBV_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
        [IBV_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
        [IBV_WC_REM_OP_ERR] = "REM_OP_ERR",
        [IBV_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
        [IBV_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
        [IBV_WC_GENERAL_ERR] = "GENERAL_ERR",
    };
    return name_of(names, COUNT(names), status);
}

const char *observe_qp_type_name(uint64_t type)
{
    static const char *const names[] = {[IBV_QPT_RC] = "RC",
                                        [IBV_QPT_UC] = "UC",
                                        [IBV_QPT_UD] = "UD",
                                        [IBV_QPT_RAW_PACKET] = "RAW_PACKET",
                                        [IBV_QPT_XRC_SEND] = "XRC_SEND",
                                        [IBV_QPT_XRC_RECV] = "XRC_RECV"};
    return name_of(names, COUNT(names), type);
}

// --- lists of flags -------------------------------------------------------------------------------------------------

struct flag {
    uint32_t bit;
    const char *name;
};

static void flags_print(const struct flag *flags, size_t count, uint64_t mask, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && used < room; i++) {
        if ((mask & flags[i].bit) != 0) {
            used += (size_t)snprintf(text + used, room - used, "%s%s", used == 0 ? "" : ", ", flags[i].name);
        }
    }
}

void observe_access_print(uint32_t access, char *text, size_t room)
{
    static const struct flag flags[] = {{IBV_ACCESS_LOCAL_WRITE, "local write"},
                                        {IBV_ACCESS_REMOTE_WRITE, "remote write"},
                                        {IBV_ACCESS_REMOTE_READ, "remote read"},
                                        {IBV_ACCESS_REMOTE_ATOMIC, "remote atomic"}};
    flags_print(flags, COUNT(flags), access, text, room);
    if (text[0] == '\0') {
        snprintf(text, room, "local read only");
    }
}

static void attributes_print(uint64_t mask, char *text, size_t room)
{
    static const struct flag flags[] = {
        {IBV_QP_STATE, "IBV_QP_STATE"},
        {IBV_QP_CUR_STATE, "IBV_QP_CUR_STATE"},
        {IBV_QP_ACCESS_FLAGS, "IBV_QP_ACCESS_FLAGS"},
        {IBV_QP_PKEY_INDEX, "IBV_QP_PKEY_INDEX"},
        {IBV_QP_PORT, "IBV_QP_PORT"},
        {IBV_QP_QKEY, "IBV_QP_QKEY"},
        {IBV_QP_AV, "IBV_QP_AV"},
        {IBV_QP_PATH_MTU, "IBV_QP_PATH_MTU"},
        {IBV_QP_TIMEOUT, "IBV_QP_TIMEOUT"},
        {IBV_QP_RETRY_CNT, "IBV_QP_RETRY_CNT"},
        {IBV_QP_RNR_RETRY, "IBV_QP_RNR_RETRY"},
        {IBV_QP_RQ_PSN, "IBV_QP_RQ_PSN"},
        {IBV_QP_MAX_QP_RD_ATOMIC, "IBV_QP_MAX_QP_RD_ATOMIC"},
        {IBV_QP_ALT_PATH, "IBV_QP_ALT_PATH"},
        {IBV_QP_MIN_RNR_TIMER, "IBV_QP_MIN_RNR_TIMER"},
        {IBV_QP_SQ_PSN, "IBV_QP_SQ_PSN"},
        {IBV_QP_MAX_DEST_RD_ATOMIC, "IBV_QP_MAX_DEST_RD_ATOMIC"},
        {IBV_QP_PATH_MIG_STATE, "IBV_QP_PATH_MIG_STATE"},
        {IBV_QP_CAP, "IBV_QP_CAP"},
        {IBV_QP_DEST_QPN, "IBV_QP_DEST_QPN"},
        {IBV_QP_RATE_LIMIT, "IBV_QP_RATE_LIMIT"},
    };
    flags_print(flags, COUNT(flags), mask, text, room);
}

// --- quantities -----------------------------------------------------------------------------------------------------

void observe_bytes_print(uint64_t bytes, char *text, size_t room)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    unsigned unit = 0;
    while (unit + 1 < COUNT(units) && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, room, "%" PRIu64 " %s", bytes, units[unit]);
}

void observe_time_print(uint64_t ps, char *text, size_t room)
{
    static const struct {
        uint64_t ps;
        const char *name;
    } units[] = {{SIM_PS_PER_MS * 1000, "s"}, {SIM_PS_PER_MS, "ms"}, {SIM_PS_PER_US, "us"}, {SIM_PS_PER_NS, "ns"}};
    for (size_t i = 0; i < COUNT(units); i++) {
        if (ps >= units[i].ps) {
            uint64_t thousandths = (ps + units[i].ps / 2000) / (units[i].ps / 1000);
            snprintf(text, room, "%" PRIu64 ".%03" PRIu64, thousandths / 1000, thousandths % 1000);
            size_t length = strlen(text);
            while (text[length - 1] == '0') {
                text[--length] = '\0';
            }
            length -= text[length - 1] == '.';
            snprintf(text + length, room - length, " %s", units[i].name);
            return;
        }
    }
    snprintf(text, room, "%" PRIu64 " ps", ps);
}

void observe_text_clean(char *text, size_t room)
{
    text[room - 1] = '\0';
    for (char *at = text; *at != '\0'; at++) {
        *at = *at >= ' ' && *at < 0x7f ? *at : '?';
    }
}

// --- reasons --------------------------------------------------------------------------------------------------------

static const char *const reasons[] = {
#define REASON(name, text) text,
    JOURNAL_REASONS(REASON)
#undef REASON
};

static void number_print(const char *form, size_t length, uint64_t value, char *text, size_t room)
{
    if (length == 5 && memcmp(form, "state", 5) == 0) {
        snprintf(text, room, "%s", observe_state_name(value));
    } else if (length == 10 && memcmp(form, "attributes", 10) == 0) {
        attributes_print(value, text, room);
    } else if (length == 4 && memcmp(form, "type", 4) == 0) {
        snprintf(text, room, "%s", observe_qp_type_name(value));
    } else if (length == 6 && memcmp(form, "opcode", 6) == 0) {
        snprintf(text, room, "%s", observe_opcode_name(value));
    } else if (length == 3) {
        snprintf(text, room, "0x%" PRIx64, value);
    } else {
        snprintf(text, room, "%" PRIu64, value);
    }
}

void observe_reason_print(const struct journal_record *record, char *text, size_t room)
{
    const char *from = record->reason < COUNT(reasons) ? reasons[record->reason] : "";
    size_t used = 0;
    if (from[0] == '\0') {
        snprintf(text, room, "%s", strerror(record->error > 0 && record->error < 4096 ? record->error : 0));
        return;
    }
    for (; *from != '\0' && used + 1 < room; from++) {
        const char *end = *from == '{' ? strchr(from, '}') : NULL;
        if (end == NULL) {
            text[used++] = *from;
            continue;
        }
        const char *form = from[2] == ':' ? from + 3 : end;
        number_print(form, (size_t)(end - form), from[1] == 'a' ? record->a : record->b, text + used, room - used);
        used += strlen(text + used);
        from = end;
    }
    text[used] = '\0';
}
