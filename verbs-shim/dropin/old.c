// The symbol versions from before 2007 (IBVERBS_1.0), for programs that still use them.
//
// Their structs were different, and no public header describes them any more. So the dynamic linker finds the names,
// and a program that asks for devices gets none: ibv_get_device_list returns NULL as for an empty list, and ENOSYS.
// Functions that only a program with a device can call end the program with a message; they must not access memory of
// unknown layout.
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

// Name, and its old version.
#define OLD(name, version) __asm__(".symver old_" #name "," #name "@" version)

#define REFUSED(name)                                                                                                  \
    _Noreturn void old_##name(void);                                                                                   \
    _Noreturn void old_##name(void)                                                                                    \
    {                                                                                                                  \
        refuse(#name);                                                                                                 \
    }                                                                                                                  \
    OLD(name, "IBVERBS_1.0")

_Noreturn static void refuse(const char *name)
{
    (void)fprintf(stderr, "libibverbs: %s@IBVERBS_1.0: the interface of before 2007 has no devices here\n", name);
    abort();
}

void **old_ibv_get_device_list(int *count_out);
void **old_ibv_get_device_list(int *count_out)
{
    if (count_out != NULL) {
        *count_out = 0;
    }
    errno = ENOSYS;
    return NULL;
}
OLD(ibv_get_device_list, "IBVERBS_1.0");

void old_ibv_free_device_list(void **list);
void old_ibv_free_device_list(void **list)
{
    (void)list; // always NULL
}
OLD(ibv_free_device_list, "IBVERBS_1.0");

// Provider libraries of that time register themselves when they are loaded; they are never asked for a device.
void old_ibv_register_driver(const char *name, void *init);
void old_ibv_register_driver(const char *name, void *init)
{
    (void)name, (void)init;
}
OLD(ibv_register_driver, "IBVERBS_1.1");

REFUSED(ibv_ack_async_event);
REFUSED(ibv_ack_cq_events);
REFUSED(ibv_alloc_pd);
REFUSED(ibv_attach_mcast);
REFUSED(ibv_close_device);
REFUSED(ibv_create_ah);
REFUSED(ibv_create_cq);
REFUSED(ibv_create_qp);
REFUSED(ibv_create_srq);
REFUSED(ibv_dealloc_pd);
REFUSED(ibv_dereg_mr);
REFUSED(ibv_destroy_ah);
REFUSED(ibv_destroy_cq);
REFUSED(ibv_destroy_qp);
REFUSED(ibv_destroy_srq);
REFUSED(ibv_detach_mcast);
REFUSED(ibv_get_async_event);
REFUSED(ibv_get_cq_event);
REFUSED(ibv_get_device_guid);
REFUSED(ibv_get_device_name);
REFUSED(ibv_modify_qp);
REFUSED(ibv_modify_srq);
REFUSED(ibv_open_device);
REFUSED(ibv_query_device);
REFUSED(ibv_query_gid);
REFUSED(ibv_query_pkey);
REFUSED(ibv_query_port);
REFUSED(ibv_query_qp);
REFUSED(ibv_query_srq);
REFUSED(ibv_reg_mr);
REFUSED(ibv_resize_cq);
