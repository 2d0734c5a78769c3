// Users and groups are those of the machine's files (/etc/passwd, /etc/group). Other sources (nsswitch.conf) would be
// servers, which answer in real time, or libraries that not every machine has. Only before the first question: the C
// library then reads nsswitch.conf, which moves what the program allocates.
//
// Leaves out: lists of all users and groups (getpwent, getgrent), and initgroups.
#include <grp.h>
#include <nss.h>
#include <pwd.h>

#include "verbs-shim/world/world.h"

static void files_choose(void)
{
    static bool chosen; // one thread runs at a time, and doing it twice is no harm
    if (!chosen && attach_environment() != NULL) {
        (void)__nss_configure_lookup("passwd", "files");
        (void)__nss_configure_lookup("group", "files");
        chosen = true;
    }
}

#define QUESTION(type, name, parameters, ...)                                                                          \
    type name parameters                                                                                               \
    {                                                                                                                  \
        files_choose();                                                                                                \
        return WORLD_REAL(name)(__VA_ARGS__);                                                                          \
    }

QUESTION(struct passwd *, getpwuid, (uid_t user), user)
QUESTION(struct passwd *, getpwnam, (const char *name), name)
QUESTION(struct group *, getgrgid, (gid_t group), group)
QUESTION(struct group *, getgrnam, (const char *name), name)
QUESTION(int, getpwuid_r, (uid_t user, struct passwd *restrict entry, char *restrict buffer, size_t bytes,
                           struct passwd **restrict found),
         user, entry, buffer, bytes, found)
QUESTION(int, getpwnam_r, (const char *restrict name, struct passwd *restrict entry, char *restrict buffer,
                           size_t bytes, struct passwd **restrict found),
         name, entry, buffer, bytes, found)
QUESTION(int, getgrgid_r, (gid_t group, struct group *restrict entry, char *restrict buffer, size_t bytes,
                           struct group **restrict found),
         group, entry, buffer, bytes, found)
QUESTION(int, getgrnam_r, (const char *restrict name, struct group *restrict entry, char *restrict buffer,
                           size_t bytes, struct group **restrict found),
         name, entry, buffer, bytes, found)
