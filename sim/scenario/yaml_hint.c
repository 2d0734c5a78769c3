#include "sim/scenario/yaml_hint.h"

#include <stdbool.h>
#include <string.h>

static const struct {
    const char *problem, *context; // parts of the library's texts
    char first;                    // of what stands there; '\0': anything
    const char *hint;
} hints[] = {
    {"mapping values are not allowed", "", '\0',
     "a text with ': ' in it needs quotes, or this line is indented too far"},
    {"cannot start any token", "", '\t', "a tab; YAML is indented with spaces"},
    {"cannot start any token", "", '@', "a text that begins with '@' needs quotes"},
    {"cannot start any token", "", '`', "a text that begins with '`' needs quotes"},
    {"cannot start any token", "", '%', "a text that begins with '%' needs quotes"},
    {"alphabetic or numeric character", "alias", '\0', "a text that begins with '*' needs quotes"},
    {"alphabetic or numeric character", "anchor", '\0', "a text that begins with '&' needs quotes"},
    {"',' or '}'", "flow mapping", '\0', "a ',' is missing here, or the '}' before it"},
    {"',' or ']'", "flow sequence", '\0', "a ',' is missing here, or the ']' before it"},
    {"unexpected end of stream", "quoted scalar", '\0', "a quote is not closed"},
    {"could not find expected ':'", "simple key", '\0', "a ':' is missing behind a key"},
    {"did not find expected key", "block mapping", '\0',
     "this line is not indented as those of its mapping, or a text with quotes in it needs quotes around it"},
    {"did not find expected '-'", "block collection", '\0', "this line is not indented as those of its list"},
    {"unknown escape character", "", '\0', "in double quotes '\\' begins an escape; single quotes have none"},
};

const char *scn_yaml_hint(const char *problem, const char *context, const char *at, size_t length)
{
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
        bool stands = hints[i].first == '\0' || (length > 0 && at[0] == hints[i].first);
        if (stands && strstr(problem, hints[i].problem) != NULL &&
            strstr(context != NULL ? context : "", hints[i].context) != NULL) {
            return hints[i].hint;
        }
    }
    return NULL;
}
