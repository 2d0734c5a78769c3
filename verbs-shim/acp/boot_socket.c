// Ranks started by acprun: a connection to it for the exchange of messages (boot_wire.h).
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs-shim/acp/boot.h"
#include "verbs-shim/acp/boot_wire.h"

struct socket_boot {
    int fd;
    uint32_t processes;
    char device[64];
};

static int broken(void)
{
    fprintf(stderr, "acp: the connection to acprun: %s\n", errno != 0 ? strerror(errno) : "closed");
    return -EIO;
}

static bool message_send(int fd, enum acp_wire_kind kind, const void *bytes, size_t count)
{
    const struct acp_wire_header header = {.kind = kind, .bytes = (uint32_t)count};
    return acp_wire_send(fd, &header, sizeof header) && acp_wire_send(fd, bytes, count);
}

static int gather(void *ctx, const void *mine, void *all, size_t bytes)
{
    const struct socket_boot *boot = ctx;
    struct acp_wire_header header;
    if (!message_send(boot->fd, ACP_WIRE_GATHER, mine, bytes) || !acp_wire_receive(boot->fd, &header, sizeof header)) {
        return broken();
    }
    if (header.kind != ACP_WIRE_GATHERED || header.bytes != bytes * boot->processes) {
        fprintf(stderr, "acp: acprun is not of this library's version\n");
        return -EIO;
    }
    return acp_wire_receive(boot->fd, all, header.bytes) ? 0 : broken();
}

static void boot_abort(void *ctx, const char *text)
{
    const struct socket_boot *boot = ctx;
    fprintf(stderr, "%s\n", text);
    (void)message_send(boot->fd, ACP_WIRE_ABORT, NULL, 0);
    _exit(1);
}

static void boot_close(void *ctx, bool finalized)
{
    struct socket_boot *boot = ctx;
    if (finalized) {
        (void)message_send(boot->fd, ACP_WIRE_BYE, NULL, 0);
    }
    (void)close(boot->fd);
    free(boot);
}

static int host_connect(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *list;
    int error = getaddrinfo(host, port, &hints, &list), fd = -1, on = 1;
    if (error != 0) {
        fprintf(stderr, "acp: acprun on %s: %s\n", host, gai_strerror(error));
        return -EIO;
    }
    fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, list->ai_addr, list->ai_addrlen) != 0) {
        fprintf(stderr, "acp: acprun on %s, port %s: %s\n", host, port, strerror(errno));
        error = -EIO;
    } else {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    freeaddrinfo(list);
    if (error != 0 && fd >= 0) {
        (void)close(fd);
    }
    return error == 0 ? fd : error;
}

// --- arguments ------------------------------------------------------------------------------------------------------

struct arguments {
    uint64_t rank, ranks, starter_bytes;
    const char *host, *port, *device;
    bool connect_all;
};

static int number_take(const char *text, uint64_t *number_out)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0) {
        return -EINVAL;
    }
    *number_out = number;
    return 0;
}

static int argument_take(struct arguments *arguments, const char *name, const char *value)
{
    if (strcmp(name, ACP_ARGUMENT_RANK) == 0) {
        return number_take(value, &arguments->rank);
    }
    if (strcmp(name, ACP_ARGUMENT_RANKS) == 0) {
        return number_take(value, &arguments->ranks);
    }
    if (strcmp(name, ACP_ARGUMENT_STARTER) == 0) {
        return number_take(value, &arguments->starter_bytes);
    }
    if (strcmp(name, ACP_ARGUMENT_HOST) == 0) {
        arguments->host = value;
    } else if (strcmp(name, ACP_ARGUMENT_PORT) == 0) {
        arguments->port = value;
    } else if (strcmp(name, ACP_ARGUMENT_DEVICE) == 0) {
        arguments->device = value;
    } else if (strcmp(name, ACP_ARGUMENT_CONNECT) == 0) {
        arguments->connect_all = strcmp(value, "start") == 0;
    } else {
        return -ENOENT; // an argument of another version, or of the program
    }
    return 0;
}

// Finds --acp-NAME VALUE anywhere in argv and removes it.
static int arguments_take(int *argc, char **argv, struct arguments *arguments)
{
    int kept = 0, error = 0;
    for (int i = 0; i < *argc; i++) {
        int taken = -ENOENT;
        if (strncmp(argv[i], "--acp-", 6) == 0 && i + 1 < *argc) {
            taken = argument_take(arguments, argv[i], argv[i + 1]);
        }
        if (taken == -EINVAL) {
            fprintf(stderr, "acp: %s: %s is no number\n", argv[i], argv[i + 1]);
            error = taken;
        }
        if (taken == -ENOENT) {
            argv[kept++] = argv[i];
        } else {
            i++;
        }
    }
    argv[kept] = NULL;
    *argc = kept;
    return error;
}

// The arguments from /proc, if main does not pass them. The caller frees the array and the first text, whose memory
// holds all texts.
static char **arguments_own(int *argc_out)
{
    size_t room = 0;
    char *text = NULL;
    FILE *file = fopen("/proc/self/cmdline", "r");
    ssize_t length = file != NULL ? getdelim(&text, &room, EOF, file) : -1;
    char **argv = length > 0 ? calloc((size_t)length + 1, sizeof *argv) : NULL;
    if (argv == NULL) {
        free(text);
    }
    *argc_out = 0;
    for (ssize_t i = 0; argv != NULL && i < length; i += (ssize_t)strlen(text + i) + 1) {
        argv[(*argc_out)++] = text + i;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return argv;
}

// What is missing or wrong stays zero: acprun then refuses this process.
static void secret_take(uint8_t secret_out[ACP_SECRET_BYTES])
{
    const char *text = getenv(ACP_SECRET_NAME);
    memset(secret_out, 0, ACP_SECRET_BYTES);
    for (unsigned i = 0; text != NULL && i < ACP_SECRET_BYTES && sscanf(text + 2 * i, "%2hhx", &secret_out[i]) == 1;
         i++) {
    }
}

static int boot_make(const struct arguments *arguments, struct acp_boot *boot_out)
{
    if (arguments->host == NULL || arguments->port == NULL) {
        return -ENOENT;
    }
    if (arguments->ranks == 0 || arguments->ranks > UINT32_MAX || arguments->rank >= arguments->ranks) {
        fprintf(stderr, "acp: rank %llu of %llu\n", (unsigned long long)arguments->rank,
                (unsigned long long)arguments->ranks);
        return -EINVAL;
    }
    struct socket_boot *boot = calloc(1, sizeof *boot);
    int fd = boot != NULL ? host_connect(arguments->host, arguments->port) : -ENOMEM;
    uint32_t process = (uint32_t)arguments->rank;
    struct acp_wire_hello hello = {.number = process};
    secret_take(hello.secret);
    if (fd < 0 || !message_send(fd, ACP_WIRE_HELLO, &hello, sizeof hello)) {
        free(boot);
        if (fd >= 0) {
            (void)close(fd);
        }
        return fd < 0 ? fd : broken();
    }
    *boot = (struct socket_boot){.fd = fd, .processes = (uint32_t)arguments->ranks};
    snprintf(boot->device, sizeof boot->device, "%s", arguments->device != NULL ? arguments->device : "");
    *boot_out = (struct acp_boot){.ctx = boot,
                                  .process = process,
                                  .processes = boot->processes,
                                  .rank = process,
                                  .device = boot->device[0] != '\0' ? boot->device : NULL,
                                  .starter_bytes = arguments->starter_bytes,
                                  .connect_all = arguments->connect_all,
                                  .gather = gather,
                                  .abort = boot_abort,
                                  .close = boot_close};
    return 0;
}

int acp_boot_from_arguments(int *argc, char ***argv, struct acp_boot *boot_out)
{
    struct arguments arguments = {0};
    if (argc != NULL && argv != NULL) {
        int error = arguments_take(argc, *argv, &arguments);
        return error == 0 ? boot_make(&arguments, boot_out) : error;
    }
    int count = 0;
    char **own = arguments_own(&count);
    char *text = own != NULL ? own[0] : NULL;
    int error = own != NULL ? arguments_take(&count, own, &arguments) : -ENOENT;
    if (error == 0) {
        error = boot_make(&arguments, boot_out);
    }
    free(text);
    free(own);
    return error;
}
