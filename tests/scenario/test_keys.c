// Consistency of the table of keys.
#include "fixture.h"

#include <string.h>

#include "sim/scenario/value.h"

static void each_key(void (*check)(const struct scn_kind *kind, const struct scn_key *key))
{
    for (size_t i = 0; scn_kinds[i] != NULL; i++) {
        for (size_t j = 0; j < scn_kinds[i]->key_count; j++) {
            check(scn_kinds[i], &scn_kinds[i]->keys[j]);
        }
    }
}

static void check_doc(const struct scn_kind *kind, const struct scn_key *key)
{
    if (key->doc == NULL || key->doc[0] == '\0') {
        FAIL("%s.%s has no doc", kind->name, key->name);
    }
}

TEST(Keys, AllSayWhatTheyMean)
{
    each_key(check_doc);
}

static void check_unique(const struct scn_kind *kind, const struct scn_key *key)
{
    void *base = NULL;
    if (key->unit != SCN_UNIT_EMBED && scn_key_find(kind, key->name, &base) != key) {
        FAIL("%s.%s is there twice", kind->name, key->name);
    }
}

TEST(Keys, NamesAreUniqueInTheirKind)
{
    each_key(check_unique);
}

static void check_default(const struct scn_kind *kind, const struct scn_key *key)
{
    uint64_t value = 0;
    char why[SCN_WHY_MAX] = "";
    bool number = key->unit <= SCN_UNIT_BOOL || key->unit == SCN_UNIT_INTEGERS;
    if (number && key->fallback != NULL && key->second == 0 && !scn_number_parse(key, key->fallback, &value, why)) {
        FAIL("default of %s.%s: %s", kind->name, key->name, why);
    }
}

TEST(Keys, DefaultsLieInTheirRange)
{
    each_key(check_default);
}

static void check_range(const struct scn_kind *kind, const struct scn_key *key)
{
    uint64_t limit = key->size == sizeof(uint32_t) ? UINT32_MAX : UINT64_MAX;
    if (scn_key_has_range(key) && (key->min > key->max || key->max > limit)) {
        FAIL("range of %s.%s does not fit", kind->name, key->name);
    }
    if (key->unit == SCN_UNIT_CHOICE && key->choices == NULL) {
        FAIL("%s.%s has no choices", kind->name, key->name);
    }
}

TEST(Keys, RangesFitTheirFields)
{
    each_key(check_range);
}

TEST(Keys, OfALinkStandDirectlyInACable)
{
    struct scn_cable cable;
    void *base = &cable;
    const struct scn_key *key = scn_key_find(&scn_kind_cable, "lanes", &base);
    ASSERT_NOT_NULL(key);
    EXPECT_EQ((char *)base + key->offset, (char *)&cable.link.lanes);
}

TEST(Keys, OfPortsMethodsAndProgramsHaveNames)
{
    EXPECT_STREQ(scn_port_name(SCN_PORT_N), "N");
    EXPECT_STREQ(scn_port_name(SCN_PORT_E), "E");
    EXPECT_STREQ(scn_port_name(SCN_PORT_W), "W");
    EXPECT_STREQ(scn_port_name(SCN_PORT_S), "S");
    EXPECT_STREQ(scn_method_name(SCN_METHOD_CHAIN_HOST), "chain-host");
    EXPECT_STREQ(scn_workload_name(SCN_WORKLOAD_LOCAL_DMA), "local-dma");
}
