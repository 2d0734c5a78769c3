// Local sockets of the double of the kernel: connections that keep the borders of messages (SOCK_SEQPACKET), and datagrams.
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "kernel_double_internal.h"

enum { NAMES = 64, MESSAGES_MAX = 256, DATAGRAMS_MAX = 10 };

static char names[NAMES][NAME_BYTES]; // that exist, also of closed sockets; empty: free

// --- names ----------------------------------------------------------------------------------------------------------

void kernel_double_names_forget(void)
{
    memset(names, 0, sizeof names);
}

static char *name_find(const char *name)
{
    for (unsigned i = 0; i < NAMES; i++) {
        if (strncmp(names[i], name, NAME_BYTES) == 0) {
            return names[i];
        }
    }
    return NULL;
}

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    char *name = name_find(path);
    if (name == NULL) {
        return __real_unlink(path);
    }
    for (struct file *file = NULL; (file = kernel_double_next(file, SOCKET)) != NULL;) {
        if (strncmp(file->name, name, NAME_BYTES) == 0) {
            file->name[0] = '\0'; // open, but nobody finds it
        }
    }
    name[0] = '\0';
    return 0;
}

// The socket of that name. NULL and errno: there is none.
static struct file *socket_find(const struct sockaddr_un *address, int type)
{
    for (struct file *file = NULL; (file = kernel_double_next(file, SOCKET)) != NULL;) {
        if (file->name[0] != '\0' && strncmp(file->name, address->sun_path, NAME_BYTES) == 0) {
            errno = EPROTOTYPE;
            return file->type == type ? file : NULL;
        }
    }
    errno = name_find(address->sun_path) != NULL ? ECONNREFUSED : ENOENT;
    return NULL;
}

// --- connections ----------------------------------------------------------------------------------------------------

int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
    FUZZ_HOLDS(domain == AF_UNIX && protocol == 0, "domain %d", domain);
    struct file *file = kernel_double_new(SOCKET, (type & SOCK_NONBLOCK) != 0 ? O_NONBLOCK : 0);
    file->type = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
    return kernel_double_fd(file);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t bytes);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t bytes)
{
    struct file *file = kernel_double_file(fd);
    const char *path = ((const struct sockaddr_un *)address)->sun_path;
    char *free_name = name_find("");
    FUZZ_HOLDS(file != NULL && bytes == sizeof(struct sockaddr_un) && free_name != NULL, "bind of %d", fd);
    if (name_find(path) != NULL) {
        return kernel_double_fail(EADDRINUSE);
    }
    memcpy(file->name, path, NAME_BYTES);
    memcpy(free_name, path, NAME_BYTES);
    return 0;
}

int __wrap_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog)
{
    struct file *file = kernel_double_file(fd);
    file->listens = true;
    file->backlog = backlog > 0 ? (unsigned)backlog : 0;
    return 0;
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t bytes);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
    struct file *file = kernel_double_file(fd);
    struct file *listener = socket_find((const struct sockaddr_un *)address, file->type);
    (void)bytes;
    if (listener == NULL) {
        return -1;
    }
    if (!listener->listens) {
        return kernel_double_fail(ECONNREFUSED);
    }
    if (listener->waiting > listener->backlog) {
        return kernel_double_fail(EAGAIN);
    }
    struct file *other = kernel_double_new(SOCKET, 0);
    other->type = file->type;
    other->listener = listener;
    listener->waiting++;
    file->peer = other;
    other->peer = file;
    file->connected = other->connected = true;
    other->value = ++listener->value; // their order
    return 0;
}

static struct file *oldest_waiting(const struct file *listener)
{
    struct file *oldest = NULL;
    for (struct file *file = NULL; (file = kernel_double_next(file, SOCKET)) != NULL;) {
        if (file->listener == listener && (oldest == NULL || file->value < oldest->value)) {
            oldest = file;
        }
    }
    return oldest;
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags)
{
    struct file *listener = kernel_double_file(fd);
    (void)address, (void)bytes;
    if (listener->waiting == 0) {
        return kernel_double_fail(EAGAIN);
    }
    struct file *file = oldest_waiting(listener);
    listener->waiting--;
    file->listener = NULL;
    file->flags = (flags & SOCK_NONBLOCK) != 0 ? O_NONBLOCK : 0;
    return kernel_double_fd(file);
}

// The peer reads an error if something was not read, or nobody has accepted the connection.
static void connection_end(struct file *file, bool unaccepted)
{
    if (file->peer != NULL) {
        file->peer->reset = unaccepted || file->first != NULL;
        file->peer->peer = NULL;
        file->peer = NULL;
    }
    while (file->first != NULL) {
        struct message *message = file->first;
        file->first = message->next;
        free(message);
    }
}

void kernel_double_socket_close(struct file *file)
{
    for (struct file *waits; file->listens && (waits = oldest_waiting(file)) != NULL;) {
        connection_end(waits, true);
        waits->kind = FREE;
    }
    connection_end(file, false);
}

short kernel_double_socket_events(const struct file *file)
{
    if (file->listens) {
        return file->waiting > 0 ? POLLIN : 0;
    }
    if (file->connected && file->peer == NULL) {
        return POLLIN | POLLOUT | POLLHUP;
    }
    return (short)(POLLOUT | (file->first != NULL ? POLLIN : 0));
}

// --- messages -------------------------------------------------------------------------------------------------------

static ssize_t message_put(struct file *to, const void *data, size_t bytes, unsigned most)
{
    if (to->messages > most) {
        return kernel_double_fail(EAGAIN);
    }
    struct message *message = malloc(sizeof *message + bytes);
    FUZZ_HOLDS(message != NULL, "no memory");
    message->next = NULL;
    message->bytes = bytes;
    memcpy(message->data, data, bytes);
    *to->end = message;
    to->end = &message->next;
    to->messages++;
    return (ssize_t)bytes;
}

ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags)
{
    const struct file *file = kernel_double_file(fd);
    if (file == NULL) {
        return kernel_double_fail(EBADF);
    }
    FUZZ_HOLDS((flags & MSG_NOSIGNAL) != 0, "a message to a peer that has ended would end the process");
    if (file->peer == NULL) {
        return kernel_double_fail(file->connected ? EPIPE : ENOTCONN);
    }
    return message_put(file->peer, data, bytes, MESSAGES_MAX);
}

ssize_t __wrap_sendto(int fd, const void *data, size_t bytes, int flags, const struct sockaddr *address,
                      socklen_t address_bytes);
ssize_t __wrap_sendto(int fd, const void *data, size_t bytes, int flags, const struct sockaddr *address,
                      socklen_t address_bytes)
{
    const struct file *file = kernel_double_file(fd);
    (void)flags, (void)address_bytes;
    if (file == NULL) {
        return kernel_double_fail(EBADF);
    }
    struct file *to = socket_find((const struct sockaddr_un *)address, file->type);
    return to != NULL ? message_put(to, data, bytes, DATAGRAMS_MAX) : -1;
}

ssize_t __wrap_recv(int fd, void *data, size_t bytes, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t bytes, int flags)
{
    struct file *file = kernel_double_file(fd);
    FUZZ_HOLDS(file != NULL && ((flags & MSG_DONTWAIT) != 0 || (file->flags & O_NONBLOCK) != 0), "recv of %d", fd);
    if (file->reset) {
        file->reset = false;
        return kernel_double_fail(ECONNRESET);
    }
    struct message *message = file->first;
    if (message == NULL) {
        return file->connected && file->peer == NULL ? 0 : kernel_double_fail(EAGAIN);
    }
    size_t got = message->bytes < bytes ? message->bytes : bytes;
    memcpy(data, message->data, got);
    file->first = message->next;
    file->end = file->first != NULL ? file->end : &file->first;
    file->messages--;
    free(message);
    return (ssize_t)got;
}
