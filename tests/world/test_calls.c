// Compares the table of what is interposed (verbs-shim/world/calls.def) with the C library of this machine.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/shim/test.h"

static const struct {
    const char *name, *version;
} functions[] = {
#define CALL(name, function, trap, policy)
#define FUNCTION(name, version, policy, number) {#name, version},
#include "verbs-shim/world/calls.def"
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

TEST(WorldCalls, AreFunctionsOfTheCLibraryInTheirDefaultVersions)
{
    void *library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    char wrong[4096] = "";
    for (size_t i = 0; i < FUNCTIONS; i++) {
        void *versioned = dlvsym(library, functions[i].name, functions[i].version);
        if (versioned == NULL || versioned != dlsym(library, functions[i].name)) {
            snprintf(wrong + strlen(wrong), sizeof wrong - strlen(wrong), "%s ", functions[i].name);
        }
    }
    EXPECT_STREQ(wrong, "");
    (void)dlclose(library);
}

TEST(WorldCalls, AreEachThereOnce)
{
    char twice[4096] = "";
    for (size_t i = 0; i < FUNCTIONS; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(functions[i].name, functions[j].name) == 0) {
                snprintf(twice + strlen(twice), sizeof twice - strlen(twice), "%s ", functions[i].name);
            }
        }
    }
    EXPECT_STREQ(twice, "");
}
