// A hostile program: random requests, lists, rings and messages. "fuzz SEED ROUNDS [board]"; a board lets every program
// write anywhere in the window, so it is only used on request. The program contains the library's own code, so that it
// can bypass the API.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "verbs-shim/attach/client.h"
#include "verbs-shim/attach/client_internal.h"
#include "verbs-shim/hca/hca_driver.h"

static uint64_t state;
static uint64_t known[64]; // results that may be valid arguments

static uint16_t first_bar = BACKEND_BAR_GPU0;

static uint64_t dice(void) // xorshift64
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t number(void)
{
    switch (dice() % 8) {
    case 0:
        return dice();
    case 1:
        return UINT64_MAX - dice() % 4;
    case 2:
        return UINT64_C(1) << dice() % 64;
    case 3:
        return known[dice() % 64] + dice() % 3;
    case 4:
        return dice() % 70000;
    case 5:
        return known[dice() % 64] & ~UINT64_C(4095);
    }
    return dice() % 5;
}

static void fill(void *to, size_t bytes)
{
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
        uint32_t value = (uint32_t)number();
        memcpy((char *)to + i, &value, 4);
    }
}

static void entries_make(struct attach_slot *slot)
{
    uint32_t count = dice() % 4 == 0 ? (uint32_t)number() : (uint32_t)(dice() % 4);
    for (uint32_t i = 0; i < count && i < ATTACH_ENTRIES; i++) {
        struct attach_entry *entry = &slot->entries[i];
        fill(entry, sizeof *entry);
        entry->after_ps = dice() % 1000000;
        entry->kind = (uint16_t)(dice() % 6);
        entry->bar = (uint16_t)(first_bar + dice() % 10);
        entry->offset = dice() % 2 == 0 ? dice() % 20000 : number();
        entry->bytes = dice() % 2 == 0 ? 1u << dice() % 4 : (uint32_t)number();
        entry->value = number();
    }
    atomic_store(&slot->entry_count, count);
}

// The journal: calls of all kinds, with random call frames and times.
static void notes_make(struct attach_slot *slot)
{
    uint32_t count = dice() % 8 == 0 ? (uint32_t)number() : (uint32_t)(dice() % 4);
    for (uint32_t i = 0; i < count && i < 64; i++) {
        struct attach_note *note = &slot->notes[i];
        fill(note, sizeof *note);
        note->record.call = (uint16_t)(dice() % 2 == 0 ? dice() % (JOURNAL_CALL_COUNT + 2) : number());
        note->record.error = dice() % 2 == 0 ? 0 : note->record.error;
        note->record.reason = (uint16_t)(dice() % (JOURNAL_REASON_COUNT + 2));
        note->record.context = dice() % 2;
        note->record.qp.number = (uint32_t)(dice() % 4);
        note->entry = (uint32_t)(dice() % 4);
    }
    atomic_store(&slot->note_count, count);
}

// Requests that would only wait, or end this program.
static bool is_dull(uint64_t op)
{
    return op == ATTACH_OP_THREAD_EXIT || op == ATTACH_OP_PROCESS_EXIT || op == ATTACH_OP_EXEC ||
           op == ATTACH_OP_THREAD || (op == ATTACH_OP_BOARD_CLAIM && first_bar != 0);
}

// All programs may read and write which thread busy-waits and which is next.
static void bells_corrupt(void)
{
    fill(attach_client.bells, dice() % 2 == 0 ? 12 : 4096);
}

static void args_make(struct attach_slot *slot, uint64_t op)
{
    uint64_t words[8];
    fill(&slot->args, sizeof slot->args);
    for (unsigned i = 0; i < 8; i++) {
        words[i] = number();
    }
    memcpy(&slot->args, words, sizeof words);
    switch (op) {
    case ATTACH_OP_WAIT:
        slot->args.wait.deadline_ps = slot->now_ps + dice() % 1000000000;
        break;
    case ATTACH_OP_POLL:
        slot->args.poll.polled.word_count = 0;
        break;
    case ATTACH_OP_FUTEX_WAIT:
        slot->args.futex_wait.deadline_ps = slot->now_ps + dice() % 1000000000;
        break;
    case ATTACH_OP_WAIT_WORD:
        slot->args.wait_word.timeout_ns = 1 + dice() % 100000;
        break;
    case ATTACH_OP_HCA_COMMAND:
        slot->args.hca_command.command.id = (uint32_t)(dice() % (HCA_COMMANDS + 1));
        break;
    }
}

static void request_make(void)
{
    struct attach_slot *slot = attach_slot();
    uint64_t op = dice() % (ATTACH_OPS + 3);
    if (is_dull(op)) {
        return;
    }
    entries_make(slot);
    notes_make(slot);
    args_make(slot, op);
    int64_t result = attach_call(slot, (enum attach_op)op);
    if (result >= 0) {
        uint64_t words[2];
        memcpy(words, &slot->reply, sizeof words);
        known[dice() % 64] = words[dice() % 2];
        known[dice() % 64] = slot->reply.hca_command.command.number;
    }
    if (op == ATTACH_OP_ALLOC && result == 0) {
        (void)close(attach_descriptor_take());
    }
}

// --- rings ----------------------------------------------------------------------------------------------------------

static void rings_corrupt(void)
{
    struct backend_process *process = backend_current();
    const struct backend_ops *ops = process->backend.ops;
    struct backend_buffer buffer;
    hca_context_t *context;
    hca_pd_t *pd;
    hca_cq_t *cq;
    hca_qp_t *qp;
    struct hca_qp_create create = {.type = (enum hca_qp_type)(dice() % 3), .send_entries = 16, .receive_entries = 16};
    if (ops->alloc_pinned(NULL, 65536, &buffer) != 0 || hca_open(&process->backend, &context) != 0 ||
        hca_pd_create(context, &pd) != 0 || hca_cq_create(context, 16, NULL, &cq) != 0) {
        return;
    }
    create.send_cq = create.receive_cq = cq;
    if (hca_qp_create(pd, &create, &qp) != 0) {
        return;
    }
    struct hca_qp_init init = {.type = create.type, .eqn = 1, .uar = 0, .send_cqn = 1, .receive_cqn = 1};
    init.send_base = buffer.bus_address;
    init.receive_base = buffer.bus_address + 16384;
    init.receive_record = buffer.bus_address + 32768;
    init.send_entries = init.receive_entries = 16;
    init.send_stride_bytes = init.receive_stride_bytes = 64u << dice() % 5;
    for (uint32_t pdn = 0; pdn < 4; pdn++) {
        uint32_t qpn;
        struct hca_qp_attr attr = {
            .port = 1, .path_mtu_bytes = 2048, .dlid = (uint16_t)(1 + dice() % 2), .timeout = 14};
        init.pdn = pdn;
        init.eqn = 1 + (uint32_t)(dice() % 2);
        struct hca_command command = {.id = HCA_CMD_QP_CREATE, .qp_create = init};
        if (ops->hca_command(NULL, &command) != 0) {
            continue;
        }
        qpn = command.number;
        attr.dest_qpn = qpn;
        for (attr.state = HCA_INIT; attr.state <= HCA_RTS; attr.state++) {
            command = (struct hca_command){.id = HCA_CMD_QP_MODIFY,
                                           .number = qpn,
                                           .qp_modify = {0xffff & ~(uint32_t)HCA_QP_CURRENT_STATE, attr}};
            (void)ops->hca_command(NULL, &command);
        }
        fill(buffer.address, buffer.bytes);
        for (unsigned i = 0; i < 64; i++) {
            unsigned char *page = buffer.address;
            struct hca_wqe_control *control = (void *)(page + dice() % 16 * init.send_stride_bytes % 16384);
            *control = (struct hca_wqe_control){qpn,
                                                (uint16_t)i,
                                                (uint8_t)(dice() % 9),
                                                (uint8_t)(dice() % 16),
                                                (uint16_t)number(),
                                                (uint8_t)number(),
                                                0,
                                                0};
            ops->write(NULL, BACKEND_BAR_HCA_UAR, HCA_UAR_SEND_DOORBELL, hca_doorbell_send(qpn, (uint16_t)(i + 1)), 8);
            (void)attach_wait(0, attach_now_ps() + dice() % 10000000);
        }
    }
}

// --- the socket -----------------------------------------------------------------------------------------------------

static void messages_send(unsigned count)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, getenv("TCASIM_ATTACH"), sizeof address.sun_path - 1);
    for (unsigned i = 0; i < count; i++) {
        unsigned char bytes[sizeof(struct attach_hello) + 8];
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) {
            fill(bytes, sizeof bytes);
            struct attach_hello *hello = (void *)bytes;
            hello->magic = dice() % 2 == 0 ? ATTACH_MAGIC : hello->magic;
            hello->layout = dice() % 4 == 0 ? hello->layout : ATTACH_LAYOUT;
            (void)send(fd, bytes, dice() % 2 == 0 ? sizeof *hello : dice() % sizeof bytes, MSG_NOSIGNAL);
        }
        close(fd);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3 || attach_mode() != ATTACH_TIMED) {
        return 1;
    }
    state = 0x9e3779b97f4a7c15u * (uint64_t)(atoi(argv[1]) + 1);
    first_bar = argc > 3 ? 0 : first_bar;
    (void)attach_wait(0, 60000000); // the other programs have their resources by now
    rings_corrupt();
    for (int i = 0; i < atoi(argv[2]); i++) {
        request_make();
        if (dice() % 4 == 0) {
            bells_corrupt();
        }
    }
    messages_send(20);
    (void)kill(getpid(), SIGKILL);
    return 0;
}
