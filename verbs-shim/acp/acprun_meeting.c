// The ranks' connections to acprun: it collects a message of each process and sends all of them to every process
// (boot_wire.h).
//
// Anybody may connect. Nothing that a stranger does or omits keeps the ranks waiting: messages are taken as they come,
// byte by byte if need be, and who has not shown the secret in ten seconds is sent away.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "verbs-shim/acp/acprun.h"
#include "verbs-shim/acp/boot.h"
#include "verbs-shim/acp/boot_wire.h"

enum { STRANGERS = 64, HELLO_MS = 10000, SEND_S = 10, LOOK_MS = 1000 };

struct acprun_member {
    int fd;            // -1: closed
    uint64_t since_ms; // when it connected
    uint32_t got;      // bytes of the current message
    uint8_t message[sizeof(struct acp_wire_header) + ACP_BOOT_BYTES_MAX];
    bool has_number; // it has sent its number, and the secret
    bool has_sent;
    bool left; // it has called acp_finalize
    uint32_t number;
};

static uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool secret_make(struct acprun_meeting *meeting)
{
    char text[2 * ACP_SECRET_BYTES + 1];
    _Static_assert(sizeof meeting->secret == ACP_SECRET_BYTES, "as in boot_wire.h");
    if (getrandom(meeting->secret, sizeof meeting->secret, 0) != sizeof meeting->secret) {
        return false;
    }
    for (unsigned i = 0; i < ACP_SECRET_BYTES; i++) {
        snprintf(text + 2 * i, 3, "%02x", meeting->secret[i]);
    }
    return setenv(ACP_SECRET_NAME, text, 1) == 0;
}

int acprun_meeting_open(struct acprun_meeting *meeting, uint32_t ranks)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t bytes = sizeof address;
    *meeting = (struct acprun_meeting){.ranks = ranks, .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    meeting->members_max = ranks + STRANGERS;
    meeting->members = calloc(meeting->members_max, sizeof *meeting->members);
    meeting->all = calloc(ranks, ACP_BOOT_BYTES_MAX);
    if (!secret_make(meeting) || meeting->listener < 0 || meeting->members == NULL || meeting->all == NULL ||
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
    uint32_t slot = 0, oldest = meeting->members_max; // slot: of a stranger that has gone, or a new one
    while (slot < meeting->member_count && (meeting->members[slot].fd >= 0 || meeting->members[slot].has_number)) {
        const struct acprun_member *member = &meeting->members[slot];
        bool older = oldest == meeting->members_max || member->since_ms < meeting->members[oldest].since_ms;
        oldest = !member->has_number && older ? slot : oldest;
        slot++;
    }
    if (slot == meeting->members_max) { // the oldest stranger goes
        slot = oldest;
        (void)close(meeting->members[slot].fd);
    }
    const struct timeval most = {.tv_sec = SEND_S};
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    meeting->members[slot] = (struct acprun_member){.fd = fd, .since_ms = now_ms()};
    meeting->member_count += slot == meeting->member_count;
}

static void gathered_send(struct acprun_meeting *meeting)
{
    const struct acp_wire_header header = {ACP_WIRE_GATHERED, meeting->ranks * meeting->message_bytes};
    for (uint32_t i = 0; i < meeting->member_count && meeting->failure == NULL; i++) {
        struct acprun_member *member = &meeting->members[i];
        if (!member->has_number) {
            continue;
        }
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
        meeting->lost_ms = now_ms();
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

// As long as memcmp takes wherever the two differ.
static bool secret_is(const struct acprun_meeting *meeting, const uint8_t *secret)
{
    unsigned differs = 0;
    for (unsigned i = 0; i < ACP_SECRET_BYTES; i++) {
        differs |= meeting->secret[i] ^ secret[i];
    }
    return differs == 0;
}

static bool hello_take(const struct acprun_meeting *meeting, struct acprun_member *member, const uint8_t *bytes,
                       uint32_t count)
{
    struct acp_wire_hello hello;
    if (count != sizeof hello || member->has_number) {
        return false;
    }
    memcpy(&hello, bytes, sizeof hello);
    if (!secret_is(meeting, hello.secret) || !number_is_free(meeting, hello.number)) {
        return false;
    }
    member->number = hello.number;
    member->has_number = true;
    return true;
}

// false: the connection is closed.
static bool message_handle(struct acprun_meeting *meeting, struct acprun_member *member,
                           const struct acp_wire_header *header, const uint8_t *bytes)
{
    if (header->kind == ACP_WIRE_HELLO) {
        return hello_take(meeting, member, bytes, header->bytes);
    }
    if (!member->has_number) {
        return false;
    }
    switch (header->kind) {
    case ACP_WIRE_GATHER:
        message_take(meeting, member, bytes, header->bytes);
        return true;
    case ACP_WIRE_ABORT:
        meeting->aborted = true;
        return true;
    case ACP_WIRE_BYE:
        member->left = true;
        return true;
    }
    return false;
}

// Takes what has come of a message, and handles the message once it is whole.
static void member_read(struct acprun_meeting *meeting, struct acprun_member *member)
{
    struct acp_wire_header header = {0};
    uint32_t whole = sizeof header;
    if (member->got >= sizeof header) {
        memcpy(&header, member->message, sizeof header);
        whole += header.bytes;
    }
    ssize_t part = recv(member->fd, member->message + member->got, whole - member->got, MSG_DONTWAIT);
    if (part < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (part <= 0) {
        member_gone(meeting, member);
        return;
    }
    member->got += (uint32_t)part;
    if (member->got < whole) {
        return;
    }
    memcpy(&header, member->message, sizeof header);
    bool fits = header.bytes <= ACP_BOOT_BYTES_MAX;
    if (fits && member->got < sizeof header + header.bytes) {
        return; // the header is whole
    }
    member->got = 0;
    if (!fits || !message_handle(meeting, member, &header, member->message + sizeof header)) {
        member_gone(meeting, member);
    }
}

// Sends away who has not shown the secret in time. true: there are strangers left.
static bool strangers_check(struct acprun_meeting *meeting)
{
    bool any = false;
    for (uint32_t i = 0; i < meeting->member_count; i++) {
        struct acprun_member *member = &meeting->members[i];
        bool stranger = member->fd >= 0 && !member->has_number;
        if (stranger && now_ms() - member->since_ms > HELLO_MS) {
            member_gone(meeting, member);
            stranger = false;
        }
        any = any || stranger;
    }
    return any;
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
    bool looks = strangers_check(meeting) && most_ms < 0;
    int ready = poll(fds, count + 2, looks ? LOOK_MS : most_ms);
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
    return most_ms >= 0 && meeting->lost && now_ms() - meeting->lost_ms >= (uint64_t)most_ms;
}
