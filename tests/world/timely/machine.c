// What a program sees of the machine is its node: a Xeon E5-2670 with eight cores and 8 GiB, two interfaces, the names of
// the nodes. Played on node0 of two nodes. No row takes any time.
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <ifaddrs.h>
#include <limits.h>
#include <mntent.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <termios.h>
#include <unistd.h>

#include "timely.h"

// Programs built with _FORTIFY_SOURCE call these.
char *__realpath_chk(const char *path, char *resolved, size_t room);
ssize_t __readlink_chk(const char *path, char *target, size_t bytes, size_t room);
ssize_t __readlinkat_chk(int folder, const char *path, char *target, size_t bytes, size_t room);

enum { TRUE = 1, CORES = 8, PAGE_BYTES = 4096, MEMORY_MIB = 8192, TEXT_BYTES = 256 };
#define CPUS "/sys/devices/system/cpu"

// ROW(name, what it finds out)
#define ROW(name, ...)                                                                                                 \
    static long by_##name(struct timely_scene *scene)                                                                  \
    {                                                                                                                  \
        (void)scene;                                                                                                   \
        return timely_result(__VA_ARGS__);                                                                             \
    }

// --- processors and memory ------------------------------------------------------------------------------------------

ROW(get_nprocs, get_nprocs())
ROW(get_nprocs_conf, get_nprocs_conf())
ROW(sysconf, sysconf(_SC_NPROCESSORS_ONLN))
ROW(sysconf_cache, sysconf(_SC_LEVEL3_CACHE_SIZE))
ROW(get_phys_pages, get_phys_pages() / (1024 * 1024 / PAGE_BYTES))
ROW(get_avphys_pages, get_avphys_pages() / (1024 * 1024 / PAGE_BYTES))
ROW(getauxval, (long)getauxval(AT_HWCAP2))

enum { UNKNOWN_FLAG = 1 << 16 };

static long by_getrandom(struct timely_scene *scene)
{
    char bytes[3];
    (void)scene;
    return getrandom(bytes, sizeof bytes, 0) == sizeof bytes ? timely_result(getrandom(bytes, 1, UNKNOWN_FLAG)) : 0;
}

static long by_sysinfo(struct timely_scene *scene)
{
    struct sysinfo about = {0};
    (void)scene;
    return sysinfo(&about) == 0 ? (long)(about.totalram * about.mem_unit >> 20) : -1;
}

static long by_getloadavg(struct timely_scene *scene)
{
    double loads[3] = {1, 1, 1};
    (void)scene;
    return getloadavg(loads, 3) == 3 && loads[0] + loads[1] + loads[2] == 0;
}

// --- files ----------------------------------------------------------------------------------------------------------

static long text_is(FILE *file, const char *text)
{
    char line[TEXT_BYTES] = "";
    bool read = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    return read && strcmp(line, text) == 0;
}

// The model name has the frequency of the counter.
static long by_fopen(struct timely_scene *scene)
{
    char line[TEXT_BYTES] = "";
    FILE *file = fopen("/proc/cpuinfo", "re");
    (void)scene;
    while (file != NULL && strncmp(line, "model name", 10) != 0 && fgets(line, sizeof line, file) != NULL) {
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return strcmp(line, "model name\t: Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz\n") == 0;
}

// Programs that list a tree open "/", and then paths that are relative to it.
static long by_openat(struct timely_scene *scene)
{
    int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = openat(root, "sys/devices/system/cpu/online", O_RDONLY);
    (void)scene;
    (void)close(root);
    return text_is(fd >= 0 ? fdopen(fd, "r") : NULL, "0-7\n");
}

static int is_core(const struct dirent *entry)
{
    return strncmp(entry->d_name, "cpu", 3) == 0;
}

static int is_core64(const struct dirent64 *entry)
{
    return strncmp(entry->d_name, "cpu", 3) == 0;
}

static void list_free(void *list, int count)
{
    for (int i = 0; i < count; i++) {
        free(((void **)list)[i]);
    }
    free(list);
}

static long by_scandir(struct timely_scene *scene)
{
    struct dirent **list = NULL;
    int count = scandir(CPUS, &list, is_core, NULL);
    (void)scene;
    list_free(list, count);
    return count;
}

static long by_scandir64(struct timely_scene *scene)
{
    struct dirent64 **list = NULL;
    int count = scandir64(CPUS, &list, is_core64, NULL);
    (void)scene;
    list_free(list, count);
    return count;
}

static long by_setmntent(struct timely_scene *scene)
{
    FILE *mounts = setmntent("/proc/mounts", "r");
    const struct mntent *first = mounts != NULL ? getmntent(mounts) : NULL;
    (void)scene;
    bool is = first != NULL && strcmp(first->mnt_fsname, "/dev/root") == 0;
    if (mounts != NULL) {
        (void)endmntent(mounts);
    }
    return is;
}

static long by_chdir(struct timely_scene *scene)
{
    char before[TEXT_BYTES];
    (void)scene;
    bool moved = getcwd(before, sizeof before) != NULL && chdir(CPUS) == 0;
    long is = text_is(fopen("online", "r"), "0-7\n");
    return moved && chdir(before) == 0 && is;
}

// The link leads to what nodes with the same processor share.
static bool leads_away(const char *target, long bytes)
{
    return bytes > 7 && strncmp(target + bytes - 7, "/system", 7) == 0 && target[0] == '/';
}

#define LINK_ROW(name, ...)                                                                                            \
    static long by_##name(struct timely_scene *scene)                                                                  \
    {                                                                                                                  \
        char target[TEXT_BYTES] = "";                                                                                  \
        (void)scene;                                                                                                   \
        return leads_away(target, __VA_ARGS__);                                                                        \
    }
#define SYSTEM "/sys/devices/system"
// The folder is there on every machine, and the node has none.
#define ATTRIBUTE_ROW(name, ...)                                                                                       \
    static long by_##name(struct timely_scene *scene)                                                                  \
    {                                                                                                                  \
        char value[TEXT_BYTES];                                                                                        \
        (void)scene;                                                                                                   \
        return name(__VA_ARGS__) < 0 ? -errno : 0;                                                                     \
    }
#define POWER "/sys/power"
ATTRIBUTE_ROW(getxattr, POWER, "user.name", value, sizeof value)
ATTRIBUTE_ROW(lgetxattr, POWER, "user.name", value, sizeof value)
ATTRIBUTE_ROW(listxattr, POWER, value, sizeof value)
ATTRIBUTE_ROW(llistxattr, POWER, value, sizeof value)
LINK_ROW(readlink_chk, __readlink_chk(SYSTEM, target, sizeof target, sizeof target))
LINK_ROW(readlinkat, readlinkat(AT_FDCWD, SYSTEM, target, sizeof target))
LINK_ROW(readlinkat_chk, __readlinkat_chk(AT_FDCWD, SYSTEM, target, sizeof target, sizeof target))

static long is_absolute(char *path, bool frees)
{
    bool is = path != NULL && path[0] == '/' && strncmp(path, "/sys", 4) != 0;
    if (frees) {
        free(path);
    }
    return is;
}

static long by_realpath_chk(struct timely_scene *scene)
{
    char resolved[PATH_MAX];
    (void)scene;
    return is_absolute(__realpath_chk(SYSTEM, resolved, sizeof resolved), false);
}

ROW(canonicalize_file_name, is_absolute(canonicalize_file_name(SYSTEM), true))
// What a node has not.
ROW(access, access("/dev/dri", F_OK))

// --- names ----------------------------------------------------------------------------------------------------------

static struct sockaddr_in address_of(const char *name)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (getaddrinfo(name, NULL, &hints, &found) == 0) {
        memcpy(&address, found->ai_addr, sizeof address);
        freeaddrinfo(found);
    }
    return address;
}


static long by_unknown(struct timely_scene *scene)
{
    struct addrinfo *found = NULL;
    (void)scene;
    return getaddrinfo("somebody.example.org", NULL, NULL, &found);
}

ROW(localhost, (long)ntohl(address_of("localhost").sin_addr.s_addr))

static long by_canonical_name(struct timely_scene *scene)
{
    const struct addrinfo hints = {.ai_flags = AI_CANONNAME, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    (void)scene;
    bool is = getaddrinfo("node1", NULL, &hints, &found) == 0 && strcmp(found->ai_canonname, "node1") == 0;
    freeaddrinfo(found);
    return is;
}

// Both families, in a fixed order.
static long by_any(struct timely_scene *scene)
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    (void)scene;
    long order = getaddrinfo(NULL, "80", &hints, &found) == 0 && found->ai_next != NULL
                     ? found->ai_family * 100 + found->ai_next->ai_family
                     : -1;
    freeaddrinfo(found);
    return order;
}

static long by_getnameinfo(struct timely_scene *scene)
{
    char name[64] = "", service[16] = "";
    struct sockaddr_in address = address_of("node1");
    address.sin_port = htons(7);
    (void)scene;
    return getnameinfo((const struct sockaddr *)&address, sizeof address, name, sizeof name, service, sizeof service,
                       NI_NUMERICSERV) == 0 &&
           strcmp(name, "node1") == 0 && strcmp(service, "7") == 0;
}

static long is_node1(const struct hostent *entry)
{
    return entry != NULL && strcmp(entry->h_name, "node1") == 0 && entry->h_addrtype == AF_INET;
}

static long by_gethostbyaddr(struct timely_scene *scene)
{
    struct sockaddr_in address = address_of("node1");
    (void)scene;
    return is_node1(gethostbyaddr(&address.sin_addr, sizeof address.sin_addr, AF_INET));
}

ROW(gethostbyname2, is_node1(gethostbyname2("node1", AF_INET)))
ROW(gethostbyname_of_nobody, gethostbyname("somebody.example.org") == NULL ? h_errno : 0)

static long by_gethostbyaddr_r(struct timely_scene *scene)
{
    char memory[1024];
    struct hostent entry, *found = NULL;
    struct sockaddr_in address = address_of("node1");
    int error;
    (void)scene;
    return gethostbyaddr_r(&address.sin_addr, sizeof address.sin_addr, AF_INET, &entry, memory, sizeof memory, &found,
                           &error) == 0 &&
           found == &entry;
}

static long by_gethostbyname2_r(struct timely_scene *scene)
{
    char memory[1024];
    struct hostent entry, *found = NULL;
    int error;
    (void)scene;
    return gethostbyname2_r("node1", AF_INET, &entry, memory, sizeof memory, &found, &error) == 0 && found == &entry;
}

// --- interfaces -----------------------------------------------------------------------------------------------------

static long by_getifaddrs(struct timely_scene *scene)
{
    struct ifaddrs *list = NULL;
    (void)scene;
    bool is = getifaddrs(&list) == 0 && strcmp(list->ifa_name, "lo") == 0 &&
              strcmp(list->ifa_next->ifa_name, "eth0") == 0 && list->ifa_next->ifa_next == NULL;
    freeifaddrs(list);
    return is;
}

static long by_if_indextoname(struct timely_scene *scene)
{
    char name[IF_NAMESIZE];
    (void)scene;
    return if_indextoname(2, name) == name && strcmp(name, "eth0") == 0 && if_indextoname(3, name) == NULL;
}

static long by_if_nameindex(struct timely_scene *scene)
{
    struct if_nameindex *list = if_nameindex();
    (void)scene;
    bool is = strcmp(list[1].if_name, "eth0") == 0 && list[1].if_index == 2 && list[2].if_index == 0;
    if_freenameindex(list);
    return is;
}

ROW(if_nametoindex, (long)if_nametoindex("eth0"))

// Each request that a library makes about an interface.
static long by_ioctl(struct timely_scene *scene)
{
    struct ifreq about = {.ifr_name = "eth0"}, missing = {.ifr_name = "eth7"};
    (void)scene;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    bool is = ioctl(fd, SIOCGIFINDEX, &about) == 0 && about.ifr_ifindex == 2;
    is = is && ioctl(fd, SIOCGIFMTU, &about) == 0 && about.ifr_mtu == 1500;
    is = is && ioctl(fd, SIOCGIFFLAGS, &about) == 0 && (about.ifr_flags & IFF_UP) != 0;
    is = is && ioctl(fd, SIOCGIFNETMASK, &about) == 0 && ioctl(fd, SIOCGIFHWADDR, &about) == 0;
    is = is && ioctl(fd, SIOCGIFINDEX, &missing) == -1 && errno == ENODEV;
    (void)close(fd);
    return is;
}

// --- what is reached ------------------------------------------------------------------------------------------------

static long connect_to(const char *address, uint16_t port, int type)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    (void)inet_aton(address, &to.sin_addr);
    int fd = socket(AF_INET, type, 0);
    long result = timely_result(connect(fd, (const struct sockaddr *)&to, sizeof to));
    (void)close(fd);
    return result;
}

ROW(connect_outside, connect_to("192.0.2.1", 80, SOCK_STREAM))
ROW(connect_display, connect_to("127.0.0.1", 6000, SOCK_STREAM))
ROW(connect_loopback, connect_to("127.0.0.53", 53, SOCK_DGRAM))

// A program of the run that listens at a port of displays is reached.
static long by_connect_own_display(struct timely_scene *scene)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(6063), .sin_addr.s_addr = htonl(INADDR_ANY)};
    (void)scene;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool listens = bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0;
    long result = connect_to("127.0.0.1", 6063, SOCK_STREAM);
    (void)close(fd);
    return listens ? result : 1;
}

static long by_connect_local(struct timely_scene *scene)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "/tmp/.X11-unix/X0"};
    (void)scene;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    long result = timely_result(connect(fd, (const struct sockaddr *)&to, sizeof to));
    (void)close(fd);
    return result;
}

static long by_sendto(struct timely_scene *scene)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};
    (void)scene;
    (void)inet_aton("192.0.2.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    long result = timely_result(sendto(fd, "x", 1, 0, (const struct sockaddr *)&to, sizeof to));
    (void)close(fd);
    return result;
}

ROW(socket, socket(AF_NETLINK, SOCK_RAW, 0))

// --- users: root is in every machine's files, and this user on none -------------------------------------------------

enum { NOBODY_HERE = 4000000000u };

ROW(getpwuid, getpwuid(0) != NULL && strcmp(getpwuid(0)->pw_name, "root") == 0 && getpwuid(NOBODY_HERE) == NULL)
ROW(getpwnam, getpwnam("root") != NULL && getpwnam("somebody-else") == NULL)
ROW(getgrgid, getgrgid(0) != NULL && getgrgid(NOBODY_HERE) == NULL)
ROW(getgrnam, getgrnam("root") != NULL && getgrnam("somebody-else") == NULL)

#define USER_ROW(function, type, key)                                                                                  \
    static long by_##function(struct timely_scene *scene)                                                              \
    {                                                                                                                  \
        char buffer[4096];                                                                                             \
        struct type entry, *found = NULL;                                                                              \
        (void)scene;                                                                                                   \
        return function(key, &entry, buffer, sizeof buffer, &found) == 0 && found == &entry;                           \
    }
USER_ROW(getpwuid_r, passwd, 0)
USER_ROW(getpwnam_r, passwd, "root")
USER_ROW(getgrgid_r, group, 0)
USER_ROW(getgrnam_r, group, "root")

// A pipe that takes the run's output is a device; the program's own pipes are pipes.
#define FSTAT_ROW(function, type)                                                                                      \
    static long by_##function(struct timely_scene *scene)                                                              \
    {                                                                                                                  \
        struct type own, output;                                                                                       \
        int ends[2];                                                                                                   \
        (void)scene;                                                                                                   \
        bool seen = pipe(ends) == 0 && function(ends[0], &own) == 0 && function(STDOUT_FILENO, &output) == 0;          \
        return seen && close(ends[0]) == 0 && close(ends[1]) == 0 && S_ISFIFO(own.st_mode) &&                          \
               !S_ISFIFO(output.st_mode);                                                                              \
    }
FSTAT_ROW(fstat, stat)
FSTAT_ROW(fstat64, stat64)

// The run's own input is not a terminal, nor is its output.
ROW(isatty, isatty(STDIN_FILENO) + isatty(STDOUT_FILENO))
ROW(tcgetattr, tcgetattr(STDIN_FILENO, &(struct termios){0}))
ROW(tcsetattr, tcsetattr(STDIN_FILENO, TCSANOW, &(struct termios){0}))

static const struct timely_row rows[] = {
    TIMELY_ROW(FUNCTION, "get_nprocs", by_get_nprocs, CORES),
    TIMELY_ROW(FUNCTION, "get_nprocs_conf", by_get_nprocs_conf, CORES),
    TIMELY_ROW(FUNCTION, "sysconf", by_sysconf, CORES),
    TIMELY_ROW(FUNCTION, "sysconf", by_sysconf_cache, 20 << 20),
    TIMELY_ROW(FUNCTION, "get_phys_pages", by_get_phys_pages, MEMORY_MIB),
    TIMELY_ROW(FUNCTION, "get_avphys_pages", by_get_avphys_pages, MEMORY_MIB / 16 * 15),
    TIMELY_ROW(FUNCTION, "sysinfo", by_sysinfo, MEMORY_MIB),
    TIMELY_ROW(FUNCTION, "getloadavg", by_getloadavg, TRUE),
    TIMELY_ROW(FUNCTION, "getauxval", by_getauxval, 0),
    TIMELY_ROW(FUNCTION, "getrandom", by_getrandom, -EINVAL),
    TIMELY_ROW(FUNCTION, "fopen", by_fopen, TRUE),
    TIMELY_ROW(FUNCTION, "openat", by_openat, TRUE),
    TIMELY_ROW(FUNCTION, "scandir", by_scandir, CORES),
    TIMELY_ROW(FUNCTION, "scandir64", by_scandir64, CORES),
    TIMELY_ROW(FUNCTION, "setmntent", by_setmntent, TRUE),
    TIMELY_ROW(FUNCTION, "chdir", by_chdir, TRUE),
    TIMELY_ROW(FUNCTION, "__readlink_chk", by_readlink_chk, TRUE),
    TIMELY_ROW(FUNCTION, "readlinkat", by_readlinkat, TRUE),
    TIMELY_ROW(FUNCTION, "__readlinkat_chk", by_readlinkat_chk, TRUE),
    TIMELY_ROW(FUNCTION, "getxattr", by_getxattr, -ENOENT),
    TIMELY_ROW(FUNCTION, "lgetxattr", by_lgetxattr, -ENOENT),
    TIMELY_ROW(FUNCTION, "listxattr", by_listxattr, -ENOENT),
    TIMELY_ROW(FUNCTION, "llistxattr", by_llistxattr, -ENOENT),
    TIMELY_ROW(FUNCTION, "__realpath_chk", by_realpath_chk, TRUE),
    TIMELY_ROW(FUNCTION, "canonicalize_file_name", by_canonicalize_file_name, TRUE),
    TIMELY_ROW(FUNCTION, "access", by_access, -ENOENT),
    TIMELY_ROW(FUNCTION, "getaddrinfo", by_unknown, EAI_NONAME),
    TIMELY_ROW(FUNCTION, "getaddrinfo", by_localhost, INADDR_LOOPBACK),
    TIMELY_ROW(FUNCTION, "getaddrinfo", by_canonical_name, TRUE),
    TIMELY_ROW(FUNCTION, "getaddrinfo", by_any, AF_INET * 100 + AF_INET6),
    TIMELY_ROW(FUNCTION, "getnameinfo", by_getnameinfo, TRUE),
    TIMELY_ROW(FUNCTION, "gethostbyaddr", by_gethostbyaddr, TRUE),
    TIMELY_ROW(FUNCTION, "gethostbyaddr_r", by_gethostbyaddr_r, TRUE),
    TIMELY_ROW(FUNCTION, "gethostbyname2", by_gethostbyname2, TRUE),
    TIMELY_ROW(FUNCTION, "gethostbyname2_r", by_gethostbyname2_r, TRUE),
    TIMELY_ROW(FUNCTION, "gethostbyname", by_gethostbyname_of_nobody, HOST_NOT_FOUND),
    TIMELY_ROW(FUNCTION, "getifaddrs", by_getifaddrs, TRUE),
    TIMELY_ROW(FUNCTION, "if_indextoname", by_if_indextoname, TRUE),
    TIMELY_ROW(FUNCTION, "if_nameindex", by_if_nameindex, TRUE),
    TIMELY_ROW(FUNCTION, "if_nametoindex", by_if_nametoindex, 2),
    TIMELY_ROW(FUNCTION, "ioctl", by_ioctl, TRUE),
    TIMELY_ROW(FUNCTION, "connect", by_connect_outside, -ENETUNREACH),
    TIMELY_ROW(FUNCTION, "connect", by_connect_display, -ECONNREFUSED),
    TIMELY_ROW(FUNCTION, "connect", by_connect_loopback, -ECONNREFUSED),
    TIMELY_ROW(FUNCTION, "connect", by_connect_own_display, 0),
    TIMELY_ROW(FUNCTION, "connect", by_connect_local, -ENOENT),
    TIMELY_ROW(FUNCTION, "sendto", by_sendto, -ENETUNREACH),
    TIMELY_ROW(FUNCTION, "socket", by_socket, -EAFNOSUPPORT),
    TIMELY_ROW(FUNCTION, "getgrgid", by_getgrgid, TRUE),
    TIMELY_ROW(FUNCTION, "getgrgid_r", by_getgrgid_r, TRUE),
    TIMELY_ROW(FUNCTION, "getgrnam", by_getgrnam, TRUE),
    TIMELY_ROW(FUNCTION, "getgrnam_r", by_getgrnam_r, TRUE),
    TIMELY_ROW(FUNCTION, "getpwnam", by_getpwnam, TRUE),
    TIMELY_ROW(FUNCTION, "getpwnam_r", by_getpwnam_r, TRUE),
    TIMELY_ROW(FUNCTION, "getpwuid", by_getpwuid, TRUE),
    TIMELY_ROW(FUNCTION, "getpwuid_r", by_getpwuid_r, TRUE),
    TIMELY_ROW(FUNCTION, "fstat", by_fstat, TRUE),
    TIMELY_ROW(FUNCTION, "fstat64", by_fstat64, TRUE),
    TIMELY_ROW(FUNCTION, "isatty", by_isatty, 0),
    TIMELY_ROW(FUNCTION, "tcgetattr", by_tcgetattr, -ENOTTY),
    TIMELY_ROW(FUNCTION, "tcsetattr", by_tcsetattr, -ENOTTY),
};
TIMELY_THEME(machine, rows);
