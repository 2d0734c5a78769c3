// What programs asked for and their nodes have not, as the shim has noted it (verbs-shim/world/asked.c).
#include <stdio.h>
#include <string.h>

#include "sim/attach/internal.h"
#include "sim/kernel/regular_file.h"
#include "verbs-shim/attach/identity.h"

// Is the line one of the texts that are separated by ", "?
static bool is_listed(const char *list, const char *line)
{
    size_t bytes = strlen(line);
    for (const char *at = strstr(list, line); at != NULL; at = strstr(at + 1, line)) {
        bool begins = at == list || strncmp(at - 2, ", ", 2) == 0;
        if (begins && (at[bytes] == '\0' || strncmp(at + bytes, ", ", 2) == 0)) {
            return true;
        }
    }
    return false;
}

void attach_asked_read(struct attach_server *server)
{
    char path[ATTACH_SYSFS_BYTES], line[256], *list = server->result->asked;
    snprintf(path, sizeof path, "%s/" ATTACH_ASKED_FILE, server->scratch.directory);
    FILE *file = sim_regular_open(path);
    size_t used = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        size_t room = sizeof server->result->asked - used;
        if (strlen(line) + sizeof ", ..." > room) {
            snprintf(list + used, room, ", ...");
            break;
        }
        if (line[0] != '\0' && !is_listed(list, line)) {
            used += (size_t)snprintf(list + used, room, "%s%s", used > 0 ? ", " : "", line);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}
