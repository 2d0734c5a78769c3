// Names that Debian's libibverbs has for programs of before 2007 and for providers' libraries: they are there, and have
// no devices.
#include <dlfcn.h>
#include <errno.h>

#include "tests/shim/test.h"

static void *symbol(const char *name, const char *version)
{
    void *library = dlopen(TCASIM_BINARY_DIR "/tests/dropin/lib/libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    return library != NULL ? dlvsym(library, name, version) : NULL;
}

TEST(DropinOld, AProgramOfBefore2007GetsAnEmptyListOfDevices)
{
    void *(*get)(int *) = (__typeof__(get))symbol("ibv_get_device_list", "IBVERBS_1.0");
    int count = 7;
    ASSERT_NOT_NULL((const void *)get);
    errno = 0;
    EXPECT_NULL(get(&count));
    EXPECT_EQ(errno, ENOSYS);
    EXPECT_EQ(count, 0);
    EXPECT_NULL(get(NULL));
}

TEST(DropinOld, AProviderThatReadsAFileOfADeviceIsRefused)
{
    int (*read_file)(void) = (__typeof__(read_file))symbol("ibv_read_ibdev_sysfs_file", "IBVERBS_PRIVATE_34");
    ASSERT_NOT_NULL((const void *)read_file);
    errno = 0;
    EXPECT_EQ(read_file(), -1);
    EXPECT_EQ(errno, EOPNOTSUPP);
}
