// The ranks' connections: letters of all are collected and sent back to all (boot_wire.h).
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
    int fd;         // -1: closed
    bool has_place; // it has said which
    bool has_letter;
    bool left; // it has finalized
    uint32_t place;
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
    uint32_t slot = 0; // of one that has closed without saying who it was, or a new one
    while (slot < meeting->member_count && (meeting->members[slot].fd >= 0 || meeting->members[slot].has_place)) {
        slot++;
    }
    if (slot == meeting->ranks) {
        (void)close(fd); // somebody else
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    meeting->members[slot] = (struct acprun_member){.fd = fd};
    meeting->member_count += slot == meeting->member_count;
}

static void letters_send(struct acprun_meeting *meeting)
{
    const struct acp_wire_header header = {ACP_WIRE_LETTERS, meeting->ranks * meeting->letter_bytes};
    for (uint32_t i = 0; i < meeting->member_count; i++) {
        struct acprun_member *member = &meeting->members[i];
        member->has_letter = false;
        if (!acp_wire_send(member->fd, &header, sizeof header) ||
            !acp_wire_send(member->fd, meeting->all, header.bytes)) {
            meeting->failure = "a rank has closed its connection";
        }
    }
    meeting->letters = 0;
}

static void member_gone(struct acprun_meeting *meeting, struct acprun_member *member)
{
    (void)close(member->fd);
    member->fd = -1;
    if (member->has_place && !member->left && !meeting->lost) {
        meeting->lost = true;
        meeting->lost_place = member->place;
    }
}

static bool place_is_free(const struct acprun_meeting *meeting, uint32_t place)
{
    bool is_free = place < meeting->ranks;
    for (uint32_t i = 0; is_free && i < meeting->member_count; i++) {
        is_free = !meeting->members[i].has_place || meeting->members[i].place != place;
    }
    return is_free;
}

// What comes from a rank has its size checked before it is believed.
static void letter_take(struct acprun_meeting *meeting, struct acprun_member *member, const uint8_t *bytes,
                        uint32_t count)
{
    bool first = meeting->letters == 0;
    if (!member->has_place || member->has_letter || (!first && count != meeting->letter_bytes)) {
        meeting->failure = "a rank's letters do not fit the others': are all of one program?";
        return;
    }
    meeting->letter_bytes = count;
    memcpy(meeting->all + (size_t)member->place * count, bytes, count);
    member->has_letter = true;
    meeting->letters++;
    if (meeting->letters == meeting->ranks) {
        letters_send(meeting);
    }
}

static void member_read(struct acprun_meeting *meeting, struct acprun_member *member)
{
    struct acp_wire_header header;
    uint8_t bytes[ACP_BOOT_BYTES_MAX];
    uint32_t place;
    if (!acp_wire_receive(member->fd, &header, sizeof header) || header.bytes > sizeof bytes ||
        !acp_wire_receive(member->fd, bytes, header.bytes)) {
        member_gone(meeting, member);
        return;
    }
    switch ((enum acp_wire_kind)header.kind) {
    case ACP_WIRE_HELLO:
        memcpy(&place, bytes, sizeof place);
        if (header.bytes != sizeof place || member->has_place || !place_is_free(meeting, place)) {
            member_gone(meeting, member);
            return;
        }
        member->place = place;
        member->has_place = true;
        return;
    case ACP_WIRE_LETTER:
        letter_take(meeting, member, bytes, header.bytes);
        return;
    case ACP_WIRE_ABORT:
        meeting->aborted = meeting->aborted || member->has_place;
        return;
    case ACP_WIRE_BYE:
        member->left = member->has_place;
        return;
    case ACP_WIRE_LETTERS:
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
