// Words that users of the field search for, and those that the keys use.
#include <string.h>

#include "sim/scenario/params.h"

enum { ALSO_MAX = 4 };

static const struct {
    const char *word;
    const char *also[ALSO_MAX + 1];
} synonyms[] = {
    {"length", {"flight", NULL}},
    {"distance", {"flight", NULL}},
    {"propagation", {"flight", NULL}},
    {"delay", {"latency", "flight", NULL}},
    {"throughput", {"bandwidth", NULL}},
    {"width", {"lanes", NULL}},
    {"speed", {"generation", NULL}},
    {"outstanding", {"in flight", "read_tags", "credits", NULL}},
    {"window", {"outstanding", "in flight", NULL}},
    {"queue depth", {"outstanding", NULL}},
    {"buffer", {"credits", NULL}},
    {"packet size", {"mps", "mtu", NULL}},
    {"payload", {"mps", "mtu", NULL}},
    {"loss", {"lose_", "corrupt", NULL}},
    {"polling", {"poll", NULL}},
    {"nic", {"hca", NULL}},
    {"adapter", {"hca", NULL}},
    {"retry", {"rnr", "replay", NULL}},
    {"retransmission", {"replay", NULL}},
    {"topology", {"ib_fabric", "sub_clusters", NULL}},
};

bool params_word_fits(const char *text, const char *word)
{
    if (strcasestr(text, word) != NULL) {
        return true;
    }
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++) {
        if (strcasecmp(synonyms[i].word, word) == 0) {
            for (size_t k = 0; synonyms[i].also[k] != NULL; k++) {
                if (strcasestr(text, synonyms[i].also[k]) != NULL) {
                    return true;
                }
            }
        }
    }
    return false;
}
