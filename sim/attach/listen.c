// Where programs attach: a socket in a directory that only the user can enter.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sim/attach/internal.h"

enum { BACKLOG = 256 };

bool attach_listen(struct attach_server *server)
{
    attach_network_make(&server->network);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!attach_scratch_make(server)) {
        return false;
    }
    snprintf(server->scratch.path, sizeof server->scratch.path, "%s/attach", server->scratch.directory);
    memcpy(address.sun_path, server->scratch.path, strlen(server->scratch.path) + 1);
    server->listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server->listener.fd < 0 || bind(server->listener.fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(server->listener.fd, BACKLOG) != 0) {
        snprintf(server->result->text, sizeof server->result->text, "%s: %s", server->scratch.path, strerror(errno));
        return false;
    }
    return attach_sysfs_make(server);
}

static void early_close(const struct attach_server *server, const struct attach_early *early)
{
    attach_connection_close(server, &early->reach, early->socket);
    close(early->reach.pidfd);
}

void attach_listen_end(struct attach_server *server)
{
    while (server->listener.early_count > 0) {
        early_close(server, &server->listener.early[--server->listener.early_count]);
    }
    if (server->listener.fd >= 0) {
        close(server->listener.fd);
    }
    attach_network_end(&server->network);
    attach_scratch_remove(server);
}

// --- messages -------------------------------------------------------------------------------------------------------

static bool message_send(int socket, const void *message, size_t bytes, int fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec vector = {(void *)(uintptr_t)message, bytes};
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};
    if (fd >= 0) {
        header.msg_control = &control;
        header.msg_controllen = sizeof control;
        struct cmsghdr *part = CMSG_FIRSTHDR(&header);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(part), &fd, sizeof fd);
    }
    // Does not wait: a program that does not read its messages loses them.
    return sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

bool attach_descriptor_send(const struct attach_process *process, int fd)
{
    const uint32_t magic = ATTACH_MAGIC;
    return message_send(process->socket, &magic, sizeof magic, fd);
}

// A program that connects sends its hello message at once, but the simulator may look between the two. It waits for
// nobody: a connection that says nothing is looked at again with the next ones.
enum hello { HELLO_MISSING, HELLO_WRONG, HELLO_GOOD };

static enum hello hello_receive(const struct attach_server *server, const struct attach_early *early,
                                struct attach_hello *hello)
{
    unsigned none = 0;
    memset(hello, 0, sizeof *hello);
    ssize_t got =
        attach_message_receive(server, &early->reach, early->socket, (struct iovec){hello, sizeof *hello}, NULL, &none);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return HELLO_MISSING;
    }
    hello->node[sizeof hello->node - 1] = hello->home[sizeof hello->home - 1] = '\0';
    // The message of another build may have another length.
    return hello->magic == ATTACH_MAGIC && (got == (ssize_t)sizeof *hello || hello->layout != ATTACH_LAYOUT)
               ? HELLO_GOOD
               : HELLO_WRONG;
}

static bool node_find(const struct attach_server *server, const char *name, uint32_t *node_out)
{
    for (uint32_t i = 0; i < server->scenario->node_count; i++) {
        if (strcmp(server->scenario->nodes[i].name, name) == 0) {
            *node_out = i;
            return true;
        }
    }
    return false;
}

// A launcher passes on the environment that it was started with, on whatever node its helper runs (MPICH's hydra).
static bool node_of(const struct attach_server *server, const struct attach_hello *hello,
                    const struct attach_reach *reach, uint32_t *node_out)
{
    const pid_t relatives[] = {reach->pid, attach_parent_of(reach->pid)}; // the program before it, or the parent
    bool chosen = strcmp(hello->node, hello->home) != 0;
    for (size_t i = 0; i < sizeof relatives / sizeof relatives[0] && !chosen; i++) {
        for (const struct attach_process *process = server->processes; process != NULL; process = process->next) {
            if (process->reach.pid == relatives[i]) {
                *node_out = process->node;
                return true;
            }
        }
    }
    return node_find(server, hello->node, node_out);
}

static void refusal_send(int socket, const char *text)
{
    struct attach_welcome welcome = {0};
    snprintf(welcome.text, sizeof welcome.text, "%s", text);
    (void)message_send(socket, &welcome, sizeof welcome, -1);
}

static void refuse(const struct attach_server *server, const struct attach_early *early, const char *text)
{
    refusal_send(early->socket, text);
    early_close(server, early);
}

// --- attaching ------------------------------------------------------------------------------------------------------

static void welcome(struct attach_server *server, const struct attach_early *early, uint32_t node)
{
    const struct attach_welcome message = {.magic = ATTACH_MAGIC, .layout = ATTACH_LAYOUT};
    struct attach_process *process = attach_process_create(server, node, &early->reach, early->socket);
    if (process == NULL) {
        refuse(server, early, "the simulator has no memory");
        return;
    }
    int segment = attach_process_segment(process);
    if (segment < 0 || !attach_thread_start(process, 0, attach_thread_main)) {
        refusal_send(early->socket, "the simulator has no memory");
        attach_process_ended(process);
        attach_process_forget(process);
    } else if (!message_send(early->socket, &message, sizeof message, segment) ||
               !attach_descriptor_send(process, server->tokens.bells_fd)) {
        attach_process_ended(process);
    }
    if (segment >= 0) {
        close(segment);
    }
}

// false: it has not said hello yet.
static bool come_in(struct attach_server *server, const struct attach_early *early)
{
    struct attach_hello hello;
    uint32_t node;
    enum hello said = hello_receive(server, early, &hello);
    if (said == HELLO_WRONG) {
        early_close(server, early);
    } else if (said == HELLO_GOOD && hello.layout != ATTACH_LAYOUT) {
        refuse(server, early, ATTACH_OTHER_BUILD);
    } else if (said == HELLO_GOOD && !node_of(server, &hello, &early->reach, &node)) {
        char text[ATTACH_NAME_BYTES + 96];
        snprintf(text, sizeof text, "the scenario has no node '%s' (TCASIM_NODE, or the host that mpirun was told)",
                 hello.node);
        refuse(server, early, text);
    } else if (said == HELLO_GOOD) {
        welcome(server, early, node);
    }
    return said != HELLO_MISSING;
}

static bool is_announced(const struct attach_server *server, pid_t pid)
{
    for (const struct attach_process *process = server->processes; process != NULL; process = process->next) {
        for (unsigned i = 0; i < process->slots; i++) {
            if (process->threads[i] != NULL && process->threads[i]->announces == (uint64_t)pid) {
                return true;
            }
        }
    }
    return false;
}

static void early_remove(struct attach_listener *listener, unsigned index)
{
    listener->early_count--;
    memmove(&listener->early[index], &listener->early[index + 1],
            (listener->early_count - index) * sizeof listener->early[0]);
}

static void early_come_in(struct attach_server *server)
{
    struct attach_listener *listener = &server->listener;
    for (unsigned i = 0; i < listener->early_count;) {
        const struct attach_early early = listener->early[i];
        if (!is_announced(server, early.reach.pid) && come_in(server, &early)) {
            early_remove(listener, i);
        } else {
            i++;
        }
    }
}

// Of a list that is full, the oldest connection that nobody has announced goes.
static void early_make_room(struct attach_server *server)
{
    struct attach_listener *listener = &server->listener;
    unsigned oldest = 0;
    if (listener->early_count == ATTACH_EARLY_MAX) {
        while (oldest + 1 < listener->early_count && is_announced(server, listener->early[oldest].reach.pid)) {
            oldest++;
        }
        early_close(server, &listener->early[oldest]);
        early_remove(listener, oldest);
    }
}

// The next connection, without those of other users and of processes that have ended. false: there is none.
static bool connection_take(const struct attach_server *server, struct attach_early *early_out)
{
    for (int socket; (socket = accept4(server->listener.fd, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        early_out->socket = socket;
        if (attach_reach_take(socket, &early_out->reach)) {
            return true;
        }
        attach_connection_close(server, &(struct attach_reach){.pidfd = -1}, socket);
    }
    return false;
}

static void early_add(struct attach_listener *listener, const struct attach_early *early)
{
    listener->early[listener->early_count++] = *early;
}

void attach_accept(struct attach_server *server)
{
    struct attach_early early;
    early_come_in(server);
    for (unsigned i = 0; i < BACKLOG && connection_take(server, &early); i++) { // however fast a program connects
        if (is_announced(server, early.reach.pid) || !come_in(server, &early)) {
            early_make_room(server);
            early_add(&server->listener, &early);
        }
    }
}

void attach_accept_again(struct attach_server *server, pid_t pid)
{
    struct attach_listener *listener = &server->listener;
    struct attach_early early;
    while (listener->early_count < ATTACH_EARLY_MAX && connection_take(server, &early)) {
        early_add(listener, &early);
    }
    for (unsigned i = 0; i < listener->early_count;) {
        early = listener->early[i];
        if (early.reach.pid == pid && come_in(server, &early)) {
            early_remove(listener, i);
        } else {
            i++;
        }
    }
}
