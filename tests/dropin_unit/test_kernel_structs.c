// The kernel's structs and those of programs, and files of the system (verbs-shim/dropin/kernel_structs.c). The names of
// the fields are those of <rdma/ib_user_verbs.h> and <rdma/ib_user_sa.h>.
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/shim/test.h"

void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, const struct ib_uverbs_qp_attr *from);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, const struct ib_user_path_rec *from);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, const struct ibv_sa_path_rec *from);
int ibv_read_sysfs_file(const char *folder, const char *file, char *text_out, size_t bytes);

TEST(DropinStructs, AQueuePairHasTwoPaths)
{
    struct ib_uverbs_qp_attr from = {0};
    struct ibv_qp_attr to;
    memset(&to, 0xee, sizeof to);
    from.ah_attr.dlid = 5;
    from.ah_attr.port_num = 1;
    from.alt_ah_attr.dlid = 9;
    from.alt_ah_attr.port_num = 2;
    from.alt_port_num = 2;
    from.alt_timeout = 14;
    ibv_copy_qp_attr_from_kern(&to, &from);
    EXPECT_EQ(to.ah_attr.dlid, 5);
    EXPECT_EQ(to.ah_attr.port_num, 1);
    EXPECT_EQ(to.alt_ah_attr.dlid, 9);
    EXPECT_EQ(to.alt_ah_attr.port_num, 2);
    EXPECT_EQ(to.alt_port_num, 2);
    EXPECT_EQ(to.alt_timeout, 14);
}

TEST(DropinStructs, APathLeadsFromItsSourceToItsDestinationInBothForms)
{
    struct ibv_sa_path_rec path = {.dlid = 7, .slid = 8, .mtu = 4, .rate = 3, .sl = 2}, back;
    struct ib_user_path_rec kernels;
    memset(path.dgid.raw, 0xd, sizeof path.dgid.raw);
    memset(path.sgid.raw, 0x5, sizeof path.sgid.raw);
    ibv_copy_path_rec_to_kern(&kernels, &path);
    EXPECT_MEMEQ(kernels.dgid, path.dgid.raw, sizeof kernels.dgid);
    EXPECT_MEMEQ(kernels.sgid, path.sgid.raw, sizeof kernels.sgid);
    EXPECT_EQ(kernels.dlid, 7);
    EXPECT_EQ(kernels.slid, 8);
    ibv_copy_path_rec_from_kern(&back, &kernels);
    EXPECT_MEMEQ(back.dgid.raw, path.dgid.raw, sizeof back.dgid.raw);
    EXPECT_MEMEQ(back.sgid.raw, path.sgid.raw, sizeof back.sgid.raw);
    EXPECT_EQ(back.mtu, 4);
    EXPECT_EQ(back.rate, 3);
    EXPECT_EQ(back.sl, 2);
}

// --- files ----------------------------------------------------------------------------------------------------------

static char text[16];

// The length that is read of a file with this text, in so much room.
static int read_of(const char *content, size_t room)
{
    char folder[] = "/tmp/tcasim-sysfs-XXXXXX", path[64];
    if (mkdtemp(folder) == NULL) {
        return -2;
    }
    snprintf(path, sizeof path, "%s/file", folder);
    FILE *file = fopen(path, "w");
    if (file != NULL) {
        (void)fputs(content, file);
        (void)fclose(file);
    }
    memset(text, '#', sizeof text);
    int length = ibv_read_sysfs_file(folder, "file", text, room);
    (void)unlink(path);
    (void)rmdir(folder);
    return length;
}

TEST(DropinStructs, AFileOfTheSystemIsAStringWithoutItsNewline)
{
    EXPECT_EQ(read_of("ACTIVE\n", 8), 6);
    EXPECT_STREQ(text, "ACTIVE");
    EXPECT_EQ(text[7], '#');
    EXPECT_EQ(ibv_read_sysfs_file("/nonexistent", "file", text, sizeof text), -1);
}

// libibverbs' callers give the length of the text that they expect.
TEST(DropinStructs, AFileThatFillsTheRoomHasNothingBehindIt)
{
    EXPECT_EQ(read_of("12345678", 8), 8);
    EXPECT_MEMEQ(text, "12345678########", sizeof text);
    EXPECT_EQ(read_of("123456789", 8), 8);
    EXPECT_MEMEQ(text, "12345678########", sizeof text);
}
