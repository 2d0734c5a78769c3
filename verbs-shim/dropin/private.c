// What providers (libmlx4, libmlx5, libefa) import from the library, IBVERBS_PRIVATE_34.
//
// Programs link some providers with immediate binding, so the names must exist; but the devices here have no provider,
// so a provider that registers itself is never called, and the functions that it would call for a device are refused.
// The names, and which of them are data, are facts of Debian's binary; their header is not public, and these functions
// never read an argument.
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

// Returns an error number, as the originals do.
#define REFUSED(name)                                                                                                  \
    int name(void);                                                                                                    \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return EOPNOTSUPP;                                                                                             \
    }

// Returns an object.
#define NOTHING(name)                                                                                                  \
    void *name(void);                                                                                                  \
    void *name(void)                                                                                                   \
    {                                                                                                                  \
        errno = EOPNOTSUPP;                                                                                            \
        return NULL;                                                                                                   \
    }

#define IGNORED(name)                                                                                                  \
    void name(void);                                                                                                   \
    void name(void)                                                                                                    \
    {                                                                                                                  \
    }

// Set by providers of devices that can be removed while a program uses them.
extern bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;

IGNORED(verbs_register_driver_34)
IGNORED(verbs_set_ops)
IGNORED(verbs_init_cq)
IGNORED(verbs_uninit_context)
IGNORED(__verbs_log)
NOTHING(verbs_open_device)
NOTHING(_verbs_init_and_alloc_context)

// Returns the length that was read.
int ibv_read_ibdev_sysfs_file(void);
int ibv_read_ibdev_sysfs_file(void)
{
    errno = EOPNOTSUPP;
    return -1;
}

// Returns the attributes of a command.
unsigned __ioctl_final_num_attrs(void);
unsigned __ioctl_final_num_attrs(void)
{
    return 0;
}

REFUSED(execute_ioctl)
REFUSED(ibv_query_gid_type)
REFUSED(ibv_cmd_advise_mr)
REFUSED(ibv_cmd_alloc_dm)
REFUSED(ibv_cmd_alloc_mw)
REFUSED(ibv_cmd_alloc_pd)
REFUSED(ibv_cmd_attach_mcast)
REFUSED(ibv_cmd_close_xrcd)
REFUSED(ibv_cmd_create_ah)
REFUSED(ibv_cmd_create_counters)
REFUSED(ibv_cmd_create_cq)
REFUSED(ibv_cmd_create_cq_ex)
REFUSED(ibv_cmd_create_flow)
REFUSED(ibv_cmd_create_flow_action_esp)
REFUSED(ibv_cmd_create_qp)
REFUSED(ibv_cmd_create_qp_ex2)
REFUSED(ibv_cmd_create_qp_ex)
REFUSED(ibv_cmd_create_rwq_ind_table)
REFUSED(ibv_cmd_create_srq)
REFUSED(ibv_cmd_create_srq_ex)
REFUSED(ibv_cmd_create_wq)
REFUSED(ibv_cmd_dealloc_mw)
REFUSED(ibv_cmd_dealloc_pd)
REFUSED(ibv_cmd_dereg_mr)
REFUSED(ibv_cmd_destroy_ah)
REFUSED(ibv_cmd_destroy_counters)
REFUSED(ibv_cmd_destroy_cq)
REFUSED(ibv_cmd_destroy_flow)
REFUSED(ibv_cmd_destroy_flow_action)
REFUSED(ibv_cmd_destroy_qp)
REFUSED(ibv_cmd_destroy_rwq_ind_table)
REFUSED(ibv_cmd_destroy_srq)
REFUSED(ibv_cmd_destroy_wq)
REFUSED(ibv_cmd_detach_mcast)
REFUSED(ibv_cmd_free_dm)
REFUSED(ibv_cmd_get_context)
REFUSED(ibv_cmd_modify_cq)
REFUSED(ibv_cmd_modify_flow_action_esp)
REFUSED(ibv_cmd_modify_qp)
REFUSED(ibv_cmd_modify_qp_ex)
REFUSED(ibv_cmd_modify_srq)
REFUSED(ibv_cmd_modify_wq)
REFUSED(ibv_cmd_open_qp)
REFUSED(ibv_cmd_open_xrcd)
REFUSED(ibv_cmd_poll_cq)
REFUSED(ibv_cmd_post_recv)
REFUSED(ibv_cmd_post_send)
REFUSED(ibv_cmd_post_srq_recv)
REFUSED(ibv_cmd_query_context)
REFUSED(ibv_cmd_query_device_any)
REFUSED(ibv_cmd_query_mr)
REFUSED(ibv_cmd_query_port)
REFUSED(ibv_cmd_query_qp)
REFUSED(ibv_cmd_query_srq)
REFUSED(ibv_cmd_read_counters)
REFUSED(ibv_cmd_reg_dm_mr)
REFUSED(ibv_cmd_reg_dmabuf_mr)
REFUSED(ibv_cmd_reg_mr)
REFUSED(ibv_cmd_req_notify_cq)
REFUSED(ibv_cmd_rereg_mr)
REFUSED(ibv_cmd_resize_cq)
