#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/acp/acprun.h"

static const char help[] =
    "usage: acprun -n N [options] program [its arguments]\n"
    "\n"
    "Starts N ranks of an ACP program, lets them meet, and waits for their end. When one fails the others are\n"
    "ended, and acprun's status is that of the first one that failed.\n"
    "\n"
    "  -n, -np N          number of ranks\n"
    "  --hosts A,B,...    where they run, in turn; default: all on this host\n"
    "  -machinefile FILE  the same from a file, a host a line (also -nodefile)\n"
    "  -dev DEVICE        device of libibverbs (tca0, ibsim0); default: the first one with an active port\n"
    "  -smemsize BYTES    starter memory of each rank; default 10240\n"
    "  -connect start     connect all ranks at the start; default: first-use\n"
    "  -ssh COMMAND       starts programs on other hosts; default ssh\n"
    "  -v                 print what is started\n"
    "  -h, --help         this text\n";

__attribute__((noreturn)) static void refuse(const char *what, const char *value)
{
    fprintf(stderr, "acprun: %s%s\nacprun --help shows the options\n", what, value);
    exit(2);
}

static uint64_t number(const char *name, const char *text, uint64_t most)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value == 0 || value > most) {
        fprintf(stderr, "acprun: %s %s: a number from 1 to %llu is wanted\n", name, text, (unsigned long long)most);
        exit(2);
    }
    return value;
}

static void host_add(struct acprun_options *options, const char *host)
{
    if (host[0] == '-') { // the remote shell would take it for an option
        refuse("not a host name: ", host);
    }
    if (options->host_count == ACPRUN_HOSTS_MAX) {
        refuse("more hosts than it can have: ", host);
    }
    options->hosts[options->host_count++] = host;
}

// The names point into the copy.
static void hosts_split(struct acprun_options *options, const char *list, const char *separators)
{
    char *copy = strdup(list), *rest = NULL;
    for (char *host = copy != NULL ? strtok_r(copy, separators, &rest) : NULL; host != NULL;
         host = strtok_r(NULL, separators, &rest)) {
        host_add(options, host);
    }
}

// The first word of a line is a host; # begins a comment.
static void hosts_read(struct acprun_options *options, const char *path)
{
    FILE *file = fopen(path, "r");
    char line[256], *rest;
    if (file == NULL) {
        fprintf(stderr, "acprun: %s: %s\n", path, strerror(errno));
        exit(2);
    }
    while (fgets(line, sizeof line, file) != NULL) {
        const char *word = strtok_r(line, " \t\r\n", &rest);
        const char *host = word != NULL && *word != '#' ? strdup(word) : NULL;
        if (host != NULL) {
            host_add(options, host);
        }
    }
    (void)fclose(file);
    if (options->host_count == 0) {
        refuse("no host in ", path);
    }
}

// An option with a value, with one dash or two, as both are in use.
static void option_take(struct acprun_options *options, const char *name, const char *value)
{
    const char *plain = name + (name[1] == '-' ? 2 : 1);
    if (value == NULL) {
        refuse(name, " wants a value");
    }
    if (strcmp(plain, "n") == 0 || strcmp(plain, "np") == 0) {
        options->ranks = (uint32_t)number(name, value, ACPRUN_RANKS_MAX);
    } else if (strcmp(plain, "hosts") == 0 || strcmp(plain, "host") == 0) {
        hosts_split(options, value, ",");
    } else if (strcmp(plain, "machinefile") == 0 || strcmp(plain, "nodefile") == 0) {
        hosts_read(options, value);
    } else if (strcmp(plain, "dev") == 0) {
        options->device = value;
    } else if (strcmp(plain, "smemsize") == 0) {
        options->starter_bytes = number(name, value, UINT64_C(1) << 34);
    } else if (strcmp(plain, "connect") == 0) {
        options->connect_at_start = strcmp(value, "start") == 0;
        if (!options->connect_at_start && strcmp(value, "first-use") != 0) {
            refuse("-connect is start or first-use, not ", value);
        }
    } else if (strcmp(plain, "ssh") == 0) {
        options->shell = value;
    } else {
        refuse("there is no option ", name);
    }
}

void acprun_options_read(int argc, char **argv, struct acprun_options *options_out)
{
    int i = 1;
    *options_out = (struct acprun_options){.shell = "ssh"};
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
            (void)fputs(help, stdout);
            exit(0);
        }
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (strcmp(argv[i], "-v") == 0) {
            options_out->verbose = true;
            continue;
        }
        option_take(options_out, argv[i], argv[i + 1]);
        i++;
    }
    options_out->program = argv + i;
    if (i >= argc) {
        refuse("no program", "");
    }
    if (options_out->ranks == 0) {
        refuse("how many ranks? -n N", "");
    }
}
