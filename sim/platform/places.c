#include "sim/platform/places.h"

#include <stdlib.h>

_Static_assert(WORKLOAD_NEAR_MAX == SCN_WINDOW_NODES_MAX, "a sub-cluster is the nodes of a window");

static bool fill(struct plat_places *places, sim_t *sim, const struct scn_routes *routes, const uint32_t *nodes)
{
    bool good = true;
    for (uint32_t rank = 0; rank < routes->node_count; rank++) {
        bool joined = routes->sub_clusters[0].joined;
        uint32_t sub_cluster = joined ? routes->sub_cluster_of[nodes[rank]] : nodes[rank];
        uint32_t number = joined ? routes->numbers[nodes[rank]] : 0;
        places->sub_cluster_of[rank] = sub_cluster;
        places->number_of[rank] = number;
        places->rank_at[sub_cluster * WORKLOAD_NEAR_MAX + number] = rank;
    }
    uint32_t parts = places->workload.sub_clusters;
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t near = routes->sub_clusters[0].joined ? routes->sub_clusters[i].node_count : 1;
        good = plat_mailbox_init(&places->mailboxes[i], sim, near) && good;
    }
    places->workload = (struct workload_places){.sub_clusters = parts,
                                                .sub_cluster_of = places->sub_cluster_of,
                                                .number_of = places->number_of,
                                                .rank_at = places->rank_at};
    return good;
}

struct plat_places *plat_places_create(sim_t *sim, const struct scn_routes *routes, const uint32_t *nodes)
{
    struct plat_places *places = calloc(1, sizeof *places);
    if (places == NULL) {
        return NULL;
    }
    uint32_t parts = scn_routes_parts(routes);
    places->mailboxes = calloc(parts, sizeof *places->mailboxes);
    places->sub_cluster_of = calloc(routes->node_count, sizeof *places->sub_cluster_of);
    places->number_of = calloc(routes->node_count, sizeof *places->number_of);
    places->rank_at = calloc((size_t)parts * WORKLOAD_NEAR_MAX, sizeof *places->rank_at);
    places->workload.sub_clusters = parts;
    if (places->mailboxes == NULL || places->sub_cluster_of == NULL || places->number_of == NULL ||
        places->rank_at == NULL || !fill(places, sim, routes, nodes)) {
        plat_places_destroy(places);
        return NULL;
    }
    return places;
}

void plat_places_destroy(struct plat_places *places)
{
    if (places == NULL) {
        return;
    }
    for (uint32_t i = 0; places->mailboxes != NULL && i < places->workload.sub_clusters; i++) {
        plat_mailbox_fini(&places->mailboxes[i]);
    }
    free(places->mailboxes);
    free(places->sub_cluster_of);
    free(places->number_of);
    free(places->rank_at);
    free(places);
}
