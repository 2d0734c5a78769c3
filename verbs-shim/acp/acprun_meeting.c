// The ranks' connections to acprun: it collects a message of each process and sends all of them to every process
// (boot_wire.h).
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs-shim/acp/acprun.h"
#include "verbs-shim/acp/boot.h"
#include "verbs-shim/acp/boot_wire.h"

struct acprun_member {
    int fd;          // -1: closed
    bool has_number; // it has sent its number
    bool has_sent;
    bool left; // it has called acp_finalize
    uint32_t number;
};

int acprun_meeting_open(struct acprun_meeting *meeting, uint32_t ranks)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t bytes = sizeof address;
    *meeting = (struct acprun_meeting){.ranks = ranks, .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    meeting->members = calloc(ranks, sizeof *meeting->members);
    meeting->all = calloc(ranks, ACP_BOOT_BYTES_MAX);
    if (meeting->listener < 0 || meeting->members == NULL || meeting->all == NULL ||
        bind(meeting->listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(meeting->listener, (int)ranks) != 0 ||
        getsockname(meeting->listener, (struct sockaddr *)&address, &bytes) != 0) {
        return -1;
    }
    meeting->port = ntohs(address.sin_port);
    return 0;
}

void acprun_meeting_close(struct acprun_meeting *meeting)
{
    for (uint32_t i = 0; i < meeting->member_count; i++) {
        if (meeting->members[i].fd >= 0) {
            (void)close(meeting->members[i].fd);
        }
    }
    (void)close(meeting->listener);
    free(meeting->members);
    free(meeting->all);
}

static void member_accept(struct acprun_meeting *meeting)
{
    int fd = accept4(meeting->listener, NULL, NULL, SOCK_CLOEXEC), on = 1;
    if (fd < 0 && errno != EINTR && errno != EAGAIN && errno != ECONNABORTED) {
        meeting->failure = strerror(errno);
    }
    if (fd < 0) {
        return;
    }
    uint32_t slot = 0; // of a connection that closed before it sent its number, or a new one
    while (slot < meeting->member_count && (meeting->members[slot].fd >= 0 || meeting->members[slot].has_number)) {
        slot++;
    }
    if (slot == meeting->ranks) {
        (void)close(fd); // not a rank
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    meeting->members[slot] = (struct acprun_member){.fd = fd};
    meeting->member_count += slot == meeting->member_count;
}

static void gathered_send(struct acprun_meeting *meeting)
{
    const struct acp_wire_header header = {ACP_WIRE_GATHERED, meeting->ranks * meeting->message_bytes};
    for (uint32_t i = 0; i < meeting->member_count; i++) {
        struct acprun_member *member = &meeting->members[i];
        member->has_sent = false;
        if (!acp_wire_send(member->fd, &header, sizeof header) ||
            !acp_wire_send(member->fd, meeting->all, header.bytes)) {
            meeting->failure = "a rank has closed its connection";
        }
    }
    meeting->gathered = 0;
}

static void member_gone(struct acprun_meeting *meeting, struct acprun_member *member)
{
    (void)close(member->fd);
    member->fd = -1;
    if (member->has_number && !member->left && !meeting->lost) {
        meeting->lost = true;
        meeting->lost_process = member->number;
    }
}

static bool number_is_free(const struct acprun_meeting *meeting, uint32_t number)
{
    bool is_free = number < meeting->ranks;
    for (uint32_t i = 0; is_free && i < meeting->member_count; i++) {
        is_free = !meeting->members[i].has_number || meeting->members[i].number != number;
    }
    return is_free;
}

// The size of a message is checked before it is used.
static void message_take(struct acprun_meeting *meeting, struct acprun_member *member, const uint8_t *bytes,
                         uint32_t count)
{
    bool first = meeting->gathered == 0;
    if (!member->has_number || member->has_sent || (!first && count != meeting->message_bytes)) {
        meeting->failure = "a rank's data do not match the others': do all ranks run the same program?";
        return;
    }
    meeting->message_bytes = count;
    memcpy(meeting->all + (size_t)member->number * count, bytes, count);
    member->has_sent = true;
    meeting->gathered++;
    if (meeting->gathered == meeting->ranks) {
        gathered_send(meeting);
    }
}

static void member_read(struct acprun_meeting *meeting, struct acprun_member *member)
{
    struct acp_wire_header header;
    uint8_t bytes[ACP_BOOT_BYTES_MAX];
    uint32_t number;
    if (!acp_wire_receive(member->fd, &header, sizeof header) || header.bytes > sizeof bytes ||
        !acp_wire_receive(member->fd, bytes, header.bytes)) {
        member_gone(meeting, member);
        return;
    }
    switch ((enum acp_wire_kind)header.kind) {
    case ACP_WIRE_HELLO:
        memcpy(&number, bytes, sizeof number);
        if (header.bytes != sizeof number || member->has_number || !number_is_free(meeting, number)) {
            member_gone(meeting, member);
            return;
        }
        member->number = number;
        member->has_number = true;
        return;
    case ACP_WIRE_GATHER:
        message_take(meeting, member, bytes, header.bytes);
        return;
    case ACP_WIRE_ABORT:
        meeting->aborted = meeting->aborted || member->has_number;
        return;
    case ACP_WIRE_BYE:
        member->left = member->has_number;
        return;
    case ACP_WIRE_GATHERED:
        break;
    }
    member_gone(meeting, member);
}

bool acprun_meeting_wait(struct acprun_meeting *meeting, int wake, int most_ms)
{
    struct pollfd *fds = calloc(meeting->member_count + 2, sizeof *fds);
    if (fds == NULL) {
        meeting->failure = "no memory";
        return false;
    }
    uint32_t count = meeting->member_count;
    for (uint32_t i = 0; i < count; i++) {
        fds[i] = (struct pollfd){.fd = meeting->members[i].fd, .events = POLLIN};
    }
    fds[count] = (struct pollfd){.fd = meeting->listener, .events = POLLIN};
    fds[count + 1] = (struct pollfd){.fd = wake, .events = POLLIN};
    int ready = poll(fds, count + 2, most_ms);
    if (ready > 0) {
        for (uint32_t i = 0; i < count; i++) {
            if (fds[i].revents != 0) {
                member_read(meeting, &meeting->members[i]);
            }
        }
        if (fds[count].revents != 0) {
            member_accept(meeting);
        }
    }
    free(fds);
    return ready == 0;
}
