// rdma_getaddrinfo: translates names to addresses with the C library.
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "verbs-shim/rdmacm/internal.h"

static void kind_set(struct rdma_addrinfo *info, const struct rdma_addrinfo *hints)
{
    int type = hints->ai_qp_type, space = hints->ai_port_space;
    bool datagrams = type != 0 ? type == IBV_QPT_UD : space == RDMA_PS_UDP || space == RDMA_PS_IPOIB;
    info->ai_qp_type = type != 0 ? type : datagrams ? IBV_QPT_UD : IBV_QPT_RC;
    info->ai_port_space = space != 0 ? space : datagrams ? RDMA_PS_UDP : RDMA_PS_TCP;
}

static bool address_copy(struct sockaddr **address_out, socklen_t *bytes_out, const struct sockaddr *from,
                         socklen_t bytes)
{
    *address_out = malloc(bytes);
    if (*address_out == NULL) {
        return false;
    }
    memcpy(*address_out, from, bytes);
    *bytes_out = bytes;
    return true;
}

static bool name_copy(char **name_out, const char *from)
{
    *name_out = from != NULL ? strdup(from) : NULL;
    return from == NULL || *name_out != NULL;
}

static bool found_set(struct rdma_addrinfo *info, const struct addrinfo *found)
{
    info->ai_family = found->ai_family;
    if ((info->ai_flags & RAI_PASSIVE) != 0) {
        return address_copy(&info->ai_src_addr, &info->ai_src_len, found->ai_addr, found->ai_addrlen) &&
               name_copy(&info->ai_src_canonname, found->ai_canonname);
    }
    return address_copy(&info->ai_dst_addr, &info->ai_dst_len, found->ai_addr, found->ai_addrlen) &&
           name_copy(&info->ai_dst_canonname, found->ai_canonname);
}

static bool hinted_set(struct rdma_addrinfo *info, const struct rdma_addrinfo *hints)
{
    bool source = info->ai_src_addr == NULL && hints->ai_src_len > 0;
    bool destination = info->ai_dst_addr == NULL && hints->ai_dst_len > 0;
    info->ai_family = info->ai_family != 0 ? info->ai_family : hints->ai_family;
    return (!source || address_copy(&info->ai_src_addr, &info->ai_src_len, hints->ai_src_addr, hints->ai_src_len)) &&
           (!destination || address_copy(&info->ai_dst_addr, &info->ai_dst_len, hints->ai_dst_addr, hints->ai_dst_len));
}

// Returns an error of getaddrinfo(3); 0 and NULL: there was no name to translate.
static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints, struct addrinfo **found)
{
    struct addrinfo asked = {.ai_socktype = SOCK_STREAM};
    *found = NULL;
    if (node == NULL && service == NULL) {
        return 0;
    }
    asked.ai_family = (hints->ai_flags & RAI_FAMILY) != 0 ? hints->ai_family : AF_UNSPEC;
    asked.ai_flags = ((hints->ai_flags & RAI_PASSIVE) != 0 ? AI_PASSIVE : 0) |
                     ((hints->ai_flags & RAI_NUMERICHOST) != 0 ? AI_NUMERICHOST : 0);
    return getaddrinfo(node, service, &asked, found);
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
                     struct rdma_addrinfo **info_out)
{
    static const struct rdma_addrinfo none;
    struct addrinfo *found;
    if (node == NULL && service == NULL && hints == NULL) {
        return cm_errno(-EINVAL);
    }
    hints = hints != NULL ? hints : &none;
    int error = look_up(node, service, hints, &found);
    if (error != 0) {
        return error;
    }
    struct rdma_addrinfo *info = calloc(1, sizeof *info);
    bool made = info != NULL;
    if (made) {
        info->ai_flags = hints->ai_flags;
        kind_set(info, hints);
        made = (found == NULL || found_set(info, found)) && hinted_set(info, hints);
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    if (!made) {
        rdma_freeaddrinfo(info);
        return cm_errno(-ENOMEM);
    }
    *info_out = info;
    return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *info)
{
    while (info != NULL) {
        struct rdma_addrinfo *next = info->ai_next;
        free(info->ai_src_addr);
        free(info->ai_dst_addr);
        free(info->ai_src_canonname);
        free(info->ai_dst_canonname);
        free(info->ai_route);
        free(info->ai_connect);
        free(info);
        info = next;
    }
}
